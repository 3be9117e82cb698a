"""Jobs served out of memory: the stream server keeps all of them in one of these, the query one for a micro-batch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from models.forecast.online import Online
from pipelines.serve.step.deployments import Deployment, deployment_at
from pipelines.serve.step.job import ServedJob
from pipelines.serve.step.samples import read_sample
from pipelines.serve.step.server_context import ServerContext
from pipelines.serve.step.windower import Window
from pipelines.serve.step.windows import RecentWindows
from tidecast.messages import Forecast, MessageError, MetricSample

log = logging.getLogger(__name__)


class ServedJobs:
    """Every job's state in memory: samples in, windows stepped through, forecasts out. No clock, no broker."""

    def __init__(
        self, windows: RecentWindows, known: Collection[str], find_model: Callable[[str, Deployment], Online],
        epoch: int,
    ) -> None:  # fmt: skip
        """Start without any job.

        Args:
            windows: keeps the closed windows.
            known: names of the jobs with a contract, looked up with every record.
            find_model: returns the model of a job's deployment.
            epoch: number of the server's claim, in every forecast.
        """
        self.windows, self._known, self._server = windows, known, ServerContext(windows, find_model, epoch)
        self._jobs: dict[str, ServedJob] = {}

    def job(self, name: str) -> ServedJob:
        """Return the state of a job, made on the first call."""
        if name not in self._jobs:
            self._jobs[name] = ServedJob(name, self._server)
        return self._jobs[name]

    def add_record(self, key: str, raw: bytes, now: float) -> tuple[MetricSample, list[Window]]:
        """Decode a record of `metrics`, and count it into its job's window in progress.

        Args:
            key: of the Kafka record; must be the job's name.
            raw: its value, JSON.
            now: wall time, epoch seconds.

        Returns:
            (the sample, the windows it closes, oldest first); call `step` with each of these.

        Raises:
            MessageError: no valid sample, a time over 300 s in the future, another key than its job, or a job without a
                contract (YAML file of latency target and executor bounds).
            SeriesError: it lies over 24 windows (and the wall time between, in job seconds) ahead of the job's last
                record, spans over a million windows, or its sum is not finite.
        """
        sample = read_sample(raw, now, key)
        if sample.job not in self._known:
            raise MessageError(f"job {sample.job!r} has no contract. Add one, or correct the sender's job name.")
        served = self.job(sample.job)
        effect = served.add_sample(sample, now)
        served.open_window = effect.open_window
        return sample, effect.closed

    def step(self, job: str, window: Window) -> None:
        """Add a closed window to the job's kept windows and step its model; a model that raises is logged and dropped.

        Args:
            job: its name.
            window: newer than the job's newest.

        Raises:
            SeriesError: the window is not newer than the job's newest; nothing is changed.
        """
        served = self.job(job)
        served.step(window)
        self.windows.add(job, served.unsaved)
        served.unsaved.clear()

    def switch(self, job: str) -> bool:
        """Put the deployment of a job's newest window in service, where another one is; return whether it was.

        A model that fails is logged and dropped, and begun anew at the next window.
        """
        served = self.job(job)
        deployment = None if served.newest is None else deployment_at(served.deployments, served.newest)
        if deployment is None or served.deployment_number in (deployment.number, -1):
            return False
        try:
            served.switch_model(self._server.find_model(job, deployment), deployment, None)
        except Exception:  # one job's model may not stop the others
            log.exception("serving %s: version %s cannot be begun", job, deployment.model_version)
            served.drop_model()
        return True

    def forecast(self, sample: MetricSample) -> Forecast | None:
        """Return the forecast after a job's newest window.

        None before the first window or model, before 24 windows in a row since the job (re)started, until 4 windows in
        a row after a gap of more than 3, or where the model failed or gives a quantile that is not finite.

        Args:
            sample: the newest of the job; gives the forecast's `wall_time` and `time_scale`.
        """
        served = self.job(sample.job)
        deployment = None if served.newest is None else deployment_at(served.deployments, served.newest)
        if deployment is None:
            return None
        return served.make_forecast(deployment, round(sample.wall_time * 1e9), sample.time_scale)[0]
