"""Which of the forecasts that arrive is held in a job's memory, and how fresh it is: pure steps."""

from __future__ import annotations

from typing import Any

from models.policy.copies import copy_with
from models.policy.live.memory import Memory
from models.policy.received.silence import is_refuted

SILENT_S = 30.0
"""Wall seconds without a heartbeat (one per 10 s) or forecast after which a server is taken for gone."""
AHEAD_S = 60.0
"""Wall seconds that a forecast's time may lie after the job's; beyond, it is ignored."""


def with_forecast(memory: Memory, forecast: dict[str, Any]) -> Memory:
    """Return the memory after one more forecast, held or ignored.

    Of two forecasts that of the higher "epoch" (fencing number of the server) is held, at equal epochs the one of later
    "time". One that begins over 60 wall seconds ahead of the job's time is ignored. A held one that no server has
    confirmed for 30 wall seconds is replaced in any case. What a new one tells of the step that has ended (`last_rps`)
    may refute the one held before it (`is_refuted`).

    Args:
        memory: so far; not changed.
        forecast: "wall_time" (epoch seconds), "time" (job seconds) and "epoch" are read, all fields are held.

    Raises:
        KeyError: one of these is missing, or "quantiles", "levels" or "step_s" where a "last_rps" is not.
    """
    held = memory.forecast
    if begins_too_late(memory, forecast):
        return memory
    stands = held and forecast["wall_time"] - held["wall_time"] <= SILENT_S and not begins_too_late(memory, held)
    if stands and (forecast["epoch"], forecast["time"]) < (held["epoch"], held["time"]):
        return memory
    return copy_with(memory, forecast=forecast, refuted=_refuted(memory, forecast))


def begins_too_late(memory: Memory, forecast: dict[str, Any]) -> bool:
    """Return whether a forecast begins over 60 wall seconds after the job's own time; False before any metrics.

    Args:
        memory: of the job.
        forecast: its "wall_time" (epoch seconds) and "time" (job seconds) are read.

    Raises:
        KeyError: one of them is missing.
    """
    if memory.metric_at is None:
        return False
    shown = max(memory.metric_time, memory.job_s(forecast["wall_time"]))
    return bool(forecast["time"] > shown + AHEAD_S * memory.time_scale)


def _refuted(memory: Memory, forecast: dict[str, Any]) -> bool:
    """Whether forecasts are refuted, now that a new one tells what the step before it came to."""
    held, came_rps = memory.forecast, forecast.get("last_rps")
    if not held or came_rps is None or held["step_s"] != forecast["step_s"]:
        return memory.refuted
    step = round((forecast["time"] - held["time"]) / held["step_s"]) - 1
    if not 0 <= step < len(held["quantiles"]):
        return memory.refuted
    lowest = min(range(len(held["levels"])), key=lambda at: held["levels"][at])
    step_s = held["step_s"] / memory.time_scale
    return is_refuted(memory.refuted, held["quantiles"][step][lowest], came_rps, step_s)


def with_heartbeat(memory: Memory, beat: dict[str, Any]) -> Memory:
    """Return the memory after a heartbeat: one of the server of the held forecast makes that as fresh as the heartbeat.

    Args:
        memory: so far; not changed.
        beat: "by" (service), "standing" (the server's epoch, its fencing number, as text), "wall_time" (epoch seconds);
            those not by "serving", or of another epoch, change nothing.

    Raises:
        KeyError: a field is missing, there or in the held forecast.
    """
    held = memory.forecast
    if not held or beat["by"] != "serving" or beat["standing"] != str(held["epoch"]):
        return memory
    return copy_with(memory, forecast={**held, "wall_time": max(held["wall_time"], beat["wall_time"])})
