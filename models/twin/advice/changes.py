"""The changes of a job that advice may name, each as the twin and the contract that the job would have with it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from configs.contract import Contract
from models.twin.advice.facts import Facts
from models.twin.sim.job import TwinJob

KINDS = ("ceiling", "trigger", "partitions", "memory", "sink", "overhead", "skew")
"""Kinds of change, the one that is the least work first."""
USUAL_S = {"planning_s": 0.25, "offsets_s": 0.1, "log_s": 0.3, "state_commit_s": 0.3}
"""Seconds of a batch's phases that are nothing to look into; only what is above them is taken for avoidable."""
USUAL_GC, USUAL_WAIT = 0.05, 0.1
"""Shares of the tasks' time for garbage and for waiting in the last stage that are nothing to look into."""
NOTABLE = 0.1
"""A measured excess is looked into from this share of the tasks' time, or of the batch, on."""


@dataclass(frozen=True)
class Change:
    """One change of a job.

    Attributes:
        kind: of `KINDS`.
        told: figures by name that words are made of.
        job: the twin with it.
        contract: with it.
    """

    kind: str
    told: dict[str, Any]
    job: TwinJob
    contract: Contract


def list_changes(job: TwinJob, contract: Contract, facts: Facts, tasks: int) -> list[Change]:
    """List the changes that can be tried on a job: settings always, what asks for work only where it was measured.

    Args:
        job: the fitted twin; `tasks` of it is what a skewed stage is worth.
        contract: of the job.
        facts: where the time of its batches goes.
        tasks: of the heaviest stage as reported.
    """
    every = [*_triggers(job, contract), *_ceilings(job, contract, facts), *_partitions(job, contract, facts)]
    for share, kind, told in (_memory(facts), _sink(facts)):
        if share >= NOTABLE:
            freed = replace(job, per_record_s=job.per_record_s * (1 - min(share, 0.9)))
            every.append(Change(kind, {**told, "share": share}, freed, contract))
    if facts.skewed and tasks > job.tasks:
        told = {"skew": facts.skew, "parallel": facts.parallel, "tasks": tasks}
        every.append(Change("skew", told, replace(job, tasks=tasks), contract))
    return [*every, *_overheads(job, contract, facts)]


def _triggers(job: TwinJob, contract: Contract) -> list[Change]:
    """Half, twice and four times the time that batches have: the longer of the trigger and what the contract plans."""
    now_s, found = max(job.trigger_s, contract.batch_s), []
    for factor in (0.5, 2.0, 4.0):
        batch_s = round(factor * now_s, 1)
        if 0.1 <= batch_s < job.latency_target_s and batch_s > job.overhead_s:
            planning = contract.planning.model_copy(update={"batch_s": batch_s})
            told = {"trigger_s": job.trigger_s, "batch_s": contract.batch_s, "to_s": batch_s}
            changed = contract.model_copy(update={"planning": planning})
            found.append(Change("trigger", told, replace(job, trigger_s=batch_s), changed))
    return found


def _ceilings(job: TwinJob, contract: Contract, facts: Facts) -> list[Change]:
    """Half as many executors more, and twice as many; with as many tasks more where each slot has its task already."""
    found = []
    if job.tasks < job.most * job.cores:
        return []
    for most in sorted({math.ceil(1.5 * job.most), 2 * job.most} - {job.most}):
        tasks = job.tasks if facts.skewed else max(job.tasks, most * job.cores)
        bounds = contract.executors.model_copy(update={"max": most})
        told = {"most": job.most, "to": most, "tasks": job.tasks, "to_tasks": tasks}
        changed = contract.model_copy(update={"executors": bounds})
        found.append(Change("ceiling", told, replace(job, most=most, tasks=tasks), changed))
    return found


def _partitions(job: TwinJob, contract: Contract, facts: Facts) -> list[Change]:
    """As many times the tasks, twice or more, as give each slot one; a skewed key stays in one task."""
    if facts.skewed or job.tasks >= job.most * job.cores:
        return []
    tasks = job.tasks * max(2, math.ceil(job.most * job.cores / job.tasks))
    return [Change("partitions", {"tasks": job.tasks, "to": tasks}, replace(job, tasks=tasks), contract)]


def _memory(facts: Facts) -> tuple[float, str, dict[str, Any]]:
    gc, spill = facts.gc_share or 0.0, facts.spill_share or 0.0
    told = {"gc_share": gc, "spilled_bytes": facts.spilled_bytes or 0.0}
    return max(gc - USUAL_GC, 0.0) + spill, "memory", told


def _sink(facts: Facts) -> tuple[float, str, dict[str, Any]]:
    waited = facts.wait_share or 0.0
    return max(waited - USUAL_WAIT, 0.0), "sink", {"wait_share": waited}


def _overheads(job: TwinJob, contract: Contract, facts: Facts) -> list[Change]:
    """Each phase of a batch cut to what is usual; the contract's guess of the overhead falls with it."""
    found = []
    for phase, seconds in facts.phases.items():
        excess_s = min(seconds - USUAL_S[phase], 0.95 * job.overhead_s)
        if excess_s >= NOTABLE * max(job.trigger_s, contract.batch_s):
            guess_s = max(contract.planning.overhead_s - excess_s, 0.05 * contract.planning.overhead_s)
            planning = contract.planning.model_copy(update={"overhead_s": guess_s})
            told = {"phase": phase, "seconds": seconds, "to_s": USUAL_S[phase]}
            changed = contract.model_copy(update={"planning": planning})
            found.append(Change("overhead", told, replace(job, overhead_s=job.overhead_s - excess_s), changed))
    return found
