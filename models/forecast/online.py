"""One forecaster for many jobs, stepped as their samples come, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator

from models.forecast.core.forecaster import Forecaster, Track
from models.forecast.core.series import Floats, Series
from models.forecast.core.state import OnlineError as OnlineError
from models.forecast.core.state import values_since


class Online:
    """Step-by-step forecasts of many jobs by one `Forecaster`, with each job's state held in memory.

    To serve another model make another `Online` and admit the jobs on their history. A missing step is NaN, and every
    kind fills it by its own rule (`core.gaps` says when that may be done). A call that raises changes no job.
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
        """Follow a job from the end of a history, which may be empty; a job already followed starts over.

        Raises:
            SeriesError: the history has another step than the forecaster, or negative or infinite values.
        """
        self._jobs[job] = self.forecaster.begin(history)

    def step(self, job: str, value: float) -> Floats:
        """Append one step to a job and return its new forecast.

        Args:
            job: an admitted one.
            value: mean rate of the step, records/s; NaN: missing.

        Returns:
            (horizon, levels) records/s, a copy; NaN while nothing was ever seen.

        Raises:
            OnlineError: the job was not admitted.
            SeriesError: the value is negative or infinite; the job is unchanged.
        """
        track = self._of(job)
        track.step(float(value))
        return track.quantiles.copy()

    def current(self, job: str) -> Floats:
        """Return a copy of the forecast after the newest step: (horizon, levels) records/s; NaN while nothing was seen.

        Raises:
            OnlineError: the job was not admitted.
        """
        return self._of(job).quantiles.copy()

    def basis(self, job: str) -> str:
        """Name what the job's forecast rests on: the kind, "network", a repetition such as "last value", or "none".

        Raises:
            OnlineError: the job was not admitted.
        """
        return self._of(job).basis()

    def state(self, job: str) -> bytes:
        """Serialise a job's state to MessagePack, 0.1 to 3 MB: all that is carried, and the newest values.

        `restore` with the samples that came since gives the same forecasts bit by bit.

        Raises:
            OnlineError: the job was not admitted.
        """
        return self._of(job).state()

    def restore(self, job: str, state: bytes, history: Series) -> None:
        """Follow a job from a serialised state and the samples that came after it.

        Args:
            job: one that is followed already starts over from the state; after an error it is unchanged.
            state: bytes that `state` returned, of the same forecaster. Kind and task are checked, weights are not.
            history: the job's samples after the state, records/s in the forecaster's steps, NaN where one is missing;
                it may begin earlier, or be empty.

        Raises:
            OnlineError: the bytes are no state of this forecaster, or the history has other steps, does not reach to
                the state's time, or has no step border there.
            SeriesError: a later value is negative or infinite.
        """
        track, at = self.forecaster.resume(state)
        for value in values_since(at, history, self.forecaster.step_s).tolist():
            track.step(value)
        self._jobs[job] = track

    def forget(self, job: str) -> None:
        """Stop following a job and drop its state.

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
