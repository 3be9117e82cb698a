"""How a run went as a whole: the report of the unified batch-stream runtime, section 15, for a run on the real engine.

Its error against its bound is left out: results are exact but for those of a plan that estimates, which carry their
bounds. How often these hold is a row of `tidecast bench backfill`, for counts from a sample, and for the others tested.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.html.document import NOWRAP, NUMBER, PLAIN, row, table
from pipelines.html.numbers import number
from pipelines.report.measures import RunMeasures, lost_executors

Floats = NDArray[np.float64]

MEANINGS = {
    "latency_s": ("Latency", "s", "production of a live record to its commit; quantiles over all of them"),
    "watermark_lag_s": ("Watermark lag", "s", "event time now less the query's watermark, at each commit of live load"),
    "memory_mb": ("Memory high-water", "MB", "of all processes together"),
    "recovery_s": ("Recovery", "s", "from a lost executor or a restart to the end of the late seconds that follow it"),
    "live_recovery_s": (
        "Live latency after the replay", "s", "from its end until a second's slowest live record is no slower than "
        "95 % of those before its order",
    ),
    "throughput_rps": ("Throughput", "records/s", "committed live records; mean, and the most in any 10 s"),
    "busy_core_s": ("Energy", "busy core-seconds", "run time of the query's tasks; what a core draws is not measured"),
    "moves_per_h": ("Control moves", "per hour", "changes of executors, replay rate and live admission, wall time"),
}  # fmt: skip
"""Each figure's title, unit and meaning."""
RELATED_S = 30.0
"""Late seconds that begin so soon after a failure are counted as its."""
MOST_OVER_S = 10


def measure_operation(measured: RunMeasures) -> dict[str, Any]:
    """Return the figures of `MEANINGS` as JSON values; None for what a run does not tell.

    Quantiles and rates are dicts by name, all else is a number.

    Raises:
        KeyError: a message lacks a field.
        ZeroDivisionError: the run lasted no time.
    """
    run, live_s = measured.run, measured.live_end - measured.run.start
    latency = measured.committed - run.produced["produced_at"].to_numpy(float)
    during = (run.batches.committed >= run.start) & (run.batches.committed <= measured.live_end)
    clock_s = run.start + (run.batches.watermarks[during] - run.clock.at(run.start)) / run.clock.scale
    lag = run.batches.committed[during] - clock_s
    busy = run.tasks[run.tasks["end"].between(run.start, measured.live_end)]
    return {
        "latency_s": _quantiles(latency, p50=50, p95=95, p99=99),
        "watermark_lag_s": _quantiles(lag, p50=50, most=100),
        "memory_mb": run.info.get("peak_memory_mb"),
        "recovery_s": _worst(_recoveries(measured)),
        "live_recovery_s": _live_recovery(measured, latency),
        "throughput_rps": _throughput(measured.committed, run.start, live_s),
        "busy_core_s": round(float((busy["end"] - busy["start"]).sum()), 1),
        "moves_per_h": round(3600 * _moves(measured) / live_s, 1),
    }


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


def _worst(values: Iterable[float]) -> float | None:
    return max(values, default=None)


def _recoveries(measured: RunMeasures) -> list[float]:
    """Seconds from each failure to the end of the late seconds that follow it; 0 where none does."""
    run = measured.run
    lost = run.executors["removed"][lost_executors(measured)].tolist()
    first_of_run = np.array([a != b for a, b in pairwise(run.batches.runs)], bool)
    restarted = run.batches.started[1:][first_of_run]
    late = (measured.seconds["latency_max_s"] > run.contract.latency_target_s).to_numpy()
    return [_late_until(late, at - run.start) for at in [*lost, *restarted] if run.start <= at <= measured.live_end]


def _late_until(late: NDArray[np.bool_], at_s: float) -> float:
    soon = np.flatnonzero(late[int(at_s) : int(at_s + RELATED_S)])
    if not len(soon):
        return 0.0
    begin = int(at_s) + int(soon[0])
    again = np.flatnonzero(~late[begin:])
    return round(float(begin + again[0] if len(again) else len(late)) - at_s, 1)


def _live_recovery(measured: RunMeasures, latency: Floats) -> float | None:
    """Seconds from the end of a run's replay until live records are as quick as without it; None without any."""
    told = measured.run.backfill
    if told is None or told.done_at is None or told.ordered_at is None:
        return None
    made_at = measured.run.produced["produced_at"].to_numpy(float)
    alone = latency[(made_at < told.ordered_at) & np.isfinite(latency)]
    after = measured.seconds["latency_max_s"].iloc[max(math.floor(told.done_at - measured.run.start), 0) :].dropna()
    if not len(alone) or not len(after):
        return None
    quick = np.flatnonzero(after.to_numpy() <= np.percentile(alone, 95))
    return float(quick[0]) if len(quick) else None


def _throughput(committed: Floats, start: float, live_s: float) -> dict[str, float]:
    at = committed[np.isfinite(committed)] - start
    counts = np.bincount(np.clip(at, 0, None).astype(np.int64), minlength=MOST_OVER_S)
    most = np.convolve(counts, np.ones(MOST_OVER_S), mode="valid").max() / MOST_OVER_S
    return {"mean": round(len(at) / live_s, 1), "most": round(float(most), 1)}


def _moves(measured: RunMeasures) -> int:
    """Changes of what the decisions ask for: executors, replay rate, live admission."""
    acts, count = measured.acts, 0
    for name in ("executors", "replay_rps", "admission_rps"):
        if name in acts:
            asked = acts[name].astype(object).where(acts[name].notna(), None).tolist()
            count += sum(a != b for a, b in pairwise(asked))
    return count
