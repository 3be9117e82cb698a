"""One job of a fleet between two micro-batches: the serving step over a state that is one value, without Spark."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from models.forecast.core.gaps import Streak
from models.forecast.core.series import SeriesError
from models.forecast.online import Online
from pipelines.serve.models.model_set import ModelSetError, unpack
from pipelines.serve.step.event import encoded
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.jobs import ServedJobs
from pipelines.serve.step.windower import Filling
from pipelines.serve.step.windows import Recent
from tidecast.messages import MessageError, Reject, encode

Rows = list[tuple[str, str, bytes]]
"""(topic, key, message)."""


class Kept(msgspec.Struct, array_like=True):
    """The state of one job between two micro-batches.

    Attributes:
        filling: the window in progress.
        first, newest: index of its first and newest window; None before any.
        streak: how its windows have come, gaps included; None before any.
        at: number of the generation (loaded model) whose state is carried; 0 before any.
        carried: the model's own state; empty without one.
        windows: (window index, records/s), the newest `KEPT_STEPS`.
    """

    filling: Filling
    first: int | None = None
    newest: int | None = None
    streak: Streak | None = None
    at: int = 0
    carried: bytes = b""
    windows: list[tuple[int, float]] = []


class SetFile(msgspec.Struct, array_like=True):
    """Contents of a model's file: the generation, and its weights, scaler and hyper-parameters as bytes by name."""

    generation: Generation
    members: dict[str, bytes]


def publish(folder: Path, job: str, made: Generation, members: dict[str, bytes]) -> None:
    """Write a generation (loaded model) of a job to `folder/JOB/NUMBER.set`, whole or not at all.

    Args:
        folder: that all workers can read; made if absent.
        job: whose it is.
        made: the generation; an earlier file of its number is replaced.
        members: weights, scaler and hyper-parameters as `ModelSet.members` has them.

    Raises:
        OSError: the file cannot be written.
    """
    path = _path(folder, job, made.number)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_bytes(msgspec.msgpack.encode(SetFile(made, members)))
    new.replace(path)


class FleetStep:
    """One job's part of the streaming query, without Spark; a state is bytes in and bytes out."""

    def __init__(self, job: str, step_s: float, folder: Path, known: Collection[str], epoch: int) -> None:
        """Prepare a step; nothing is read yet.

        Args:
            job: its name.
            step_s: seconds per window.
            folder: where `publish` has put the models.
            known: names of the jobs with a contract; records of another are rejected.
            epoch: number that every forecast carries.
        """
        self.job, self._step_s, self._folder, self._epoch = job, step_s, folder, epoch
        self._known = frozenset({job}) & frozenset(known)  # a record under another job's key is nobody's

    def take(self, raw: bytes | None, rows: list[dict[str, Any]], now: float) -> tuple[bytes, Rows]:
        """Take a micro-batch of one job and return (state after it, messages to send as (topic, key, JSON)).

        A record that cannot be accepted becomes a message to `rejects`.

        Args:
            raw: the state before; None for the first batch.
            rows: with key, value (None allowed), partition and offset, in the order of the offsets.
            now: wall time, epoch seconds.

        Raises:
            msgspec.DecodeError: the state or a model's file cannot be decoded.
            ModelSetError: a model's file makes no forecaster.
            OSError: a model's file cannot be read.
        """
        kept = Kept(Filling()) if raw is None else msgspec.msgpack.decode(raw, type=Kept)
        jobs = ServedJobs(Recent(self._step_s), self._known, self._find, self._epoch)
        self._restore(jobs, kept)
        out: Rows = []
        for row in rows:
            value = row["value"] or b""  # a record may have none
            try:
                sample, windows = jobs.take(self.job, value, now)
            except (MessageError, SeriesError) as error:
                reject = Reject.of("metrics", row["partition"], row["offset"], "serving", error, value, now)
                out.append(("rejects", "metrics", encode(reject)))
                continue
            for window in windows:
                jobs.step(self.job, window)
                if (issued := jobs.forecast(sample)) is not None:
                    out.append(("forecasts", self.job, encoded(issued)))
        return self._packed(jobs), out

    def _restore(self, jobs: ServedJobs, kept: Kept) -> None:
        jobs.windows.add(self.job, kept.windows)
        following = jobs.job(self.job)
        following.filling, following.newest, following.first = kept.filling, kept.newest, kept.first
        following.streak = kept.streak
        files = sorted((self._folder / self.job).glob("*.set"))
        following.generations = [_set(str(path)).generation for path in files]
        made = next((made for made in following.generations if made.number == kept.at), None)
        if made is not None and kept.carried and kept.newest is not None:
            following.resume(made, kept.carried, kept.newest)

    def _packed(self, jobs: ServedJobs) -> bytes:
        following = jobs.job(self.job)
        carried = b"" if following.online is None else following.online.state(self.job)
        windows = [] if following.newest is None else jobs.windows.rates(self.job, 0, following.newest)
        first, newest, at = following.first, following.newest, max(following.at, 0)
        kept = Kept(following.filling, first, newest, following.streak, at, carried, windows)
        return msgspec.msgpack.encode(kept)

    def _find(self, job: str, by: Generation) -> Online:
        path = _path(self._folder, job, by.number)
        if not path.is_file():
            raise ModelSetError(f"{job}: generation {by.number} is not in {self._folder}. Publish it again.")
        return _online(str(path))


def _path(folder: Path, job: str, number: int) -> Path:
    return folder / job / f"{number:08}.set"


@lru_cache(maxsize=256)
def _set(path: str) -> SetFile:
    return msgspec.msgpack.decode(Path(path).read_bytes(), type=SetFile)


@lru_cache(maxsize=64)
def _online(path: str) -> Online:
    return Online(unpack(_set(path).members).forecaster)
