"""Two estimates of a job's capacity on the batches of recorded runs: the learned batch time, and the Gamma posterior.

After each batch both predict the next 20, whose records and executors are given. The posterior is the spec's: busy time
is a batch's time without its fixed part, which a regression on the newest batches tells; "shared" is the same posterior
with the fixed part of the learned batch time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from configs.contract import Contract
from models.contract.service_rate import CERTAIN, ServiceRate
from models.policy.core.batch_time import BatchTime
from models.policy.core.capacity import parallelism
from models.policy.core.rate_spread import slot_quantile, time_factor
from models.policy.live.applications import with_application
from models.policy.live.memory import Memory, fresh, with_batch, with_interval, with_outcome
from pipelines.report.recorded.lines import RunError, json_lines, json_object
from pipelines.scale.written import with_decision
from tidecast.messages import Decision, MetricSample, Outcome, decode

AHEAD, WARM_UP, NEWEST = 20, 10, 100
"""Batches that are predicted; batches before the first prediction; batches that the regression goes by."""
ESTIMATES = ("batch_time", "gamma", "gamma_shared")
_KINDS: dict[str, Any] = {"metrics": MetricSample, "outcomes": Outcome, "decisions": Decision}


class Step(NamedTuple):
    """A batch as live scaling saw it, what it then knew, and whether the batch taught it anything."""

    rows: float
    slots: float
    duration_s: float
    executors: int
    known: BatchTime
    scatter: float
    warm: bool


def read_steps(folder: Path) -> tuple[Contract, list[Step]]:
    """Read a run's metrics, outcomes and decisions, and run them through the autoscaler's memory, as live.

    Raises:
        RunError: a file of the run is missing or broken.
        KeyError, ValueError: a message lacks a field, or the run's contract is invalid.
    """
    info = json_object(folder / "run.json")
    contract = Contract.model_validate(info["contract"])
    told = [
        decode(kind, json.dumps(row))  # with the fields that are unknown
        for topic, kind in _KINDS.items() for row in json_lines(folder / f"{topic}.jsonl") if row["job"] == info["job"]
    ]  # fmt: skip
    return contract, list(_steps(contract, sorted(told, key=lambda message: message.wall_time)))


def _steps(contract: Contract, told: Iterable[Any]) -> Iterator[Step]:
    memory: Memory = fresh(contract)
    for message in told:
        row = vars(message)
        if isinstance(message, Decision):
            memory = with_decision(memory, message)
            continue
        if isinstance(message, Outcome):
            memory = with_outcome(memory, row, contract)
            continue
        if row["kind"] == "interval":
            memory = with_application(memory, with_interval(memory, row), row)
            continue
        before, memory = memory, with_batch(memory, row, contract)
        executors = row["executors"] or before.executors or 0
        slots = parallelism(executors, contract.executors.cores, before.ceiling(contract)) ** contract.planning.scaling
        if row["batch_rows"] and row["batch_s"] and slots > 0:
            warm = memory.model is not before.model
            yield Step(row["batch_rows"], slots, row["batch_s"], executors, memory.model, memory.scatter, warm)


class Believed(NamedTuple):
    """What an estimate says of a job: overhead of a batch; service rate of a slot and its 5 % and 95 % quantiles."""

    overhead_s: float
    slot_rps: float
    low_rps: float
    high_rps: float


def follow(contract: Contract, steps: Sequence[Step]) -> Iterator[tuple[int, dict[str, Believed]]]:
    """Yield, after each batch, how many batches ago the executors changed, and what each estimate believes."""
    planning = contract.planning
    spec = shared = ServiceRate.prior(1 / planning.per_record_s)
    seen: list[tuple[float, float]] = []
    executors, since = steps[0].executors if steps else 0, 10**6
    for step in steps:
        since += 1
        if step.executors != executors:
            spec, shared = (rate.changed(step.executors > executors) for rate in (spec, shared))
            executors, since = step.executors, 0
        known, overhead_s = step.known, _fitted_overhead(seen, planning.overhead_s)
        if step.warm:
            seen.append((step.rows / step.slots, step.duration_s))
            overhead_s = _fitted_overhead(seen, planning.overhead_s)
            spec = spec.observed(step.rows, max(step.duration_s - overhead_s, 0.0) * step.slots)
            shared = shared.observed(step.rows, max(step.duration_s - known.overhead_s, 0.0) * step.slots)
        low, high = (slot_quantile(known, step.scatter, level) for level in (CERTAIN, 1 - CERTAIN))
        yield (
            since,
            {
                "batch_time": Believed(known.overhead_s, 1 / known.per_record_s, low, high),
                "gamma": _posterior(spec, overhead_s),
                "gamma_shared": _posterior(shared, known.overhead_s),
            },
        )


def _posterior(rate: ServiceRate, overhead_s: float) -> Believed:
    return Believed(overhead_s, rate.mean, rate.quantile(CERTAIN), rate.quantile(1 - CERTAIN))


def _fitted_overhead(seen: Sequence[tuple[float, float]], guess_s: float) -> float:
    """The fixed part by regression of time on work; the guess until ten batches of different work are known."""
    work, duration = np.array(seen[-NEWEST:]).reshape(-1, 2).T
    if len(work) < 10 or not np.ptp(work) > 0:
        return guess_s
    return max(float(np.polyfit(work, duration, 1)[1]), 0.01)


def judge_run(folder: Path) -> list[dict[str, Any]]:
    """Judge each prediction of a run: a row per batch and estimate, its error as a share, and whether quantiles held.

    Raises:
        RunError, KeyError, ValueError: as `read_steps`.
    """
    contract, steps = read_steps(folder)
    rows = []
    for at, (since, believed) in enumerate(follow(contract, steps)):
        ahead = steps[at + 1 : at + 1 + AHEAD]
        if at < WARM_UP or len(ahead) < AHEAD:
            continue
        work, took = (np.array(one) for one in zip(*((x.rows / x.slots, x.duration_s) for x in ahead), strict=True))
        for name, one in believed.items():
            expected = one.overhead_s + work / one.slot_rps
            busy_s = math.fsum(max(x.duration_s - one.overhead_s, 0.0) * x.slots for x in ahead)
            rate = sum(x.rows for x in ahead) / busy_s if busy_s > 0 else math.inf
            total = float(took.sum() / expected.sum())
            factors = [time_factor(steps[at].scatter, level) for level in (CERTAIN, 1 - CERTAIN)]
            rows.append({
                "run": folder.name, "estimate": name, "changed": since < AHEAD,
                "error": float(np.mean(np.abs(expected / took - 1))), "bias": total,
                "above_low": rate >= one.low_rps, "below_high": rate <= one.high_rps,
                "low_share": one.low_rps / one.slot_rps,
                "spreads": math.log(rate / one.slot_rps) / math.sqrt(steps[at].scatter) if busy_s > 0 else math.nan,
                "time_above_low": total >= factors[0], "time_below_high": total <= factors[1],
            })  # fmt: skip
    return rows


def measure_capacity(folders: Sequence[Path], say: Any = lambda line: None) -> dict[str, Any]:
    """Judge both estimates on recorded runs; those that cannot be read are told and passed over.

    Raises:
        RunError: no run could be read, or none has enough batches.
    """
    rows: list[dict[str, Any]] = []
    for folder in folders:
        try:
            rows += judge_run(folder)
        except (RunError, KeyError, ValueError) as error:
            say(f"{folder.name}: passed over: {error}")
    runs = sorted({row["run"] for row in rows})
    if not rows:
        raise RunError(f"no run of {len(folders)} has {WARM_UP + AHEAD} batches. Name folders of finished runs.")
    found = {name: _summary([row for row in rows if row["estimate"] == name]) for name in ESTIMATES}
    better = {
        run: _mean(rows, "error", estimate="gamma", run=run) - _mean(rows, "error", estimate="batch_time", run=run)
        for run in runs
    }
    chance = np.random.default_rng(7)
    drawn = np.mean(chance.choice(list(better.values()), (2000, len(runs))), axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return {
        **found, "runs": len(runs), "crossed": _cross(rows, runs), "by_run": better,
        "gain": float(np.mean(list(better.values()))), "gain_low": low, "gain_high": high,
    }  # fmt: skip


def _cross(rows: Sequence[dict[str, Any]], runs: Sequence[str]) -> dict[str, float]:
    """Coverage of the batch time's quantiles in each half of the runs, with constants from the other half."""
    kept = [row for row in rows if row["estimate"] == "batch_time" and math.isfinite(row["spreads"])]
    spreads, odd = (
        np.array(one) for one in zip(*((r["spreads"], runs.index(r["run"]) % 2) for r in kept), strict=True)
    )
    above, below = [], []
    for half in (0, 1):
        if not len(spreads[odd == half]) or not len(spreads[odd != half]):
            continue
        low, high = np.quantile(spreads[odd != half], [CERTAIN, 1 - CERTAIN])
        above += (spreads[odd == half] >= low).tolist()
        below += (spreads[odd == half] <= high).tolist()
    said = {"above_low": float(np.mean(above)), "below_high": float(np.mean(below))} if above else {}
    return {**said, **{f"{name}_miss": value - (1 - CERTAIN) for name, value in said.items()}}


def _summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    said = {name: _mean(rows, name) for name in rows[0] if name not in ("run", "estimate", "changed", "spreads")}
    after = [row for row in rows if row["changed"]]
    names = ("error", "above_low", "below_high") if after else ()
    return {
        **said, "low_miss": said["above_low"] - (1 - CERTAIN), "high_miss": said["below_high"] - (1 - CERTAIN),
        "n": len(rows), "after_change": {**{name: _mean(after, name) for name in names}, "n": len(after)},
    }  # fmt: skip


def _mean(rows: Sequence[dict[str, Any]], name: str, **only: str) -> float:
    return float(np.mean([row[name] for row in rows if all(row[key] == value for key, value in only.items())]))
