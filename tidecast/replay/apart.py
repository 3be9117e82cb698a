"""An application of the replays' own: it reads what was ordered apart from the live job, and ends.

Nothing of it is the live job's: its executors are its own, live records wait for none of its tasks, and it reads as
fast as it can. Its results meet the live ones in the sink, as those of a replay beside them do.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from tidecast.connection.environment import ADDRESS, ORDER, PREFIX, SIGNING_KEY
from tidecast.connection.outbox import Outbox
from tidecast.connection.reach import UnreachableError
from tidecast.connection.signing import SigningKeys
from tidecast.connection.transport import consumer
from tidecast.control import TOPIC, clock_key, clock_of
from tidecast.fields import job_name
from tidecast.job import OrderedJob
from tidecast.messages import Control, MessageError, decode
from tidecast.orders import ReplayOrder, order_key
from tidecast.replay.driver import POLL_S, Replays
from tidecast.replay.replayable import Replayable

log = logging.getLogger("tidecast")

PATIENCE_S = 120.0
"""Seconds that the last words wait for a broker that is away: without them whoever follows takes it for failed."""


def replay_apart(
    job: str, replay: Replayable, bootstrap: str | None = None, security: Mapping[str, Any] | None = None,
    prefix: str | None = None, signing_key: str | None = None, ended: Callable[[], bool] = lambda: False,
    topics: tuple[str, ...] = (),
) -> dict[str, str]:  # fmt: skip
    """Read what is ordered of a job in an application of its own, until none of it is waited for.

    Blocks, once all is over up to PATIENCE_S (120 s) for a broker that is away. Call it in a Spark application that
    runs nothing else, with as many executors as the order has: `tidecast backfill` starts that by the command of the
    job's contract, for the one order whose key is TIDECAST_ORDER in the environment; without that all orders are met.
    What was read goes on from where another such application ended. A replay that is paused, or compared and not
    published yet, is left to the next one.

    Args:
        job: its name on Tidecast's topics; its live query is another application's.
        replay: as it is given to `attach` there.
        bootstrap: Kafka broker of Tidecast's topics, `host:port`; default: the environment's TIDECAST_KAFKA__BOOTSTRAP.
        security: kafka-python's client options for it.
        prefix: of the names of Tidecast's own topics; default: the environment's TIDECAST_KAFKA__PREFIX, else "".
        signing_key: as of `attach`.
        ended: whether to end before that, asked several times a second.
        topics: whole names of those that the job reads, so that a range of another one, or one that leaves out one of
            them, is refused. None: neither is, and what it comes to is published as if it were whole. Only the live
            query knows them: a plan is given whatever is ordered, and neither orders nor metrics say what it reads.

    Returns:
        What was last said of each replay, by its id: done, cancelled, failed, compared, or where it was ended.

    Raises:
        ValueError: no broker is known; `job` is no valid name; a security option or a signing key is wrong.
        UnreachableError: the broker does not answer.
        LookupError: its topic `control` is not there, or may not be read.
        kafka.errors.KafkaError: the broker stopped answering.
    """
    address = bootstrap or os.environ.get(ADDRESS)
    if not address:
        raise ValueError(f"no broker known for job {job!r}: give replay_apart(..., bootstrap='host:port') or {ADDRESS}")
    secret = os.environ.get(SIGNING_KEY) if signing_key is None else signing_key
    signing = None if secret is None else SigningKeys.read(secret)
    prefix = os.environ.get(PREFIX, "") if prefix is None else prefix
    outbox = Outbox(address, security or {}, f"tidecast-{job}-replays-outbox", prefix, signing)
    state = OrderedJob(
        name=job_name(job), clock=None, outbox=outbox, mode="act", prefix=prefix, signing=signing, topics=topics
    )  # fmt: skip
    orders, over = _Orders(state, address, security or {}), threading.Event()
    sends = threading.Thread(target=_send, args=(outbox, over), name=f"tidecast-{job}-replays-outbox", daemon=True)
    replays = Replays(state, replay)
    with ExitStack() as ends:  # the last one first, and all of them though one fails
        ends.callback(outbox.close)
        ends.callback(_end_sending, sends, over)
        ends.callback(orders.close)
        ends.callback(replays.close)
        orders.read_all()
        sends.start()
        while not ended():
            replays.poll()
            if not replays.waiting():
                _await_sent(outbox)
                break
            orders.poll()
    return replays.states()


class _Orders:
    """Follows the orders and the clock of one job on the topic `control`."""

    def __init__(self, job: OrderedJob, bootstrap: str, security: Mapping[str, Any]) -> None:
        from kafka import TopicPartition

        self._job, self._only = job, os.environ.get(ORDER)
        self._client = consumer(bootstrap, security, client_id=f"tidecast-{job.name}-replays-orders")
        name = job.prefix + TOPIC
        self._parts = [TopicPartition(name, n) for n in sorted(self._client.partitions_for_topic(name) or ())]
        if not self._parts:
            self._client.close(timeout_ms=1000)
            raise LookupError(
                f"topic {name!r} is not on the broker at {bootstrap}, or may not be read; `tidecast autoscale` "
                "creates it"
            )
        self._client.assign(self._parts)
        self._client.seek_to_beginning(*self._parts)

    def read_all(self) -> None:
        """Read what there is by now."""
        ends = self._client.end_offsets(self._parts)
        while any(self._client.position(part) < end for part, end in ends.items()):
            self.poll()

    def poll(self) -> None:
        """Wait POLL_S for records, and take them."""
        for records in self._client.poll(timeout_ms=int(1000 * POLL_S)).values():
            for record in records:
                self._take(record)

    def close(self) -> None:
        self._client.close(timeout_ms=1000)

    def _take(self, record: Any) -> None:
        job, key = self._job, (record.key or b"").decode("utf-8", "replace")
        ordered = key.startswith(order_key(job.name, ""))
        if record.value is None or not (ordered or key == clock_key(job.name)):
            return
        try:
            if job.signing is not None:
                job.signing.check(record.topic, key, record.value, dict(record.headers))
            if ordered and self._only in (None, key):
                job.take_order(key, decode(ReplayOrder, record.value))
            elif not ordered:
                job.clock = clock_of(decode(Control, record.value, time.time())) or job.clock
        except MessageError as error:  # the job's agent has sent it to the topic of rejects
            log.warning("%s: a record on %s was rejected: %s", job.name, record.topic, error)


def _send(outbox: Outbox, over: threading.Event) -> None:
    from kafka.errors import KafkaError

    while not over.is_set():
        try:
            outbox.send_next()
        except (UnreachableError, KafkaError) as error:
            log.warning("sending fails, trying on: %s", error)
            over.wait(1.0)


def _await_sent(outbox: Outbox) -> None:
    until = time.monotonic() + PATIENCE_S
    while outbox.waiting and time.monotonic() < until:
        time.sleep(POLL_S)


def _end_sending(sends: threading.Thread, over: threading.Event) -> None:
    over.set()
    if sends.is_alive():
        sends.join(5.0)
