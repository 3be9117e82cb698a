"""One forecaster for many jobs, stepped as their samples come, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator

from models.forecast.core.forecaster import Forecaster, Track
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import OnlineError as OnlineError
from models.forecast.core.state import since


class Online:
    """What a `Forecaster` says step by step, with each job's state in here.

    A state belongs to one forecaster: another champion is another `Online`, which admits the jobs on their history.
    A missing step is NaN, and every kind fills it by its own rule (`gaps` says when that may be done).
    What raises changes no job.
    """

    def __init__(self, forecaster: Forecaster) -> None:
        self.forecaster = forecaster
        self._jobs: dict[str, Track] = {}

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
        self._jobs[job] = self.forecaster.begin(history)

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
        track.step(float(value))
        return track.quantiles.copy()

    def current(self, job: str) -> Floats:
        """What was issued after the newest step: (horizon, levels) records/s; NaN where nothing was ever seen."""
        return self._of(job).quantiles.copy()

    def trust(self, job: str) -> str:
        """What that rests on, as `Track.trust` says."""
        return self._of(job).trust()

    def state(self, job: str) -> bytes:
        """What must be kept beside the job's samples so that `restore` goes on with the very same bits.

        It is data in MessagePack: all that is carried, and the newest values; 0.1 to 3 megabytes. Keep it now and then,
        and give `restore` the samples that came since.
        """
        return self._of(job).state()

    def restore(self, job: str, state: bytes, history: Series) -> None:
        """Follow a job from a state on, and step through what its history has after it.

        Args:
            job: one that is followed already begins anew.
            state: of the same job, kept with this forecaster; its version is the caller's to compare.
            history: the job's samples after the state, NaN where one was missing; earlier ones may be among them.

        Raises:
            OnlineError: these bytes are no state of this forecaster, or the history does not lead to it.
            SeriesError: a later value is negative or infinite.
        """
        track, at = self.forecaster.resume(state)
        for value in since(at, history).tolist():
            track.step(value)
        self._jobs[job] = track

    def forget(self, job: str) -> None:
        """Follow a job no more.

        Raises:
            OnlineError: the job was not admitted.
        """
        self._of(job)
        del self._jobs[job]

    def _of(self, job: str) -> Track:
        try:
            return self._jobs[job]
        except KeyError:
            raise OnlineError(f"job {job!r} was not admitted. Admit it on its history, which may be empty.") from None
