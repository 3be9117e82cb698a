"""Row: how soon the same work is done beside live records by other ways to share the same cores, the p99 limit kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from pipelines.bench.backfill.cells import ALONE, OURS, PAPER, Found, MeasuredCell, of_row, take_turns
from pipelines.bench.backfill.latency import MOST_RATIO
from pipelines.bench.backfill.loads import BURSTS, STEADY, TAXI
from pipelines.bench.backfill.ratio import latency_quantile

ROW, LOADS = "finish", (STEADY, TAXI, BURSTS)
MINUTES, TURNS = 2.0, 1
FIXED = ("fixed:32", "fixed:64", "fixed:128", "fixed:256")
RIVALS = {"split": ("split:2", "split:3"), "two": ("two",), "fixed": FIXED}
"""Other ways, and the arms among which each may choose in hindsight; those of `fixed` from low to high."""
AT_EDGE = "its best arm is the highest that was tried"


def plan_load(load: str, minutes: float) -> list[MeasuredCell]:
    """Plan the sessions of a load: all arms in each turn; of the taxi day, which is forecast, the paper's rule too."""
    rule = (PAPER,) if load == TAXI else ()
    rivals = (arm for arms in RIVALS.values() for arm in arms)
    return take_turns(ROW, load, (ALONE, OURS, *rule, *rivals), TURNS, minutes)


def summarise(kept: Mapping[MeasuredCell, Found], load: str) -> dict[str, Any]:
    """Summarise the sessions of a load.

    Returns:
        `limit_s`, MOST_RATIO times the p99 of live alone, None before TURNS sessions of that; `arms`, a row each
        (`arm`, `median_s`, `p99_s`, `kept`, `finished`, `n`), a session that did not finish with all its time; and what
        `judge` adds.
    """
    sessions = of_row(kept, ROW, load, MINUTES)
    alone = sessions.pop(ALONE, [])
    alone_s = latency_quantile([one["latency"] for one in alone]) if len(alone) >= TURNS else None
    limit_s = None if alone_s is None else MOST_RATIO * alone_s
    return judge({"limit_s": limit_s, "arms": [_arm(arm, found, limit_s) for arm, found in sessions.items()]})


def judge(part: Mapping[str, Any]) -> dict[str, Any]:
    """Judge a load's arms anew, whoever judged them before: arms may have been added since.

    A way's time is the median of its arm that is soonest among those that kept the limit: it may choose when all is
    known.

    Args:
        part: `limit_s` and `arms`, as `summarise` returns them.

    Returns:
        These; of each way the `ratio` of its time to ours, and `any`, whatever became of the p99; None where TURNS
        sessions of MINUTES of each of its arms, of ours and of live alone are not there, for `ratio` also where none
        keeps the limit, and for the fixed limits at an edge (`why` says which); `edge`, whether the best fixed limit is
        the highest that was tried, so that a higher one may be sooner; `paper`, the paper's rule alone: its time ÷ ours
        (`ratio`), and `p99_ratio` and `ours`, live p99 ÷ live alone of each, whatever became of the limit; None where
        not both were measured.
    """
    arms = {one["arm"]: one for one in part["arms"]}
    ours = arms.get(OURS)
    ready = part["limit_s"] is not None and ours is not None and ours["n"] >= TURNS
    judged: dict[str, Any] = {"limit_s": part["limit_s"], "arms": [*part["arms"]]}
    for way, names in RIVALS.items():
        there = [arms[name] for name in names if name in arms and arms[name]["n"] >= TURNS]
        judged[way] = _beside(there, ours if ready and len(there) == len(names) else None)
    alone_s = None if part["limit_s"] is None else part["limit_s"] / MOST_RATIO
    judged["paper"] = _rules(arms.get(PAPER), ours if ready else None, alone_s)
    judged["edge"] = judged["fixed"]["arm"] == FIXED[-1]
    if judged["edge"]:
        judged["fixed"] |= {"ratio": None, "why": AT_EDGE}
    return judged


