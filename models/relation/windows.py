"""Windows as parts of keys, and from which watermark on a key is done with."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

from models.relation.records import END_OF_TIME, Fact, RelationError


class Span(NamedTuple):
    """A window [start, end) of event time, ms."""

    start: int
    end: int


class WindowedKey(NamedTuple):
    """A key within a window: what window operators make of a key, and aggregates and joins close by.

    A rekey that is to stay in the window keeps it: `WindowedKey(k.window, other)`; an equal plain tuple is in no
    window. One that drops it puts the records back under their own event times, and an aggregate behind it has its
    result at the end of the input.
    """

    window: Span
    key: Hashable


def end_of(k: Any) -> float:
    """Return the watermark, ms, from which on a key's window is final: its end; +inf for a key in no window."""
    return k.window.end if isinstance(k, WindowedKey) else math.inf


def result_time(k: Any) -> int:
    """Return the event time of a result under a key: its window's last ms, as in Beam, Flink and Spark's `window_time`.

    A key in no window has its result at `END_OF_TIME`, as in Beam's global window. Thus results fall into the larger
    windows of a second stage that hold theirs, and meet their retractions.
    """
    return k.window.end - 1 if isinstance(k, WindowedKey) else END_OF_TIME


def last_instant(fact: Fact) -> float:
    """Return the event time, ms, that a fact counts as for a watermark: its window's last ms; its own if in none."""
    k, _, t_e = fact
    return k.window.end - 1 if isinstance(k, WindowedKey) else t_e


def check_time(t_e: int) -> int:
    """Return an event time that can lie in a window.

    Raises:
        RelationError: it is that of a result over all time.
    """
    if t_e == END_OF_TIME:
        raise RelationError(
            f"event time {t_e}: that of an aggregate over all time, which lies in no window; put the window before the"
            " aggregate, or leave it out"
        )
    return t_e


def spans_at(t_e: int, size_ms: int, slide_ms: int) -> list[Span]:
    """Return the windows with start ≤ t_e < start + size, earliest first; starts are multiples of the slide."""
    newest = check_time(t_e) // slide_ms * slide_ms
    starts = range(newest, t_e - size_ms, -slide_ms)
    return [Span(start, start + size_ms) for start in reversed(starts)]
