"""One forecaster for many jobs, stepped as their samples come: any kind, one job or hundreds at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from models.forecast.baselines.linear import Linear
from models.forecast.baselines.linear_tracks import LinearTracks
from models.forecast.baselines.naive import Naive
from models.forecast.baselines.naive_tracks import NaiveTracks
from models.forecast.blend.blend import Blend
from models.forecast.blend.tracks import BlendTracks
from models.forecast.classical.classical import Classical
from models.forecast.classical.tracks import ClassicalTracks
from models.forecast.core.forecaster import Forecaster
from models.forecast.core.ring import refused
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import OnlineError as OnlineError
from models.forecast.core.tracks import PlainTracks, Track, Tracks
from models.forecast.neural.flat_weights import extract
from models.forecast.neural.network import Network
from models.forecast.neural.tracks import NetworkTracks


class Online:
    """What `Forecaster` says step by step, with each job's state in here.

    A state belongs to one forecaster: another champion is another `Online`, which admits the jobs on their history.
    A missing step is NaN, and every kind fills it by its own rule (`gaps` says when that may be done).
    What raises changes no job.
    """

    def __init__(self, forecaster: Forecaster) -> None:
        self.forecaster = forecaster
        self._tracks = _tracks(forecaster)
        self._jobs: dict[str, Track] = {}

    @property
    def reach(self) -> int:
        """Newest samples that `restore` asks for; 0: the state holds all that it needs."""
        return self._tracks.reach

    def __contains__(self, job: str) -> bool:
        return job in self._jobs

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def admit(self, job: str, history: Series) -> None:
        """Follow a job from the end of its history on, which may be empty; a job that was followed begins anew.

        Raises:
            SeriesError: the history has another step, or negative or infinite values.
        """
        self._replace(job, self._tracks.begin(history))

    def step(self, job: str, value: float) -> Floats:
        """One step later: (horizon, levels) records/s from there; NaN where nothing was ever seen.

        Args:
            job: an admitted one.
            value: mean rate of the step, records/s; NaN: it is missing.

        Raises:
            OnlineError: the job was not admitted.
            SeriesError: the value is negative or infinite.
        """
        track = self._of(job)
        value = float(value)
        if value < 0 or value == np.inf:
            raise refused(value)
        track.step(value)
        return track.quantiles.copy()

    def step_all(self, jobs: Sequence[str], values: Sequence[float] | Floats) -> Floats:
        """Different jobs one step on, in one pass where the kind knows one: (jobs, horizon, levels) records/s.

        Raises:
            OnlineError: a job was not admitted or comes twice, or there are not as many values.
            SeriesError: a value is negative or infinite.
        """
        tracks = [self._of(job) for job in jobs]
        column = np.asarray(values, dtype=np.float64)
        if column.shape != (len(tracks),) or len(set(jobs)) != len(tracks):
            raise OnlineError(f"{len(jobs)} jobs, {len(set(jobs))} different, values {column.shape}: one each, please")
        if (bad := (column < 0) | np.isinf(column)).any():
            raise refused(float(column[np.argmax(bad)]))
        if not tracks:
            return np.empty((0, self.forecaster.horizon, len(self.forecaster.levels)))
        return self._tracks.step_all(tracks, column)

    def current(self, job: str) -> Floats:
        """What was said after the newest step: (horizon, levels) records/s; NaN where nothing was ever seen."""
        return self._of(job).quantiles.copy()

    def trust(self, job: str) -> str:
        """What that rests on, as `Forecaster.trust` says."""
        return self._of(job).trust()

    def state(self, job: str) -> bytes:
        """What must be kept beside the job's samples so that `restore` goes on with the very same bits.

        It is data in MessagePack. For a network and the naive kinds these are its carried state, the newest quantiles
        and what stands in missing steps, about a kilobyte. For the others it is all that they have learnt and the
        values, 0.1 to 1.5 megabytes: keep it now and then, and give `restore` the samples that came since.
        """
        return self._of(job).state()

    def restore(self, job: str, state: bytes, history: Series) -> None:
        """Follow a job from a state on, and step through what its history has after it.

        Args:
            job: one that is followed already begins anew.
            state: of the same job, kept with this forecaster; its version is the caller's to compare.
            history: the job's samples, NaN where one was missing: at least the `reach` newest before the state (fewer
                where fewer have ever come), and those after it.

        Raises:
            OnlineError: these bytes are no state of this forecaster, or the history does not lead to it.
            SeriesError: a later value is negative or infinite.
        """
        track, rest = self._tracks.resume(state, history)
        try:
            for value in rest.values.tolist():
                if value < 0 or value == np.inf:
                    raise refused(value)
                track.step(value)
        except BaseException:
            self._tracks.drop(track)
            raise
        self._replace(job, track)

    def forget(self, job: str) -> None:
        """Follow a job no more.

        Raises:
            OnlineError: the job was not admitted.
        """
        self._tracks.drop(self._of(job))
        del self._jobs[job]

    def _replace(self, job: str, track: Track) -> None:
        if job in self._jobs:
            self._tracks.drop(self._jobs[job])
        self._jobs[job] = track

    def _of(self, job: str) -> Track:
        try:
            return self._jobs[job]
        except KeyError:
            raise OnlineError(f"job {job!r} was not admitted. Admit it on its history, which may be empty.") from None


def _tracks(forecaster: Forecaster) -> Tracks:
    """The fast way where there is one; it says what the forecaster's own `step` says."""
    if isinstance(forecaster, Network) and (weights := extract(forecaster)) is not None:
        return NetworkTracks(forecaster, weights)
    if isinstance(forecaster, Naive):
        return NaiveTracks(forecaster)
    if isinstance(forecaster, Linear):
        return LinearTracks(forecaster)
    if isinstance(forecaster, Classical):
        return ClassicalTracks(forecaster)
    if isinstance(forecaster, Blend) and forecaster.horizon <= forecaster.task.day:
        return BlendTracks(forecaster)
    return PlainTracks(forecaster)
