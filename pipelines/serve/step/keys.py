"""The names under which the fast path keeps its objects, and the version that a window of time has."""

from __future__ import annotations

import math

_GRAIN = 1e-6  # of a window: what float times of today may lack to its begin


def sample_key(job: str, step_s: float) -> str:
    """Closed windows of a job's load."""
    return f"/sample/{job}/all/{step_s:g}"


def state_key(job: str, step_s: float) -> str:
    """What a job's model carries from window to window."""
    return f"/state/{job}/all/{step_s:g}"


def checkpoint_key(job: str, step_s: float) -> str:
    """A state that is too large to be kept at every window."""
    return f"/checkpoint/{job}/all/{step_s:g}"


def forecast_key(job: str, step_s: float) -> str:
    """A job's forecasts; the version is that of the window they were made after."""
    return f"/forecast/{job}/all/{step_s:g}"


def set_prefix(job: str) -> str:
    """The affinity set of a job's model."""
    return f"/model/{job}"


def active_key(job: str) -> str:
    """Which model of a job serves from which window on; the version is the generation."""
    return f"/active/{job}"


def intent_key(job: str) -> str:
    """The same, on the disk before it is in force."""
    return f"/intent/{job}"


def filling_name(job: str) -> str:
    """Under which the window in progress is kept beside the objects."""
    return f"filling:{job}"


def quarantine_key(topic: str) -> str:
    """Records of a topic that could not be accepted, counted up."""
    return f"/quarantine/{topic}"


def window_of(time: float, step_s: float) -> int:
    """Return the index of the window that a time (epoch seconds) lies in, counted from the epoch."""
    return math.floor(time / step_s + _GRAIN)
