"""Jobs served out of memory: the stream server keeps all of them in one of these, the query one for a micro-batch."""

from __future__ import annotations

from collections.abc import Callable, Collection

from models.forecast.online import Online
from pipelines.serve.step.following import Following, Serving
from pipelines.serve.step.generations import Generation, serving
from pipelines.serve.step.samples import read_sample
from pipelines.serve.step.windower import Window
from pipelines.serve.step.windows import Recent
from tidecast.messages import Forecast, MessageError, MetricSample


class ServedJobs:
    """Every job's state: samples in, windows closed and stepped through, forecasts out. No clock, no broker."""

    def __init__(
        self, windows: Recent, known: Collection[str], find: Callable[[str, Generation], Online], epoch: int
    ) -> None:
        """Follow no job yet; `known` are the jobs with a contract, for the others see `Serving`."""
        self.windows, self._known, self._by = windows, known, Serving(windows, find, epoch)
        self._jobs: dict[str, Following] = {}

    def job(self, name: str) -> Following:
        """A job as it is followed now."""
        if name not in self._jobs:
            self._jobs[name] = Following(name, self._by)
        return self._jobs[name]

    def take(self, key: str, raw: bytes, now: float) -> tuple[MetricSample, list[Window]]:
        """The sample in a record, and the windows it closes; `step` is to be called with each of them.

        Raises:
            MessageError: no sample, or of an unknown job.
            SeriesError: it cannot follow what came before.
        """
        sample = read_sample(raw, now, key)
        if sample.job not in self._known:
            raise MessageError(f"job {sample.job!r} has no contract. Add one, or correct the sender's job name.")
        following = self.job(sample.job)
        filled = following.fill(sample)
        following.filling = filled.filling
        return sample, filled.closed

    def step(self, job: str, window: Window) -> None:
        """Take a closed window into the job and its model."""
        following = self.job(job)
        following.step(window)
        self.windows.add(job, following.unsaved)
        following.unsaved.clear()

    def forecast(self, sample: MetricSample) -> Forecast | None:
        """The forecast after the job's newest window, dated by its newest sample; None where there is none."""
        following = self.job(sample.job)
        made = None if following.newest is None else serving(following.generations, following.newest)
        if made is None:
            return None
        return following.forecast(made, round(sample.wall_time * 1e9), sample.time_scale)[0]
