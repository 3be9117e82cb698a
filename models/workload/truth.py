"""What a workload's records come to, exactly: count, sum, distinct values and greatest values per window and key."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.workload.generator import SignedRecords
from models.workload.refusal import refuse_unless

Ints = NDArray[np.int64]


class WindowTruth(NamedTuple):
    """Of a key in a window: net number of records, their sum, how many values there are, the greatest ones.

    Values whose net is not above 0 are not there; the greatest are each as often as their net.
    """

    records: int
    total: int
    distinct: int
    top: tuple[int, ...]


class WindowKey(NamedTuple):
    """A window [start, end), ms since the epoch, and a key."""

    start: int
    end: int
    key: int


def truth_of(
    records: SignedRecords, size_ms: int, slide_ms: int | None = None, top: int = 10
) -> dict[WindowKey, WindowTruth]:  # fmt: skip
    """Return the truth of every window and key whose net is above 0.

    Args:
        records: in any order.
        size_ms: of a window.
        slide_ms: from one window's start to the next, at most the size; None: the size.
        top: how many of the greatest values.

    Raises:
        WorkloadError: size, slide or top make no sense.
    """
    slide = size_ms if slide_ms is None else slide_ms
    refuse_unless(0 < slide <= size_ms, f"size {size_ms} ms, slide {slide} ms", "0 < slide <= size")
    refuse_unless(top >= 1, f"top={top}", "1 or more")
    start, at = _windows(records.t_e, size_ms, slide)
    facts = np.stack([start, records.key[at], records.value[at]])
    unique, group_of = np.unique(facts, axis=1, return_inverse=True)
    net = np.bincount(group_of.ravel(), records.mult[at], unique.shape[1]).astype(np.int64)
    found: dict[WindowKey, WindowTruth] = {}
    # Sorted as they are, the facts of a window and key lie side by side, by value.
    begins = np.flatnonzero(np.diff(unique[:2], axis=1, prepend=unique[:2, :1] - 1).any(axis=0))
    for begin, end in pairwise([*begins.tolist(), unique.shape[1]]):
        nets, values = net[begin:end], unique[2, begin:end]
        count = int(nets.sum())
        if count > 0:
            its = WindowKey(int(unique[0, begin]), int(unique[0, begin]) + size_ms, int(unique[1, begin]))
            there = np.maximum(nets, 0)
            greatest = np.repeat(values[::-1], np.minimum(there, top)[::-1])[:top]
            found[its] = WindowTruth(
                count, int((nets * values).sum()), int((there > 0).sum()), tuple(greatest.tolist())
            )
    return found


def _windows(t_e: Ints, size: int, slide: int) -> tuple[Ints, Ints]:
    """Starts of the windows that hold each time, and the places of the times in them."""
    newest = t_e - t_e % slide
    starts, places = [], []
    for back in range(-(-size // slide)):
        start = newest - back * slide
        held = np.flatnonzero(start > t_e - size)
        starts.append(start[held])
        places.append(held)
    return np.concatenate(starts), np.concatenate(places)
