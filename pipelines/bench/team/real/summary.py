"""What pairs of sessions come to; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from pipelines.bench.team.real.mix import WEIGHTS
from pipelines.bench.team.real.sides import POOL, STATIC

Session = Mapping[str, Any]


def summarise(pairs: Sequence[Mapping[str, Session]]) -> dict[str, Any]:
    """Summarise pairs of sessions of the same loads.

    Args:
        pairs: by side what `session.run_session` returned.

    Returns:
        `n` of them; `ratio`, in the median, of the pool's cost of late seconds to that of the static shares, and the
        `worst`; None without a pair. `sides` and `jobs`: tables of cost, and of late seconds by job and pair. Over all
        sessions: `wrong` of `produced` records (lost, or counted twice), and `again` of `decisions` that come out
        otherwise from the log; over those of the pool: `yields`, `given_up`, `unexplained`, `most_changes` of a job
        within any minute, and `together`, the most executors that all jobs were to have.
    """
    ratios = [(cost_of(one[POOL]) + 1) / (cost_of(one[STATIC]) + 1) for one in pairs]
    every = [job for one in pairs for session in one.values() for job in session["jobs"].values()]
    pooled = [job for one in pairs for job in one[POOL]["jobs"].values()]
    return {
        "n": len(pairs), "ratio": median(ratios) if ratios else None, "worst": max(ratios, default=None),
        "pairs": [row for number, one in enumerate(pairs, 1) for row in _rows(number, one)],
        "wrong": sum(one["lost"] + one["duplicated"] for one in every),
        **{name: sum(one[name] for one in every) for name in ("produced", "again", "decisions")},
        **{name: sum(one[name] for one in pooled) for name in ("yields", "given_up", "unexplained")},
        "most_changes": max((one["most_changes"] for one in pooled), default=None),
        "together": max((one[POOL]["together"] for one in pairs), default=None),
    }  # fmt: skip


def cost_of(session: Session) -> float:
    """Return what a session's late seconds cost, by the jobs' weights."""
    return float(sum(WEIGHTS[job] * one["late_s"] for job, one in session["jobs"].items()))


def _rows(number: int, pair: Mapping[str, Session]) -> list[dict[str, Any]]:
    shares = ", ".join(str(share) for share in pair[STATIC]["shares"].values())
    return [
        {
            "pair": number, "cores": told,
            **{f"{job}, weight {weight:g}: late s": session["jobs"][job]["late_s"] for job, weight in WEIGHTS.items()},
            "cost": cost_of(session),
        }
        for told, session in ((POOL, pair[POOL]), (f"shares {shares}", pair[STATIC]))
    ]  # fmt: skip
