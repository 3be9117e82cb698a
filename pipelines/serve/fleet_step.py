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
from pipelines.serve.arrivals import TOLD
from pipelines.serve.event import encoded
from pipelines.serve.fleet import KEPT_STEPS
from pipelines.serve.following import Following
from pipelines.serve.generations import Generation
from pipelines.serve.model_set import ModelSetError, unpack
from pipelines.serve.records import SampleValue, packed
from pipelines.serve.samples import read_sample
from pipelines.serve.stepping import Stepper
from pipelines.serve.windower import Filling, fill
from pipelines.store import Record
from tidecast.messages import MessageError, Reject, encode

Rows = list[tuple[str, str, bytes]]
"""(topic, key, message)."""


class Kept(msgspec.Struct, array_like=True):
    """One job between two micro-batches: what the store keeps of it, in one value."""

    filling: Filling
    first: int | None = None
    newest: int | None = None
    streak: tuple[int, int, bool] | None = None
    at: int = 0
    carried: bytes = b""
    windows: list[tuple[int, float]] = []

    def history(self, key: str, lo: int = 0, hi: int = 2**63 - 1, most: int = KEPT_STEPS) -> list[Record]:
        """The kept windows as the store has them."""
        found = [(version, rate) for version, rate in self.windows if lo <= version <= hi][:most]
        return [Record(v, 0, 0, 0, 0, 0, packed(SampleValue(rate, None, 0.0, 1.0))) for v, rate in found]


class SetFile(msgspec.Struct, array_like=True):
    """A generation and its set, as a file from which any worker can begin."""

    generation: Generation
    members: dict[str, bytes]


def publish(folder: Path, job: str, made: Generation, members: dict[str, bytes]) -> None:
    """Put a generation where the workers look; it is whole or not there."""
    home = folder / job
    home.mkdir(parents=True, exist_ok=True)
    new = home / f"{made.number}.new"
    new.write_bytes(msgspec.msgpack.encode(SetFile(made, members)))
    new.replace(home / f"{made.number:08}.set")


class FleetStep:
    """One job's part of the query, without Spark."""

    def __init__(self, job: str, step_s: float, folder: Path, known: Collection[str], epoch: int) -> None:
        self.job, self._step_s, self._folder, self._known, self._epoch = job, step_s, folder, known, epoch

    def take(self, raw: bytes | None, rows: list[dict[str, Any]], now: float) -> tuple[bytes, Rows]:
        """The state after the records, and the messages they cause.

        Args:
            raw: the state before; None before any.
            rows: key, value, partition and offset of records, in the order of their offsets.
            now: wall time.
        """
        kept = Kept(Filling()) if raw is None else _KEPT.decode(raw)
        following = self._following(kept)
        stepper = Stepper(kept, self._find, self._epoch)
        out: Rows = []
        for row in rows:
            text = row["value"] or ""  # a record may have none
            try:
                out += self._one(following, stepper, text.encode(), now)
            except (MessageError, SeriesError) as error:
                at = int(row["partition"]), int(row["offset"])
                reject = Reject("metrics", *at, "serving", str(error)[:TOLD], text[:TOLD], now)
                out.append(("rejects", "metrics", encode(reject)))
        return self._packed(kept, following), out

    def _one(self, following: Following, stepper: Stepper, raw: bytes, now: float) -> Rows:
        sample = read_sample(raw, now)
        if sample.job != self.job or sample.job not in self._known:
            raise MessageError(f"job {sample.job!r} under the key {self.job!r} has no contract or is another's")
        filled = fill(following.filling, sample, self._step_s)
        following.filling = filled.filling
        out: Rows = []
        for window in filled.closed:
            by = stepper.step(following, window)
            if by is not None:
                said, _ = stepper.say(following, by, round(sample.wall_time * 1e9), sample.time_scale)
                out += [("forecasts", self.job, encoded(said))] if said is not None else []
        return out

    def _following(self, kept: Kept) -> Following:
        streak = None if kept.streak is None else Streak(*kept.streak)
        found = [made.generation for made in _sets(self._folder, self.job)]
        following = Following(
            self.job, self._step_s, kept.filling, kept.newest, kept.first, streak=streak, generations=found, at=kept.at
        )
        by = next((made for made in found if made.number == kept.at), None)
        if by is not None and kept.carried and kept.newest is not None:
            following.online = self._find(self.job, by)
            reach = max(following.online.reach, 1)
            history = following.history(kept, kept.newest - reach + 1, kept.newest)
            following.online.restore(self.job, kept.carried, history)
        return following

    def _packed(self, kept: Kept, following: Following) -> bytes:
        streak = None if following.streak is None else tuple(following.streak)
        windows = [*kept.windows, *following.unsaved][-KEPT_STEPS:]
        carried = b"" if following.online is None else following.online.state(self.job)
        at = max(following.at, 0)
        after = (following.filling, following.first, following.newest, streak, at, carried, windows)
        return msgspec.msgpack.encode(after)

    def _find(self, job: str, by: Generation) -> Online:
        for made in _sets(self._folder, job):
            if made.generation.number == by.number:
                return _online(str(self._folder / job / f"{by.number:08}.set"))
        raise ModelSetError(f"{job}: generation {by.number} is not in {self._folder}. Publish it again.")


def _sets(folder: Path, job: str) -> list[SetFile]:
    return [_set(str(path)) for path in sorted((folder / job).glob("*.set"))]


@lru_cache(maxsize=256)
def _set(path: str) -> SetFile:
    return _SET.decode(Path(path).read_bytes())


@lru_cache(maxsize=64)
def _online(path: str) -> Online:
    return Online(unpack(_set(path).members).forecaster)


_KEPT = msgspec.msgpack.Decoder(Kept)
_SET = msgspec.msgpack.Decoder(SetFile)
