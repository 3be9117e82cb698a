"""What the sessions come to: the plan beside others, and the model beside what was measured; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

from models.placement.plan.compared import CHOSEN, ONE

NEAR = 1.05
"""Multiple of the least latency up to which a placement counts as the best."""


class PlacementRuns(NamedTuple):
    """The sessions of a placement.

    Attributes:
        names: under which it is compared; several where ways to plan agree.
        sessions: as `session.run_placement` each.
    """

    names: Sequence[str]
    sessions: Sequence[Mapping[str, Any]]

    @property
    def latency_s(self) -> float:
        """Median of the sessions' 95 % quantile; infinite where more records than that never came to a result."""
        return float(median(math.inf if one["p95_s"] is None else one["p95_s"] for one in self.sessions))

    @property
    def most_rps(self) -> float:
        """Median of what it could do; at least that where it kept up with all that it was offered."""
        return float(median(one["most_rps"] for one in self.sessions))


def summarise(cases: Mapping[str, Sequence[PlacementRuns]], missing: int) -> dict[str, Any]:
    """Summarise the sessions of all cases.

    Args:
        cases: by name the placements of which a session is kept.
        missing: sessions that were not run yet.

    Returns:
        `cases`, of each: `plans`, a row each; `ratio` of the chosen placement's latency to the least, and whether it is
        `near` that (NEAR); `one`, whether all in one query is; `chose_one`, whether that was chosen. `near`, share of
        the cases with a chosen one near the least, of `n`; `one`, share of those with `one` that chose it, of `one_n`;
        both None while sessions are missing. `latency`, `followed` (latency in the twin) and `throughput`: `rank`
        correlation of model and measurement, `error` in the median and the `worst`, of `n` placements (of throughput
        without those of which nothing came to count at the highest load); `kept_up`, sessions that could do more than
        what they were offered. `wrong` of `keys` results, `lost` counts, `sessions`, `missing`.
    """
    found = {name: _case(placements) for name, placements in cases.items() if placements}
    whole = list(found.values()) if not missing else []
    one, every = [case for case in whole if case["one"]], [each for own in cases.values() for each in own]
    sessions = [session for each in every for session in each.sessions]
    told = {
        name: [(each.sessions[0][said], each.latency_s) for each in every]
        for name, said in (("latency", "said_s"), ("followed", "followed_s"))
    }
    throughput = [(each.sessions[0]["said_rps"], each.most_rps) for each in every if each.most_rps > 0]
    return {
        "cases": found, "n": len(whole), "near": _share([case["near"] for case in whole]),
        "one": _share([case["chose_one"] for case in one]), "one_n": len(one), "missing": missing,
        **{
            name: _beside([one for one in pairs if one[0] is not None and math.isfinite(one[1])])
            for name, pairs in told.items()
        },
        "throughput": {**_beside(throughput), "kept_up": sum(session["kept_up"] for session in sessions)},
        **{name: sum(session[name] for session in sessions) for name in ("wrong", "keys", "lost")},
        "sessions": len(sessions),
    }  # fmt: skip


def _case(placements: Sequence[PlacementRuns]) -> dict[str, Any]:
    by_name = {name: each for each in placements for name in each.names}
    least_s, chosen, one = min(each.latency_s for each in placements), by_name.get(CHOSEN), by_name.get(ONE)
    return {
        "plans": [_row(each) for each in placements],
        "ratio": chosen.latency_s / least_s if chosen is not None and math.isfinite(chosen.latency_s) else None,
        "near": chosen is not None and math.isfinite(chosen.latency_s) and chosen.latency_s <= NEAR * least_s,
        "one": one is not None and math.isfinite(one.latency_s) and one.latency_s <= NEAR * least_s,
        "chose_one": chosen is not None and chosen is one,
    }  # fmt: skip


def _row(each: PlacementRuns) -> dict[str, Any]:
    first = each.sessions[0]
    blocks = [
        f"{'+'.join(one['operators'])}@{one['cluster']}x{one['executors']}" for one in first["placement"]["blocks"]
    ]  # fmt: skip
    return {
        "plan": ", ".join(each.names), "queries": " | ".join(blocks), "n": len(each.sessions),
        "p95_s": each.latency_s if math.isfinite(each.latency_s) else None, "said_s": first["said_s"],
        "followed_s": first["followed_s"],
        "most_rps": each.most_rps, "said_rps": first["said_rps"],
    }  # fmt: skip


def _beside(pairs: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Model and measurement."""
    if len(pairs) < 3:
        return {"rank": None, "error": None, "worst": None, "n": len(pairs)}
    from scipy.stats import spearmanr

    said, measured = zip(*pairs, strict=True)
    varied = min(len({*said}), len({*measured})) > 1
    rank = float(spearmanr(said, measured).statistic) if varied else None
    errors = [abs(one / other - 1) for one, other in pairs]
    return {
        "rank": rank, "error": median(errors), "worst": max(errors), "n": len(pairs),
    }  # fmt: skip


def _share(held: Sequence[bool]) -> float | None:
    return sum(held) / len(held) if held else None
