"""`tidecast bench advise`: how often the right advice comes first, for jobs with a drawn fault, made in the twin."""

from __future__ import annotations

from typing import Any

from models.twin.advice.advise import choose_advice
from models.twin.calibration.fit import UnfinishedFitError
from pipelines.advise.measured import measure_job
from pipelines.bench.twin.agent_rows import record_job
from pipelines.bench.twin.faulty_jobs import FAULTS, SOUND, draw_job
from pipelines.workers import worker_pool

SEED, DRAWS, SOUND_DRAWS = 20_261_122, 5, 10
"""Fixed once the code was done; faults of each kind, and sound jobs."""


def measure_advice() -> dict[str, Any]:
    """Draw jobs with a fault and sound ones, let the twin run each, and ask for advice from what its agent would send.

    The advice gets rows of metrics and outcomes and the contract, never the fault or the twin that ran.

    Returns:
        `jobs` (a row per job: `fault`, `seed`, `advised` (kind), `right`, `gain`, `late` and the ranking `then`), and
        `right` and `faulty`, `nothing` and `sound`: how many were right, of how many; `by_fault` of `draws` each.
    """
    cases = [(fault, SEED + draw) for fault in FAULTS for draw in range(DRAWS)]
    cases += [(SOUND, SEED + draw) for draw in range(SOUND_DRAWS)]
    jobs = []
    with worker_pool(2) as both:
        for found in both.map(_advised, *zip(*cases, strict=True)):
            print(_line(found), flush=True)
            jobs.append(found)
    faulty, sound = ([one["right"] for one in jobs if (one["fault"] == SOUND) is s] for s in (False, True))
    return {
        "jobs": jobs, "right": sum(faulty), "faulty": len(faulty), "nothing": sum(sound), "sound": len(sound),
        "draws": DRAWS, "by_fault": {f: sum(one["right"] for one in jobs if one["fault"] == f) for f in FAULTS},
    }  # fmt: skip


def _advised(fault: str, seed: int) -> dict[str, Any]:
    drawn = draw_job(fault, seed)
    head = {"fault": fault, "seed": seed}
    try:
        seen = measure_job(*record_job(drawn, seed), drawn.contract)
    except UnfinishedFitError as error:
        return {**head, "advised": str(error), "right": False, "gain": None, "late": None, "then": []}
    advice = choose_advice(seen.twin, seen.contract, seen.recent, seen.facts, seen.tasks)
    return {
        **head, "advised": advice.first, "right": advice.first == FAULTS.get(fault, "nothing"),
        "gain": round(advice.tried[0].gain, 4), "late": round(advice.now.late / seen.contract.error_budget, 2),
        "then": [f"{one.change.kind} {one.gain:.2f}" for one in advice.tried],
    }  # fmt: skip


def _line(one: dict[str, Any]) -> str:
    late = "" if one["late"] is None else f"late {one['late']:.1f} x the budget; "
    verdict = "right" if one["right"] else "wrong"
    return f"{verdict}  {one['fault']:15} {one['advised']:11} {late}{', '.join(one['then'])}"
