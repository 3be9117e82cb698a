"""One job of a fleet between two micro-batches: the serving step over a state that is one value, without Spark."""

from __future__ import annotations

import logging
import math
from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from models.forecast.core.gaps import Streak
from models.forecast.core.series import SeriesError
from models.forecast.online import Online
from pipelines.serve.models.model_set import ModelSetError, load_members
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.forecasts import encode_forecast
from pipelines.serve.step.jobs import ServedJobs
from pipelines.serve.step.refusals import Refusals
from pipelines.serve.step.server_context import SILENT_S
from pipelines.serve.step.windower import OpenWindow
from pipelines.serve.step.windows import RecentWindows
from tidecast.fields import JOB_NAME
from tidecast.messages import MessageError, MetricSample, Reject, encode

log = logging.getLogger(__name__)
Messages = list[tuple[str, str, bytes]]  # (topic, key, JSON)
TOLD = Refusals()
"""What this process has told of refused records of all jobs: of a key that is no job's nothing is kept in a state."""
MODELS_MOST = 2048
"""Models that a process keeps, those used last: 0.3 MB for one of a job's own, and up to 0.2 s to load one again."""
_models: dict[tuple[str, str, str], Online] = {}  # by digests; the one used last stands last


class FleetState(msgspec.Struct, array_like=True):
    """The state of one job between two micro-batches.

    Attributes:
        open_window: the window in progress.
        first, newest: index of its first and newest window; None before any.
        streak: how its windows have come, gaps included; None before any.
        deployment_number: of the deployment whose model has this state; 0 before any, -1 where that failed.
        model_state: empty without a model.
        windows: (window index, records/s), the newest `warmed_steps`.
        last_heartbeat: wall time, epoch seconds.
        standing: epoch and wall time of the newest forecast that was sent; None before one.
    """

    open_window: OpenWindow
    first: int | None = None
    newest: int | None = None
    streak: Streak | None = None
    deployment_number: int = 0
    model_state: bytes = b""
    windows: list[tuple[int, float]] = []
    last_heartbeat: float = 0.0
    standing: tuple[int, float] | None = None


class ModelFile(msgspec.Struct, array_like=True):
    """Contents of a model's file: the deployment, and weights, scaler and hyper-parameters as bytes by name."""

    deployment: Deployment
    members: dict[str, bytes]


def write_model_file(folder: Path, job: str, deployment: Deployment, members: dict[str, bytes]) -> None:
    """Write a job's deployment and its model to `folder/JOB/NUMBER.set` (MessagePack), whole or not at all.

    A process that has read the deployment of an earlier file of that number keeps it.

    Args:
        folder: that all workers can read; made if absent.
        job: its name.
        deployment: gives NUMBER, eight digits; an earlier file of that number is replaced.
        members: bytes by "weights", "scaler" and "hyper", as `ModelSet.members` has them.

    Raises:
        OSError: the folder or file cannot be made or written.
    """
    path = _path(folder, job, deployment.number)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.msgpack.encode(ModelFile(deployment, members)))
    new.replace(path)


def model_files(folder: Path, job: str) -> list[Path]:
    """Return the files of a job's models in the folder of `write_model_file`, oldest first."""
    return sorted((folder / job).glob("*.set"))


@lru_cache(maxsize=4 * MODELS_MOST)  # of each job the model in service, and the one before; 1 kB each
def read_deployment(path: Path) -> Deployment:
    """Read the deployment in a file of `model_files`; a process that has read it keeps it.

    Raises:
        msgspec.DecodeError: it cannot be decoded (a ValueError).
        OSError: it cannot be read.
    """
    return msgspec.msgpack.decode(path.read_bytes(), type=ModelFile).deployment


