"""The names under which the fast path keeps its objects, and the version that a window of time has."""

from __future__ import annotations

import math

_GRAIN = 1e-6  # of a window: what float times of today may lack to its begin


def sample_key(job: str, step_s: float) -> str:
    """Return the store key of a job's closed windows; their version is the window index."""
    return f"/sample/{job}/all/{step_s:g}"


def state_key(job: str, step_s: float) -> str:
    """Return the store key of what a job's model carries from window to window; version: window index."""
    return f"/state/{job}/all/{step_s:g}"


def checkpoint_key(job: str, step_s: float) -> str:
    """Return the store key of a model state too large to be kept at every window; version: window index."""
    return f"/checkpoint/{job}/all/{step_s:g}"


def forecast_key(job: str, step_s: float) -> str:
    """Return the store key of a job's forecasts; version: index of the window they were made after."""
    return f"/forecast/{job}/all/{step_s:g}"


def set_prefix(job: str) -> str:
    """Return the name of the affinity set of a job's model, under which its three members lie."""
    return f"/model/{job}"


def active_key(job: str) -> str:
    """Return the store key of a job's model swaps that have taken effect; version: number of the deployment."""
    return f"/active/{job}"


def intent_key(job: str) -> str:
    """Return the store key of a job's model swaps, stored before they take effect; version: as `active_key`."""
    return f"/intent/{job}"


def open_window_name(job: str) -> str:
    """Return the meta name under which a job's window in progress is stored."""
    return f"filling:{job}"


def quarantine_key(topic: str) -> str:
    """Return the store key of a topic's refused records; versions count up from 1."""
    return f"/quarantine/{topic}"


def window_of(time: float, step_s: float) -> int:
    """Return the index of the window that a time (epoch seconds) lies in, counted from the epoch."""
    return math.floor(time / step_s + _GRAIN)
