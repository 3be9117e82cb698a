"""What the network reads: each step's load beside what the seasons say of it, packed into one tensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.forecast.forecaster import Task, fill
from models.forecast.series import Floats, Series, SeriesError

Packed = NDArray[np.float32]
CHANNELS = 4
"""rate, same time last season, same time yesterday, and yesterday's own last season; all in records/s. The season is a
week where the history holds two of them, else a day."""
SEEN = 0.5
"""A training row of whose context a smaller share was seen is left out."""


@dataclass(frozen=True)
class View:
    """What of the past a network looks at.

    Attributes:
        task: what is forecast.
        context: steps it reads.
        season: steps of the season it starts from, a week or a day.
    """

    task: Task
    context: int
    season: int

    @property
    def needs(self) -> int:
        """Steps of history before a forecast can be made."""
        return self.season + self.task.day + self.context


def season_of(task: Task, steps: int) -> int:
    """A week where so many steps hold two of them, else a day."""
    return task.week if steps >= 2 * task.week else task.day


def pack(view: View, newest: Floats) -> Packed:
    """Lay out the newest steps of N series, or of one series at N moments.

    Args:
        view: what is looked at.
        newest: (N, at least needs) records/s, newest last, without gaps in the last `needs`.

    Returns:
        (N, context + horizon, CHANNELS); the rate of a step still to come is 0.
    """
    task = view.task
    ahead = np.arange(1 - view.context, task.horizon + 1)  # 1 is the first step to forecast
    at = newest.shape[1] - 1 + ahead
    yesterday, season = at - _whole(ahead, task.day), at - _whole(ahead, view.season)
    rate = np.where(ahead <= 0, newest[:, np.minimum(at, newest.shape[1] - 1)], 0.0)
    lags = (newest[:, season], newest[:, yesterday], newest[:, yesterday - view.season])
    return np.stack([rate, *lags], axis=-1).astype(np.float32)


def windows(view: View, history: Series) -> tuple[Packed, Packed]:
    """Every moment of a history as a training row.

    Returns:
        (N, context + horizon, CHANNELS) inputs and (N, horizon) outcomes in records/s, oldest first; an outcome that
        is missing is NaN. No row looks beyond its own moment; a row that would learn from filled gaps is left out.

    Raises:
        SeriesError: the history is too short for one row, or nothing but gaps.
    """
    horizon, needs = view.task.horizon, view.needs
    known = np.flatnonzero(np.isfinite(history.values))
    first = int(known[0]) if len(known) else len(history)
    raw = history.values[first:]
    count = len(raw) - needs - horizon + 1
    if count < 1:
        raise SeriesError(
            f"the series has {len(raw)} steps; lags {view.season}+{view.task.day}, context={view.context} and "
            f"horizon={horizon} need at least {needs + horizon}. Ingest more history or shorten the context."
        )
    slide = np.lib.stride_tricks.sliding_window_view
    outcomes = slide(raw[needs:], horizon)
    seen = np.isfinite(slide(raw[needs - view.context : -horizon], view.context)).mean(axis=1)
    kept = np.flatnonzero((seen >= SEEN) & np.isfinite(outcomes).any(axis=1))
    if not len(kept):
        missing = int(np.isnan(raw).sum())
        raise SeriesError(f"{missing} of {len(raw)} steps are missing: no row is left to learn from. Ingest them.")
    newest = slide(fill(raw, view.task), needs)[kept]
    return pack(view, newest), outcomes[kept].astype(np.float32)


def _whole(ahead: NDArray[np.int64], lag: int) -> NDArray[np.int64]:
    """The multiple of a lag that leads from a step at least one lag back, and never to a step still to come."""
    return lag * np.maximum(1, -(-ahead // lag))
