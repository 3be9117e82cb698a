"""How a run went as a whole: the report of the unified batch-stream runtime, section 15, for a run on the real engine.

The main job's results are exact, so that a run has no error; counts from a sample are held against their bound by
`tidecast bench backfill`, which describes its sessions by the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipelines.html.document import NOWRAP, NUMBER, PLAIN, row, table
from pipelines.html.numbers import number
from pipelines.report.measures import RunMeasures, lost_executors

Floats = NDArray[np.float64]

MEANINGS = {
    "latency_s": (
        "Latency", "s", "production of a live record to its commit, or to the end if it never came to one; quantiles "
        "over all of them",
    ),
    "watermark_lag_s": ("Watermark lag", "s", "event time now less the query's watermark, at each commit of live load"),
    "memory_mb": ("Memory high-water", "MB", "of all processes together"),
    "recovery_s": (
        "Recovery", "s", "from a lost executor, or from the last commit before a restart (the first record after it, "
        "if nothing came), to the end of the late seconds that follow it",
    ),
    "live_recovery_s": (
        "Live latency after the replay", "s", "from its end until a second's slowest live record is no slower than "
        "95 % of those before its order, or to the end of live load if none is",
    ),
    "throughput_rps": ("Throughput", "records/s", "committed live records; mean, and the most in any 10 s"),
    "busy_core_s": ("Energy", "busy core-seconds", "run time of the query's tasks; what a core draws is not measured"),
    "moves_per_h": ("Control moves", "per hour", "changes of executors, replay rate and live admission, wall time"),
    "error_of_bound": (
        "Error ÷ bound", "", "of approximate results, absolute; none where results are exact, infinite of one that is "
        "wrong and claims to be exact",
    ),
}  # fmt: skip
"""Each figure's title, unit and meaning."""
RELATED_S = 30.0
"""Late seconds that begin so soon after a failure are counted as its."""
MOST_OVER_S = 10
CONTROLS = ("executors", "replay_rps", "admission_rps")


@dataclass(frozen=True, eq=False)
class Operation:
    """What a run or a session of a bench recorded of itself; times are seconds since its begin.

    Attributes:
        live_s: how long it took.
        made_s, committed_s: (N,) of the live records; inf for never.
        watermark_lag_s: (B,) at each commit of live load, NaN without a watermark.
        failed_s: of lost executors, of the last sign before a restart, and of whatever else was done to it.
        slowest_s: (S,) latency of the slowest live record that was made in a second; NaN where none was.
        target_s: latency from which on a record is late.
        busy_s: (T,) run times of the query's tasks.
        asked: what one decision after another asks for, by control.
        memory_mb: most memory of all processes; None: not told.
        live_recovery_s: as in `MEANINGS`; None: there was no replay, or no live record before its order or after its
            end.
        error, bound: (W,) of approximate results, absolute error and half width of the bound; None: they are exact.
    """

    live_s: float
    made_s: Floats
    committed_s: Floats
    watermark_lag_s: Floats
    failed_s: Sequence[float]
    slowest_s: Floats
    target_s: float
    busy_s: Floats
    asked: Mapping[str, Sequence[Any]]
    memory_mb: float | None = None
    live_recovery_s: float | None = None
    error: Floats | None = None
    bound: Floats | None = None


def describe_operation(one: Operation) -> dict[str, Any]:
    """Return the figures of `MEANINGS` as JSON values; None for what was not recorded.

    Quantiles, rates and errors are dicts by name, all else is a number.

    Raises:
        ZeroDivisionError: it lasted no time.
    """
    moves = sum(a != b for asked in one.asked.values() for a, b in pairwise(asked))
    return {
        "latency_s": _quantiles(np.minimum(one.committed_s, one.live_s) - one.made_s, p50=50, p95=95, p99=99),
        "watermark_lag_s": _quantiles(one.watermark_lag_s, p50=50, most=100),
        "memory_mb": one.memory_mb,
        "recovery_s": max((_late_until(one.slowest_s, one.target_s, at) for at in one.failed_s), default=None),
        "live_recovery_s": one.live_recovery_s,
        "throughput_rps": _throughput(one.committed_s, one.live_s),
        "busy_core_s": round(float(one.busy_s.sum()), 1),
        "moves_per_h": round(3600 * moves / one.live_s, 1),
        "error_of_bound": _errors(one.error, one.bound),
    }


