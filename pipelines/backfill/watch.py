"""What is heard of one job, as a plan of its backfills takes it: folded from its topics as the autoscaler folds it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Self

from configs.contract import load_contract
from configs.errors import SettingsError
from configs.settings import Settings
from models.backfill.live.issued import read_issued
from models.backfill.live.known import KnownJob
from models.backfill.live.ordered import JobNow
from models.backfill.live.said import with_known_done
from models.contract.declared import TermsError
from models.policy.core.sustained import checked_terms
from models.policy.live.memory import Memory, fresh, with_contract
from pipelines.backfill.orders import read_order, read_progress
from pipelines.kafka.broker import Follower, Record
from pipelines.kafka.clocks import announced_clock
from pipelines.kafka.signing import Signer
from pipelines.scale.processor import Scaler
from tidecast.control import WALL
from tidecast.messages import Forecast, MessageError, decode_keyed
from tidecast.orders import ReplayOrder, ReplayProgress, standing_order

NEWEST = {
    "metrics": 4000, "decisions": 2000, "outcomes": 200, "forecasts": 4000, "heartbeats": 200, "replays": 2000,
    "control": None,
}  # fmt: skip
"""Records of each partition that are read at first: batches for the capacity, decisions for those that ran beside a
start, raises for the lead time, and forecasts for how they erred; of the orders and clocks all."""


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
        self._folder = settings.contracts_dir
        self._contract = load_contract(job, self._folder)
        self._policy, self._observes = settings.autoscaler.policy, settings.autoscaler.mode == "observe"
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
        """Return what is known at this moment, by the contract as it is now; one that is wrong counts for nothing."""
        self._read_contract()
        issued = read_issued(map(vars, self._forecasts.values()), self.clock)
        known = KnownJob(self._contract, self._memory, issued, self._policy, self._observes)
        return JobNow(known, self.clock, time.time(), dict(self.orders), dict(self.progress))

    def _read_contract(self) -> None:
        """As the autoscaler takes a contract that changes: one that is wrong or away leaves the last one in force."""
        with suppress(SettingsError, TermsError, OSError):
            stated = load_contract(self.job, self._folder)
            checked_terms(stated)
            if stated.hash != self._contract.hash:
                self._contract, self._memory = stated, with_contract(self._memory, stated)
                self._scaler = Scaler(self.job, stated, self._policy, "observe")

    def _take(self, records: Iterable[Record]) -> list[ReplayProgress]:
        rows, said = [], []
        for record in records:
            if record.topic == "control":
                self._control(record)
            elif record.key == self.job and (record.topic != "decisions" or self._is_signed(record)):
                rows.append(
                    dict(topic=record.topic, partition=record.partition, offset=record.offset, value=record.value)
                )
                if record.topic == "forecasts":
                    self._forecast(record)
                elif record.topic == "replays" and (one := read_progress(self.job, record.key, record.value)):
                    self.progress[one.id] = with_known_done(one, self.progress.get(one.id))
                    said.append(self.progress[one.id])
        self._memory, _, _ = self._scaler.update_memory(self._memory, rows, time.time())
        return said

    def _is_signed(self, record: Record) -> bool:
        try:
            self._signer.check_record(record, self.job)
        except MessageError:
            return False
        return True

    def _control(self, record: Record) -> None:
        if (order := read_order(self.job, record, self._signer)) is not None:
            self.orders[order.id] = standing_order(self.orders.get(order.id), order)
        else:
            self.clock = announced_clock(self.job, record, self._signer) or self.clock

    def _forecast(self, record: Record) -> None:
        with suppress(MessageError):
            forecast = decode_keyed(Forecast, record.key, record.value, time.time())
            self._forecasts[forecast.time] = forecast


def read_now(settings: Settings, job: str) -> JobNow:
    """Return what is known of a job at this moment.

    Raises:
        SettingsError: the job has no contract, or a wrong one.
        BrokerError, ValueError: a topic cannot be read; an unknown security option.
    """
    with JobWatch(settings, job) as watch:
        return watch.now()
