"""`tidecast bench team --parts init`: whether what is proposed for each shipped job passes the check, and holds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from configs.contract import Contract, load_contract
from configs.errors import SettingsError
from configs.settings import Settings
from models.contract.declared import TermsError
from models.policy.core.sustained import checked_terms
from models.twin.contract.proposed import propose_contract
from models.twin.contract.tried import try_contract
from pipelines.advise.observed import observe_job
from pipelines.advise.proposal_text import format_proposal
from pipelines.bench.team.shipped_jobs import DAYS, free_job, list_jobs, load_of, observed_messages, simulated_job

BUDGET, SEED, BEGIN = 0.01, 20_261_127, 60
"""Share of seconds that may be late; seed of the first job's draws; day of the trace at which its load begins."""


def measure_proposals(settings: Settings, report: Callable[[str], None]) -> dict[str, Any]:
    """Propose a contract for each shipped job from two hours with a fixed number of executors, and try it.

    A job is simulated by its own contract, of which the proposal is told nothing but its name.

    Args:
        settings: with the folder of contracts.
        report: called with a line per job.

    Returns:
        `jobs` (a row per job, each of days of the trace of its own), `n`, and how many proposals `passed` the check,
        were kept in the twin that was fitted (`held`), and in the simulated job itself over the two days of the trace
        that follow (`next`).
    """
    jobs = []
    for number, (job, contract) in enumerate(list_jobs(settings).items()):
        report(job)
        jobs.append(_proposed(job, contract, number))
    counts = {name: sum(one[name] for one in jobs) for name in ("passed", "held", "next")}
    return {"jobs": jobs, "n": len(jobs), **counts}


def _proposed(job: str, contract: Contract, number: int) -> dict[str, Any]:
    simulated, seed, first = simulated_job(contract), SEED + 2 * number, BEGIN + 2 * DAYS * number
    arrived = load_of(simulated, contract, first, seed)
    following = load_of(simulated, contract, first + DAYS, seed + 1)
    observed = observe_job(job, *observed_messages(contract, arrived, seed), BUDGET)
    proposal = propose_contract(observed.draft, observed.seen.twin, observed.seen.arrived)
    read = proposal.outcome.contract
    later = try_contract(read, free_job(contract), following)
    return {
        "job": job, "kept_s": observed.draft["latency_target_s"], "target_s": read.latency_target_s,
        "executors": [read.executors.min, read.executors.max], "were": observed.most, "tried": proposal.tried,
        "late": round(proposal.outcome.late_share, 5), "next_late": round(later.late_share, 5),
        "hours": round(float(proposal.outcome.executor_s.mean()) / 3600, 3),
        "hours_were": round(observed.seen.executor_hours, 3),
        "repeated": round(observed.repeated, 5), "were_late": round(observed.seen.late_s / observed.seen.seconds, 5),
        "passed": _passes(format_proposal(observed, proposal), read), "held": proposal.outcome.kept, "next": later.kept,
    }  # fmt: skip


def _passes(text: str, contract: Contract) -> bool:
    """Whether a contract's file passes the check, and says what was tried."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{contract.job}.yaml").write_text(text)
        try:
            read = load_contract(contract.job, Path(folder))
            checked_terms(read)
        except (SettingsError, TermsError):
            return False
    return read == contract
