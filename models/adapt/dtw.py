"""Similarity of the shapes of two loads: dynamic time warping of z-normalised segments, relative to shuffled ones.

Level and scale do not matter here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from configs.bounds import DAY_S
from models.forecast.core.series import Floats, Series, SeriesError

BAND = 0.1
"""Half-width of the Sakoe-Chiba band as a share of the length (Sakoe and Chiba 1978)."""
THRESHOLD = 0.5
"""A source is kept if its distance is under this share of the distance to a shuffled segment."""
SHUFFLES = 7
"""Random orders of one source segment that the null distance is taken over."""
_FLAT = 1e-9  # share of the mean absolute value: a smaller deviation is rounding


@dataclass(frozen=True)
class ShapeDistance:
    """How far a source's shape lies from the target's.

    Attributes:
        distance: median warping distance per step, in standard deviations; NaN where nothing could be compared.
        null: the same to segments with the same values in random order; NaN likewise.
    """

    distance: float
    null: float

    @property
    def ratio(self) -> float:
        """Distance ÷ null: 0 is the same shape, about 1 no likeness; NaN where nothing could be compared."""
        return self.distance / self.null if self.null > 0 else float("nan")

    @property
    def near(self) -> bool:
        """Whether the source is near enough to be adapted: `distance` under `THRESHOLD` times `null`."""
        return self.distance < THRESHOLD * self.null


def z_normalise(segment: Floats) -> Floats:
    """Return an (L,) segment scaled to mean 0 and standard deviation 1 (divisor L), as a new array; L at least 1.

    Raises:
        SeriesError: the segment is constant or has missing or infinite values.
    """
    if not np.isfinite(segment).all():
        missing = int((~np.isfinite(segment)).sum())
        raise SeriesError(f"{missing} of {len(segment)} steps are missing or infinite. Fill the segment first.")
    deviation = float(segment.std())
    if deviation <= _FLAT * max(float(np.abs(segment).mean()), 1e-300):
        raise SeriesError(f"a segment of {len(segment)} steps is constant at {segment[:1]}: it has no shape to compare")
    scaled: Floats = (segment - segment.mean()) / deviation
    return scaled


def dtw_distance(a: Floats, b: Floats) -> float:
    """Return the dynamic-time-warping distance per step, D[n, m]/max(n, m), within a Sakoe-Chiba band.

    i and j may lie apart by a tenth of the longer one, at least 1, and by the difference of the lengths.
    D[i, j] = |a[i] − b[j]| + min(D[i−1, j−1], D[i−1, j], D[i, j−1]). Takes 8 · (n + 1) · (m + 1) bytes meanwhile.

    Args:
        a: (n,) values without gaps; `z_normalise` first where level and scale do not matter.
        b: (m,) values without gaps.

    Returns:
        At least 0, in the unit of the values.

    Raises:
        SeriesError: a segment is empty.
    """
    if not len(a) or not len(b):
        raise SeriesError(f"segments of {len(a)} and {len(b)} steps: at least one step each is expected")
    longest = max(len(a), len(b))
    width = max(1, int(BAND * longest), abs(len(a) - len(b)))
    first, second = (np.ascontiguousarray(part, np.float64) for part in (a, b))
    return float(accumulated_costs(first, second, width)[-1, -1]) / longest


@numba.njit(cache=True)
def accumulated_costs(a: Floats, b: Floats, band: int) -> Floats:  # pragma: no cover - compiled
    """Return the (n, m) accumulated costs D of dynamic time warping, as `dtw_distance` defines them (compiled).

    Args:
        a: (n,) values.
        b: (m,) values, in the same unit, which is that of the costs.
        band: how far i and j may lie apart, in steps; costs are infinite outside it.
    """
    n, m = len(a), len(b)
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0.0
    for i in range(n):
        for j in range(max(0, i - band), min(m, i + band + 1)):
            nearest = min(total[i, j], total[i, j + 1], total[i + 1, j])
            total[i + 1, j + 1] = abs(a[i] - b[j]) + nearest
    return total[1:, 1:]


def compare_shapes(source: Series, target: Series, generator: np.random.Generator) -> ShapeDistance:
    """Measure how near the shape of a source lies to that of the newest part of a target.

    The newest day is compared; its one or two half days where the target has less than two days; all of it where that
    is less than half a day. The source is shifted by the whole hours at which its mean day lies nearest, since clocks
    differ. The distance is the median over all pairs of segments; the null is that of the target's segments to 7 random
    orders of one source segment.

    Args:
        source: (T,) records/s; a segment that is constant or has gaps is passed over.
        target: (N,) records/s without gaps, with the source's step.
        generator: draws the segment and its orders.

    Returns:
        Distance and null, standard deviations per step; NaN where the source holds no segment with a shape.

    Raises:
        SeriesError: the steps differ, the target has less than a third of a day, or a segment of it is constant or has
            gaps.
    """
    if source.step_s != target.step_s:
        raise SeriesError(
            f"the source has steps of {source.step_s:g} s, the target of {target.step_s:g} s. Resample one of them."
        )
    day = round(DAY_S / target.step_s)
    starts, length = _newest_segments(len(target), day)
    segments = [z_normalise(target.values[at : at + length]) for at in starts]
    phases = [round((target.start + at * target.step_s - source.start) / source.step_s) for at in starts]
    shift = _best_shift(source.values, segments, phases, day)
    distances, nulls = [], []
    for segment, phase in zip(segments, phases, strict=True):
        first = (phase + shift) % day
        parts = (_shape(source.values[at : at + length]) for at in range(first, len(source) - length + 1, day))
        others = [part for part in parts if part is not None]
        distances += [dtw_distance(other, segment) for other in others]
        if others:
            drawn = others[int(generator.integers(len(others)))]
            nulls += [dtw_distance(generator.permutation(drawn), segment) for _ in range(SHUFFLES)]
    if not distances:
        return ShapeDistance(np.nan, np.nan)
    return ShapeDistance(float(np.median(distances)), float(np.median(nulls)))


def _newest_segments(steps: int, day: int) -> tuple[list[int], int]:
    """Return where the segments of a target begin, and their length: the newest day, one or two half days, or all.

    Raises:
        SeriesError: the target has less than a third of a day.
    """
    if steps >= 2 * day:
        return [steps - day], day
    if steps < day // 3:
        raise SeriesError(f"the target has {steps} steps; a third of a day, {day // 3}, is needed to compare shapes")
    length = min(day // 2, steps)
    return [at for at in (steps - 2 * length, steps - length) if at >= 0], length


def _best_shift(source: Floats, segments: list[Floats], phases: list[int], day: int) -> int:
    """Return the shift in steps, in whole hours, at which the source's mean day is nearest to the target's segments."""
    if len(source) < day:
        return 0
    mean_day = source[: len(source) // day * day].reshape(-1, day).mean(axis=0)

    def summed_distance(shift: int) -> float:
        """Return the summed distance to the segments at a shift in steps; infinite where there is no shape."""
        total = 0.0
        for segment, phase in zip(segments, phases, strict=True):
            part = _shape(np.roll(mean_day, -(phase + shift) % day)[: len(segment)])
            total += np.inf if part is None else dtw_distance(part, segment)
        return total

    return min(range(0, day, max(day // 24, 1)), key=summed_distance)


def _shape(segment: Floats) -> Floats | None:
    try:
        return z_normalise(segment)
    except SeriesError:
        return None
