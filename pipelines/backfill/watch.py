"""What is heard of one job, as a plan of its backfills takes it: folded from its topics as the autoscaler folds it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Self

from configs.contract import load_contract
from configs.settings import Settings
from models.backfill.live.issued import read_issued
from models.backfill.live.known import KnownJob
from models.backfill.live.ordered import JobNow
from models.policy.live.memory import Memory, fresh
from pipelines.kafka.broker import Follower, Record
from pipelines.kafka.signing import Signer
from pipelines.scale.processor import Scaler
from tidecast.control import WALL, clock_key, clock_of
from tidecast.messages import Control, Forecast, MessageError, decode, decode_keyed
from tidecast.orders import ReplayOrder, ReplayProgress, order_key, standing_order

NEWEST = {"metrics": 4000, "outcomes": 200, "forecasts": 4000, "heartbeats": 200, "replays": 2000, "control": None}
"""Records of each partition that are read at first: batches for the capacity, raises for the lead time, and forecasts
for how they erred; of the orders and clocks all."""


class JobWatch:
    """Follows one job's topics; a context manager.

    Attributes:
        job: its name.
        clock: its own time.
        orders: newest order of each of its replays.
        progress: what was last said of each.
    """

    def __init__(self, settings: Settings, job: str) -> None:
        """Read what there is; takes seconds where there is much.

        Raises:
            SettingsError: the job has no contract, or a wrong one.
            BrokerError, ValueError: a topic cannot be read; an unknown security option.
        """
        self.job, self.clock = job, WALL
        self.orders: dict[str, ReplayOrder] = {}
        self.progress: dict[str, ReplayProgress] = {}
        self._contract = load_contract(job, settings.contracts_dir)
        self._policy = settings.autoscaler.policy
        self._scaler = Scaler(job, self._contract, self._policy, "observe")
        self._memory: Memory = fresh(self._contract)
        self._forecasts: dict[float, Forecast] = {}
        self._signer = Signer.of(settings.kafka)
        self._follower = Follower(settings.kafka, list(NEWEST))
        try:
            self._take(self._follower.read_until(self._follower.seek_to_newest(NEWEST)))
        except BaseException:
            self._follower.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._follower.close()

    def poll(self, wait_s: float) -> list[ReplayProgress]:
        """Wait so long for records, take them, and return what was said of replays."""
        return self._take(self._follower.poll(wait_s))

    def now(self) -> JobNow:
        """Return what is known at this moment."""
        issued = read_issued(map(vars, self._forecasts.values()), self.clock)
        known = KnownJob(self._contract, self._memory, issued, self._policy)
        return JobNow(known, self.clock, time.time(), dict(self.orders), dict(self.progress))

    def _take(self, records: Iterable[Record]) -> list[ReplayProgress]:
        rows, said = [], []
        for record in records:
            if record.topic == "control":
                self._control(record)
            elif record.key == self.job:
                rows.append(
                    dict(topic=record.topic, partition=record.partition, offset=record.offset, value=record.value)
                )
                if (one := self._told(record)) is not None:
                    said.append(one)
        self._memory, _, _ = self._scaler.update_memory(self._memory, rows, time.time())
        return said

    def _control(self, record: Record) -> None:
        try:
            if record.key is None or not record.key.startswith(f"{self.job}:"):
                return
            self._signer.check_record(record, self.job)  # what is ordered on top of it is signed
            if record.key == clock_key(self.job):
                self.clock = clock_of(decode(Control, record.value)) or self.clock
            elif record.key.startswith(order_key(self.job, "")):
                order = decode(ReplayOrder, record.value)
                if order_key(order.job, order.id) == record.key:
                    self.orders[order.id] = standing_order(self.orders.get(order.id), order)
        except MessageError:
            return

    def _told(self, record: Record) -> ReplayProgress | None:
        try:
            if record.topic == "forecasts":
                forecast = decode_keyed(Forecast, record.key, record.value)
                self._forecasts[forecast.time] = forecast
            elif record.topic == "replays":
                progress = decode_keyed(ReplayProgress, record.key, record.value)
                self.progress[progress.id] = progress
                return progress
        except MessageError:
            pass
        return None


def read_now(settings: Settings, job: str) -> JobNow:
    """Return what is known of a job at this moment.

    Raises:
        SettingsError: the job has no contract, or a wrong one.
        BrokerError, ValueError: a topic cannot be read; an unknown security option.
    """
    with JobWatch(settings, job) as watch:
        return watch.now()
