"""Advice in words: about five lines, with what each change would come to."""

from __future__ import annotations

from typing import Any

from models.twin.advice.advise import Advice, Tried
from models.twin.advice.serve import POLICY, Cost
from pipelines.advise.measured import MeasuredJob
from pipelines.html.numbers import number, number_of, share

SHOWN = 3
"""Most changes that are told."""
_PHASES = {
    "planning_s": "planning", "offsets_s": "asking for offsets", "log_s": "the write-ahead log",
    "state_commit_s": "the state commit",
}  # fmt: skip


def format_advice(job: str, seen: MeasuredJob, advice: Advice) -> str:
    """Format advice as text of about five lines: how the job is served, what helps most, what is not known.

    Args:
        job: its name.
        seen: what was measured of it.
        advice: from its newest load.
    """
    contract, span = seen.contract, format_span(len(seen.recent) - 1)
    promised = f"{share(contract.error_budget, 1)} of the seconds over {contract.latency_target_s:g} s"
    lines = [
        f"{job}: promised are at most {promised}; by its own batches {share(_measured_late(seen), 1)} were. Its twin, "
        f"under {POLICY} steered by the promise, on the newest {span} of its load: "
        f"{cost_in_words(advice.now, seen)}."
    ]
    lines += [f"{i}. {_said(one, seen)}" for i, one in enumerate(advice.tried[: min(advice.worth, SHOWN)], 1)]
    if advice.first == "nothing":
        lines.append(f"Nothing: {_best(advice)}.")
    if advice.budget is not None:
        lines.append(
            f"Another promise: with none of this it is kept. As it is, {share(advice.now.late, 1)} of the seconds are "
            f"late, at best {share(advice.budget, 1)}; 99 % of them come out within {number(advice.now.p99_s, 0)} s."
        )
    return "\n".join([*lines, *unknowns(seen)])


def format_span(seconds: float) -> str:
    """Say a length of time in hours, or in minutes if it is under one."""
    return f"{number(seconds / 3600, 1)} hours" if seconds >= 3600 else number_of(round(seconds / 60), "minute")


def cost_in_words(cost: Cost, seen: MeasuredJob) -> str:
    """Say what a load came to: share of late seconds, executor-hours, and money where the contract has a price."""
    return f"{share(cost.late, 1)} late, {hours_in_words(cost.executor_s / 3600, seen)}"


def hours_in_words(hours: float, seen: MeasuredJob) -> str:
    """Say executor-hours, and what they cost where the contract has a price."""
    price = seen.contract.price_per_executor_hour
    paid = "" if price is None else f" for {number(hours * price, 2)}"
    return f"{number(hours, 2)} executor-hours{paid}"


def unknowns(seen: MeasuredJob) -> list[str]:
    """Return what the twin had to take from the contract, or nobody measured, as one line; [] if nothing."""
    said = []
    if not seen.lead_known:
        said.append(f"no start-up was seen, {seen.contract.planning.lead_s:g} s are taken (planning.lead_s)")
    if not seen.scaling_known:
        said.append("how much a further executor adds is not known, the contract's planning.scaling is taken")
    if seen.facts.wait_share is None:
        said.append("its agent reports nothing of its tasks, so skew, memory and sink are not looked into")
    return [f"Not known: {'; '.join(said)}."] if said else []


def _measured_late(seen: MeasuredJob) -> float | None:
    return seen.late_s / seen.seconds if seen.seconds > 0 else None


def _best(advice: Advice) -> str:
    if not advice.tried:
        return "no other setting is worth a try"
    best = advice.tried[0]
    gained = f"would gain most, {share(best.gain)}" if best.gain > 0 else "would gain most, and costs more"
    return f"of what was tried, {_WORDS[best.change.kind](best.change.told).partition(':')[0].lower()} {gained}"


def _said(one: Tried, seen: MeasuredJob) -> str:
    return f"{_WORDS[one.change.kind](one.change.told)}. Then {cost_in_words(one.cost, seen)}."


def _ceiling(t: dict[str, Any]) -> str:
    tasks = f", with {t['to_tasks']} partitions instead of {t['tasks']}" if t["to_tasks"] > t["tasks"] else ""
    return f"Another ceiling: executors.max {t['most']} → {t['to']}{tasks}"


def _trigger(t: dict[str, Any]) -> str:
    way = "longer" if t["to_s"] > max(t["trigger_s"], t["batch_s"]) else "shorter"
    planned = f", planning.batch_s {t['batch_s']:g} → {t['to_s']:g} s"
    return f"A {way} trigger: {t['trigger_s']:g} → {t['to_s']:g} s{planned}"


def _partitions(t: dict[str, Any]) -> str:
    return f"More partitions: {t['tasks']} → {t['to']} tasks in the heaviest stage, so that every slot has one"


def _memory(t: dict[str, Any]) -> str:
    spilled = f", and {number(t['spilled_bytes'] / 1e6)} MB of a batch are spilled" if t["spilled_bytes"] else ""
    return f"Larger executors: {share(t['gc_share'])} of the tasks' time collects garbage{spilled}"


def _sink(t: dict[str, Any]) -> str:
    what = "for the sink, for Python or for a core that others use"
    return f"A quicker sink: {share(t['wait_share'])} of the tasks' time the last stage waits ({what})"


def _overhead(t: dict[str, Any]) -> str:
    usual = f"{number(t['to_s'], 2)} s are usual"
    return f"Less overhead: {_PHASES[t['phase']]} takes {number(t['seconds'], 2)} s of a batch, {usual}"


def _skew(t: dict[str, Any]) -> str:
    worth = f"{t['tasks']} tasks do the work of {number(t['parallel'], 1)}"
    return (
        f"A skewed key: the slowest task takes {number(t['skew'], 1)} times as long as the median, {worth}. No "
        "executor helps; split the key, or aggregate in two steps"
    )


_WORDS = {
    "ceiling": _ceiling, "trigger": _trigger, "partitions": _partitions, "memory": _memory, "sink": _sink,
    "overhead": _overhead, "skew": _skew,
}  # fmt: skip


def advice_to_json(job: str, seen: MeasuredJob, advice: Advice) -> dict[str, Any]:
    """Convert advice to JSON values.

    Returns:
        `job`, `advised` (the first kind), `now` and per entry of `tried` `late` (share), `executor_hours` and `money`
        (None without a price); `tried` has `kind`, `gain` (share of the cost) and `told` too; `unknown` in words.
    """
    return {
        "job": job, "advised": advice.first, "now": _cost(advice.now, seen),
        "tried": [
            {"kind": one.change.kind, "gain": round(one.gain, 4), "told": one.change.told, **_cost(one.cost, seen)}
            for one in advice.tried
        ],
        "unknown": unknowns(seen),
    }  # fmt: skip


def _cost(cost: Cost, seen: MeasuredJob) -> dict[str, float | None]:
    hours, price = cost.executor_s / 3600, seen.contract.price_per_executor_hour
    money = None if price is None else round(hours * price, 4)
    return {"late": round(cost.late, 5), "executor_hours": round(hours, 4), "money": money}