def measure_operation(measured: RunMeasures) -> dict[str, Any]:
    """Return what `describe_operation` says of a run.

    Raises:
        KeyError: a message lacks a field.
        ZeroDivisionError: the run lasted no time.
    """
    run, live_s = measured.run, measured.live_end - measured.run.start
    made = run.produced["produced_at"].to_numpy(float)
    during = (run.batches.committed >= run.start) & (run.batches.committed <= measured.live_end)
    clock_s = run.start + (run.batches.watermarks[during] - run.clock.at(run.start)) / run.clock.scale
    busy = run.tasks[run.tasks["end"].between(run.start, measured.live_end)]
    return describe_operation(Operation(
        live_s, made - run.start, measured.committed - run.start, run.batches.committed[during] - clock_s,
        _failures(measured), measured.seconds["latency_max_s"].to_numpy(float), run.contract.latency_target_s,
        (busy["end"] - busy["start"]).to_numpy(float), asked_of(measured.acts), run.info.get("peak_memory_mb"),
        _live_recovery(measured, measured.committed - made),
    ))  # fmt: skip


def asked_of(decisions: pd.DataFrame) -> dict[str, list[Any]]:
    """Return what decisions ask for, one after another, by control: executors, replay rate, live admission."""
    names = [name for name in CONTROLS if name in decisions]
    columns = (decisions[name].astype(object).where(decisions[name].notna(), None).tolist() for name in names)
    return dict(zip(names, columns, strict=True))


def operation_table(found: dict[str, Any]) -> str:
    """Return an HTML table of the figures, each with what it means."""
    kinds = [NOWRAP, NUMBER, NOWRAP, PLAIN]
    rows = [row([title, _shown(found[key]), unit, text], kinds) for key, (title, unit, text) in MEANINGS.items()]
    return table(["figure", "here", "", "what it means"], kinds, rows)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "<br>".join(f"{name} {number(one, 1)}" for name, one in value.items())
    return number(value, 1 if isinstance(value, float) else 0)


def _quantiles(values: Floats, **levels: float) -> dict[str, float | None]:
    finite = values[np.isfinite(values)]
    if not len(finite):
        return dict.fromkeys(levels)
    return {name: round(float(np.percentile(finite, level)), 3) for name, level in levels.items()}


def _failures(measured: RunMeasures) -> list[float]:
    """Seconds at which a run lost an executor, or since which the query is missed that began again.

    Nobody writes down when a query ended. It was there at its last commit, and no record that came since was committed.
    """
    run, made_at = measured.run, measured.run.produced["produced_at"].to_numpy(float)
    found = [at - run.start for at in run.executors["removed"][lost_executors(measured)]]
    for batch, (before, after) in enumerate(pairwise(run.batches.runs)):
        if before != after and run.start <= run.batches.started[batch + 1] <= measured.live_end:
            last = run.batches.committed[batch]
            waiting = made_at[measured.committed > last]
            found.append(max(last, run.start, waiting.min() if len(waiting) else last) - run.start)
    return found


def _late_until(slowest_s: Floats, target_s: float, at_s: float) -> float:
    """Seconds from a failure to the end of the late seconds that follow it; 0 where none does.

    Seconds without a record are neither late nor the end of those that are.
    """
    late = np.flatnonzero(slowest_s > target_s)
    soon = late[(late >= int(at_s)) & (late < int(at_s + RELATED_S))]
    if not len(soon):
        return 0.0
    quick = np.flatnonzero(slowest_s <= target_s)
    until = quick[quick > soon[0]].min(initial=len(slowest_s))
    return round(float(late[late < until][-1] + 1) - at_s, 1)


def _live_recovery(measured: RunMeasures, latency: Floats) -> float | None:
    """Seconds from the end of a run's replay until live records are as quick as without it, or to the end of them."""
    told = measured.run.backfill
    if told is None or told.done_at is None or told.ordered_at is None:
        return None
    made_at = measured.run.produced["produced_at"].to_numpy(float)
    alone = latency[(made_at < told.ordered_at) & np.isfinite(latency)]
    after = measured.seconds["latency_max_s"].iloc[max(math.floor(told.done_at - measured.run.start), 0) :]
    if not len(alone) or after.isna().all():
        return None
    quick = np.flatnonzero(after.to_numpy() <= np.percentile(alone, 95))
    return float(quick[0] if len(quick) else len(after))


def _throughput(committed_s: Floats, live_s: float) -> dict[str, float]:
    at = committed_s[np.isfinite(committed_s)]
    counts = np.bincount(np.clip(at, 0, None).astype(np.int64), minlength=MOST_OVER_S)
    most = np.convolve(counts, np.ones(MOST_OVER_S), mode="valid").max() / MOST_OVER_S
    return {"mean": round(len(at) / live_s, 1), "most": round(float(most), 1)}


def _errors(error: Floats | None, bound: Floats | None) -> dict[str, float] | None:
    """Of the results that are not exact; infinite of one whose bound is 0 all the same."""
    if error is None or bound is None or not (told := (bound > 0) | (error > 0)).any():
        return None
    with np.errstate(divide="ignore"):
        share = error[told] / bound[told]
    return {"p50": round(float(np.median(share)), 3), "most": round(float(share.max()), 3)}
