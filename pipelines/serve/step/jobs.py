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
    """Every job's state in memory: samples in, windows stepped through, forecasts out. No clock, no broker."""

    def __init__(
        self, windows: Recent, known: Collection[str], find: Callable[[str, Generation], Online], epoch: int
    ) -> None:
        """Start without any job.

        Args:
            windows: keeps the closed windows.
            known: names of the jobs with a contract, looked up with every record.
            find: returns the loaded model of a job's generation.
            epoch: number of the server's claim, in every forecast.
        """
        self.windows, self._known, self._by = windows, known, Serving(windows, find, epoch)
        self._jobs: dict[str, Following] = {}

    def job(self, name: str) -> Following:
        """Return the state of a job, made on the first call."""
        if name not in self._jobs:
            self._jobs[name] = Following(name, self._by)
        return self._jobs[name]

    def take(self, key: str, raw: bytes, now: float) -> tuple[MetricSample, list[Window]]:
        """Decode a metrics record and count it into its job's window in progress.

        Args:
            key: of the Kafka record.
            raw: its JSON.
            now: wall time, epoch seconds.

        Returns:
            The sample, and the windows it closes, oldest first; call `step` with each of them.

        Raises:
            MessageError: no valid sample, another key than its job, or a job without a contract.
            SeriesError: it lies too far ahead of the job's last record, spans too many windows, or its sum is not
                finite.
        """
        sample = read_sample(raw, now, key)
        if sample.job not in self._known:
            raise MessageError(f"job {sample.job!r} has no contract. Add one, or correct the sender's job name.")
        following = self.job(sample.job)
        filled = following.fill(sample)
        following.filling = filled.filling
        return sample, filled.closed

    def step(self, job: str, window: Window) -> None:
        """Add a closed window to the job's kept windows and step its model; a model that raises is logged and dropped.

        Raises:
            SeriesError: the window is older than the job's newest.
        """
        following = self.job(job)
        following.step(window)
        self.windows.add(job, following.unsaved)
        following.unsaved.clear()

    def forecast(self, sample: MetricSample) -> Forecast | None:
        """Return the forecast after the job's newest window; None before window or model, or where none may be made.

        `sample` is the job's newest: it gives job, `wall_time` and `time_scale`.
        """
        following = self.job(sample.job)
        made = None if following.newest is None else serving(following.generations, following.newest)
        if made is None:
            return None
        return following.forecast(made, round(sample.wall_time * 1e9), sample.time_scale)[0]
