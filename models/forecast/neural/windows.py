"""Input rows of the recurrent networks: recent changes of the load, and those that past seasons lead to expect."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.forecast.core.forecaster import Task, fill_gaps
from models.forecast.core.series import Floats, Series, SeriesError

Packed = NDArray[np.float32]
RECENT = 24
"""Newest moves read at each step."""
BEHIND, BESIDE = 6, 2
"""Steps of a season read before the present one, and beside the steps to forecast."""
FAST = 12
"""Steps over which the newest volatility is taken; the usual one is taken over a day."""
STATES = 3
"""Channels after the moves: level (newest ÷ the day's), log volatility, log of the newest ÷ the usual one."""
SEEN = 0.5
"""A row of whose newest steps a smaller share was known is not trained on."""
MOST = 20_000
"""Newest rows of a history that are read, at most: what lies further back is forgotten."""
BREAK = 1.25
"""Last week's steps count in proportion where the day's mean root rate has changed by more than this factor."""
MOST_CHANGE = 10.0
"""That factor is cut to this, and to its inverse."""
LEAST = 1e-3
"""Root of records/s: a day's mean below it counts as this, and a row after such a day is not trained on."""
CALM, FAST_CALM = 1e-4, 0.1
"""Of the unit, and of the usual volatility: usual and newest volatility below it count as this."""


@dataclass(frozen=True)
class PastWindow:
    """What of the past a network reads.

    Attributes:
        task: what is forecast.
        season: steps of the longest season it reads, a week or a day.
    """

    task: Task
    season: int

    @property
    def needs(self) -> int:
        """Steps of history before a forecast can be made, the newest included."""
        before = self.task.day if self.season > self.task.day else 0
        return max(self.season + max(BEHIND + 1, before), RECENT + 1)

    @cached_property
    def moves(self) -> list[tuple[int, int]]:
        """The moves of a row as (lag, step), in the order of its channels.

        A move is the load `step` steps after the newest, seen `lag` steps before that, less the newest load. Lag 0
        stands for recent steps; step 1 is the first one to forecast.
        """
        lags = dict.fromkeys((self.task.day, self.season))
        steps = range(-BEHIND, self.task.horizon + BESIDE + 1)
        return [(0, -i) for i in range(1, RECENT + 1)] + [(lag, k) for lag in lags for k in steps]

    @cached_property
    def back(self) -> NDArray[np.int64]:
        """(moves,) steps from the newest one to what each move reads, all at most 0."""
        return np.array([k - lag * max(1, -(-k // lag)) if lag else k for lag, k in self.moves])

    @cached_property
    def weekly(self) -> NDArray[np.bool_]:
        """(moves,) whether each move reads the longest season."""
        return np.array([lag == self.season for lag, _ in self.moves])

    @property
    def width(self) -> int:
        """Number of channels of a row."""
        return len(self.moves) + STATES


class NewestRows(NamedTuple):
    """Input rows of one or several series at their newest moments.

    Attributes:
        rows: (B, M, width) moves from the newest root rate in units, then the `STATES` channels.
        anchor: (B, M) the newest rate's root.
        unit: (B, M) mean root rate of the newest day; root records/s.
    """

    rows: Packed
    anchor: Floats
    unit: Floats


def season_of(task: Task, steps: int) -> int:
    """Return the season in steps: a week where `steps` hold two of them, else a day."""
    return task.week if steps >= 2 * task.week else task.day


def input_rows(view: PastWindow, newest: Floats) -> NewestRows:
    """Make the input rows of B series at each of their M newest moments t.

    A row holds (g · √y(t + k − lag) − √y(t)) / u for every move (lag, k), then level, log volatility and its log
    change; u is the mean of √y over the newest day. A load ten times as high gives the same row. The factor g is 1 but
    for last week's steps where u and the same mean a week ago differ by more than the factor 1.25: there it is their
    ratio, cut to 1/10 .. 10.

    Args:
        view: what is read.
        newest: (B, needs + M − 1) records/s, at least 0, newest last, no gaps; not checked.

    Returns:
        Rows (B, M, width), and (B, M) each √y(t) and u, in roots of records/s.
    """
    root = np.sqrt(newest)
    moments = np.arange(view.needs - 1, newest.shape[1])
    anchor = root[:, moments]
    day = view.task.day
    unit = np.maximum(_mean(root, day, len(moments)), LEAST)
    shifts = np.abs(np.diff(root, axis=1))
    usual = np.maximum(_mean(shifts, day, len(moments)), CALM * unit)
    fast = np.maximum(_mean(shifts, min(FAST, day), len(moments)), FAST_CALM * usual)
    moves = root[:, moments[:, None] + view.back]
    if view.season > view.task.day:
        before = np.maximum(_mean(root[:, : -view.season], day, len(moments)), LEAST)
        moves[..., view.weekly] *= _change(unit, before)
    moves = (moves - anchor[..., None]) / unit[..., None]
    states = np.stack([anchor / unit, np.log(usual / unit), np.log(fast / usual)], axis=-1)
    return NewestRows(np.concatenate([moves, states], axis=-1).astype(np.float32), anchor, unit)


def training_windows(view: PastWindow, history: Series) -> tuple[NewestRows, Packed]:
    """Make an input row and its outcomes for the newest moments of a history, at most 20,001 − horizon, oldest first.

    No row reads beyond its own moment.

    Args:
        view: what is read.
        history: records/s in the task's steps, at least 0; NaN: missing, filled as by `forecaster.fill_gaps` for the
            rows.

    Returns:
        The rows, (1, M, width), and their outcomes, (M, horizon) records/s in single precision; NaN where an outcome is
        missing, where less than half of the row's newest 24 steps was known, or where its day had no records.

    Raises:
        SeriesError: there are under `view.needs` + horizon steps from the first known one on, or no row has a known
            outcome.
    """
    horizon, needs = view.task.horizon, view.needs
    known = np.flatnonzero(np.isfinite(history.values))
    raw = history.values[int(known[0]) :] if len(known) else history.values[:0]
    filled = fill_gaps(raw, view.task)[-(MOST + needs) :]  # before the cut: a gap there is filled by what lies before
    raw = raw[-(MOST + needs) :]
    count = len(raw) - needs - horizon + 1
    if count < 1:
        raise SeriesError(
            f"the series has {len(raw)} steps; the network reads {needs} and learns from the {horizon} after them, "
            f"so that it needs at least {needs + horizon}. Ingest more history."
        )
    slide = np.lib.stride_tricks.sliding_window_view
    seen = np.isfinite(slide(raw[needs - RECENT : -horizon], RECENT)).mean(axis=1)
    reading = input_rows(view, filled[None, :-horizon])
    idle = reading.unit[0] <= LEAST  # in such units the first load after it is a move beyond all others
    outcomes = np.where(((seen >= SEEN) & ~idle)[:, None], slide(raw[needs:], horizon), np.nan)
    if not np.isfinite(outcomes).any():
        missing, silent = int(np.isnan(raw).sum()), int((raw == 0).sum())
        raise SeriesError(
            f"{missing} of {len(raw)} steps are missing, {silent} are without records: no row is left to learn from. "
            "Ingest more history."
        )
    return reading, outcomes.astype(np.float32)


def _change(unit: Floats, before: Floats) -> Floats:
    """Return (B, M, 1) the ratio of the level to the one before; 1 where it is within `BREAK`."""
    ratio = unit / before
    ratio = np.where(np.abs(np.log(ratio)) > np.log(BREAK), ratio, 1.0)
    return np.clip(ratio, 1 / MOST_CHANGE, MOST_CHANGE)[..., None]


def _mean(values: Floats, steps: int, moments: int) -> Floats:
    """Return (B, moments) means over the newest `steps` values at each of the last moments."""
    part = values[:, values.shape[1] - moments - steps + 1 :]
    if moments == 1:
        return np.asarray(part.mean(axis=1, keepdims=True))
    sums = np.cumsum(np.pad(part, ((0, 0), (1, 0))), axis=1)
    found: Floats = np.maximum(sums[:, steps:] - sums[:, :-steps], 0.0) / steps
    return found