def over_loads(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise all loads: of each way the median of its ratios, None where a load's is not known.

    A load's is `ratio`, `any`, and `least`: where none of a way's arms keeps the limit, its slowest one counts, as to
    keep it would take longer still; those of each load are `loads`. Also `keeping`, on how many of the loads a way, and
    `ours`, keeps it, None while arms are missing that may; `n`, sessions with a replay; `p99_ratio`, ours ÷ live alone,
    of the worst load; `finished`, sessions whose replay was done; `inexact`, those of which it did not see just its
    range.
    """
    found: dict[str, Any] = {"ours": {"keeping": _keeping(parts, (OURS,))}}
    for way, names in RIVALS.items():
        kinds = {kind: [part[way][kind] for part in parts.values()] for kind in ("ratio", "any")}
        least = {load: _at_least(part, way) for load, part in parts.items()}
        kinds["least"] = [*least.values()]
        found[way] = {kind: None if None in own or not own else median(own) for kind, own in kinds.items()}
        found[way] |= {"loads": least, "keeping": _keeping(parts, names)}
    arms = [(arm, part["limit_s"]) for part in parts.values() for arm in part["arms"]]
    ours = [MOST_RATIO * arm["p99_s"] / limit_s for arm, limit_s in arms if arm["arm"] == OURS and limit_s]
    return {
        **found, "n": sum(arm["n"] for arm, _ in arms), "p99_ratio": max(ours) if len(ours) == len(LOADS) else None,
        "inexact": sum(arm["inexact"] for arm, _ in arms) if arms else None,
        "finished": sum(arm["finished"] for arm, _ in arms),
    }  # fmt: skip


def _keeping(parts: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> int | None:
    each = [_keeps(part, names) for part in parts.values()]
    return None if None in each else sum(map(bool, each))


def _keeps(part: Mapping[str, Any], names: Sequence[str]) -> bool | None:
    """Whether one of the arms keeps the limit; None where those that were tried do not, and others were not tried."""
    kept = {one["arm"]: one["kept"] for one in part["arms"]}
    return True if any(kept.get(name) for name in names) else None if None in map(kept.get, names) else False


def _at_least(part: Mapping[str, Any], way: str) -> float | None:
    """A way's time ÷ ours; of one that keeps the limit with no arm, at least that of its slowest."""
    arms = {one["arm"]: one for one in part["arms"]}
    if part[way]["ratio"] is not None:
        return float(part[way]["ratio"])
    if not _keeps(part, (OURS,)) or _keeps(part, RIVALS[way]) is not False:
        return None  # also where its best is at an edge
    return float(max(arms[name]["median_s"] for name in RIVALS[way]) / arms[OURS]["median_s"])


def _arm(arm: str, sessions: Sequence[Found], limit_s: float | None) -> dict[str, Any]:
    times = [one["seconds"] if one["done_s"] is None else one["done_s"] for one in sessions]
    p99_s = latency_quantile([one["latency"] for one in sessions])
    return {
        "arm": arm, "median_s": median(times), "p99_s": p99_s, "n": len(sessions),
        "kept": None if limit_s is None or p99_s is None else p99_s <= limit_s,
        "finished": sum(one["done_s"] is not None for one in sessions),
        "inexact": sum(one["exact"] is False for one in sessions),
    }  # fmt: skip


def _rules(
    paper: Mapping[str, Any] | None, ours: Mapping[str, Any] | None, alone_s: float | None
) -> dict[str, float | None]:
    """The paper's rule alone beside ours."""
    if paper is None or ours is None or not alone_s:
        return dict.fromkeys(("ratio", "p99_ratio", "ours"))
    each = (None if one["p99_s"] is None else one["p99_s"] / alone_s for one in (paper, ours))
    return dict(zip(("ratio", "p99_ratio", "ours"), (paper["median_s"] / ours["median_s"], *each), strict=True))


def _beside(arms: Sequence[Mapping[str, Any]], ours: Mapping[str, Any] | None) -> dict[str, Any]:
    """A way's arms beside ours."""
    if ours is None:
        return {"ratio": None, "any": None, "arm": None, "why": "not measured to its end"}
    soonest = min(arms, key=lambda one: one["median_s"])
    keeping = [one for one in arms if one["kept"]]
    chosen = min(keeping, key=lambda one: one["median_s"], default=None)
    why = "" if ours["kept"] else "ours does not keep the limit"
    if chosen is None:
        why = "none of its arms keeps the limit"
    ratio = None if why or chosen is None else chosen["median_s"] / ours["median_s"]
    arm = None if chosen is None else chosen["arm"]
    return {"ratio": ratio, "any": soonest["median_s"] / ours["median_s"], "arm": arm, "why": why}