class FleetStep:
    """One job's part of the streaming query, without Spark; a state is bytes in and bytes out."""

    def __init__(
        self, job: str, step_s: float, folder: Path, known: Collection[str], epoch: int, oldest_s: float = math.inf,
        refusals: Refusals | None = None,
    ) -> None:  # fmt: skip
        """Prepare a step; nothing is read yet.

        Args:
            job: its name.
            step_s: seconds per window.
            folder: where `write_model_file` has put the models.
            known: names of the jobs with a contract; records of another are rejected.
            epoch: number that every forecast carries.
            oldest_s: wall seconds; nothing is forecast of a record that is older, as those that wait at a start.
            refusals: what was told before of refused records; None: nothing.
        """
        self.job, self._step_s, self._folder, self._epoch = job, step_s, folder, epoch
        self._oldest_s, self._refusals = oldest_s, Refusals() if refusals is None else refusals
        self._known = {job} if job in known else set()  # a record under another job's key is nobody's

    def process(self, state: bytes | None, rows: list[dict[str, Any]], now: float) -> tuple[bytes | None, Messages]:
        """Process a micro-batch of one job's records, and return (state after it, messages to send).

        Of records that cannot be accepted one a kind becomes a message to `rejects` in 60 s; a job whose state cannot
        be read, as that of another release, begins anew. Jobs with equal models share one, of which the process keeps
        the newest used (`MODELS_MOST`), without the jobs' states.

        Args:
            state: `FleetState` before it, MessagePack; None for the first batch.
            rows: dicts of "key", "value" (bytes or None), "partition" and "offset", in the order of the offsets.
            now: wall time, epoch seconds.

        Returns:
            The state as MessagePack, None where nothing is known of the job; and messages as (topic "forecasts",
            "heartbeats" or "rejects", key, JSON).

        Raises:
            KeyError: a row lacks one of its names.
        """
        before = self._decode_state(state) if state else FleetState(OpenWindow())
        jobs = ServedJobs(RecentWindows(self._step_s), self._known, self._find_model, self._epoch)
        self._restore(jobs, before)
        messages, newest = Messages(), None
        for row in rows:
            value = row["value"] or b""  # a record may have none
            try:
                sample, windows = jobs.add_record(self.job, value, now)
            except (MessageError, SeriesError) as error:
                if self._refusals.is_news(self.job, error, now):
                    reject = Reject.of("metrics", row["partition"], row["offset"], "serving", error, value, now)
                    messages.append(("rejects", "metrics", encode(reject)))
                continue
            for window in windows:
                jobs.step(self.job, window)
                messages += self._forecast(jobs, sample, now)
            newest = sample if sample.kind == "interval" else newest
        if newest is not None:
            messages += self._stand(jobs, newest, now)
        return self._encode_state(jobs), messages

    def _forecast(self, jobs: ServedJobs, sample: MetricSample, now: float) -> Messages:
        if now - sample.wall_time > self._oldest_s:
            jobs.job(self.job).note_sent(None)  # another window or model than that of the last one sent
            return []
        if (issued := jobs.forecast(sample)) is None:
            return []
        jobs.job(self.job).note_sent(issued)
        return [("forecasts", self.job, encode_forecast(issued))]

    def _stand(self, jobs: ServedJobs, newest: MetricSample, now: float) -> Messages:
        """What is due besides new windows: the forecast of a model or server that has just begun, and a heartbeat."""
        served, messages = jobs.job(self.job), Messages()
        if jobs.switch(self.job) or served.standing is None or served.standing[0] != self._epoch:
            messages += self._forecast(jobs, newest, now)
        if now - newest.wall_time < SILENT_S:
            messages += [("heartbeats", self.job, encode(beat)) for beat in served.due_heartbeats(newest, now)]
        return messages

    def _restore(self, jobs: ServedJobs, state: FleetState) -> None:
        jobs.windows.add(self.job, state.windows)
        served = jobs.job(self.job)
        served.open_window, served.newest, served.first = state.open_window, state.newest, state.first
        served.streak, served.deployment_number = state.streak, min(state.deployment_number, 0)
        served.last_heartbeat, served.standing = state.last_heartbeat, state.standing
        # A key may be anything, and longer than a file's name can be.
        named = JOB_NAME.pattern.fullmatch(self.job)
        for path in model_files(self._folder, self.job) if named else ():
            with suppress(OSError, ValueError):  # removed meanwhile, or damaged: of one job, and others go on
                served.deployments.append(read_deployment(path))
        deployment = next((d for d in served.deployments if d.number == state.deployment_number), None)
        if deployment is not None and state.model_state and state.newest is not None:
            try:
                served.resume_model(deployment, state.model_state, state.newest)
            except Exception:  # one job's model may not stop the others
                log.exception("serving %s: version %s cannot be gone on with", self.job, deployment.model_version)
                served.drop_model()

    def _decode_state(self, state: bytes) -> FleetState:
        try:
            return msgspec.msgpack.decode(state, type=FleetState)
        except msgspec.DecodeError as error:  # one job's state may not stop the others
            log.error("serving %s: what the query knew of it cannot be read (%s); it begins anew", self.job, error)
            return FleetState(OpenWindow())

    def _encode_state(self, jobs: ServedJobs) -> bytes | None:
        served = jobs.job(self.job)
        model_state = b""
        if served.model is not None:
            model_state = served.model.state(self.job)
            served.model.forget(self.job)  # up to 3 MB, which the next micro-batch restores wherever it runs
        windows = [] if served.newest is None else jobs.windows.rates(self.job, 0, served.newest)
        state = FleetState(
            served.open_window, served.first, served.newest, served.streak, served.deployment_number, model_state,
            windows, served.last_heartbeat, served.standing,
        )  # fmt: skip
        # A key may be anything: of those under which no record is ever taken none is to be kept for good.
        return None if state == FleetState(OpenWindow()) else msgspec.msgpack.encode(state)

    def _find_model(self, job: str, deployment: Deployment) -> Online:
        model = _models.pop(deployment.digests, None)
        if model is None:
            model = _load_model(_path(self._folder, job, deployment.number), deployment.digests)
        _models[deployment.digests] = model
        if len(_models) > MODELS_MOST:
            del _models[next(iter(_models))]
        return model


def _path(folder: Path, job: str, number: int) -> Path:
    return folder / job / f"{number:08}.set"


def _load_model(path: Path, digests: tuple[str, str, str]) -> Online:
    if not path.is_file():
        raise ModelSetError(f"there is no model at {path}. Write it again.")
    made = load_members(msgspec.msgpack.decode(path.read_bytes(), type=ModelFile).members)
    if made.digests != digests:  # other jobs' forecasts would be by it, too
        raise ModelSetError(f"{path} has digests {made.digests}, not {digests}. Write it again.")
    return Online(made.forecaster)
