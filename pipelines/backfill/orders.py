"""Orders of replays on the topic `control`, and what the jobs' agents say of them on `replays`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from configs.errors import CorrectableError
from configs.sections import Kafka
from models.backfill.live.said import with_known_done
from pipelines.kafka.broker import Follower, Record, read_records
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.signing import Signer
from tidecast.messages import MessageError, decode, decode_keyed
from tidecast.orders import ReplayOrder, ReplayProgress, later_than, order_key, standing_order

OVER = ("done", "cancelled", "failed")
"""States of a replay that comes to nothing more by itself."""
WITHIN = {"max_block_ms": 10_000, "request_timeout_ms": 5_000, "delivery_timeout_ms": 10_000}
"""How long an order is on its way at most: what was said to have failed must not come later."""
SILENT_S = 30.0
"""Seconds without a word of a job's agent after which it is said that there may be none."""


class OrderError(CorrectableError, ValueError):
    """The order cannot be given; the message says why, and what can."""


def send_order(kafka: Kafka, order: ReplayOrder) -> None:
    """Publish an order; it stands until it is over, also for agents that attach later.

    Raises:
        BrokerError: no broker is set or answers, or the order was not acknowledged within 10 s: it may stand all the
            same, but is not sent later.
    """
    with closing(Publisher(kafka, **WITHIN)) as publisher:  # which waits for the acknowledgement
        publisher.send("control", order_key(order.job, order.id), order)


def read_orders(kafka: Kafka, job: str) -> dict[str, ReplayOrder]:
    """Return the order that holds of each of a job's replays, by id (`standing_order`).

    One that is no valid message is left out, and of a job with a signing key one that is not signed.

    Raises:
        BrokerError, ValueError: the topic cannot be read; an unknown security option.
    """
    found: dict[str, ReplayOrder] = {}
    signer = Signer.of(kafka)
    for record in read_records(kafka, "control"):
        if (order := read_order(job, record, signer)) is not None:
            found[order.id] = standing_order(found.get(order.id), order)
    return found


def read_order(job: str, record: Record, signer: Signer) -> ReplayOrder | None:
    """Return what a record of the topic `control` orders of a job; None for all else, and for what is not signed."""
    if record.key is None or not record.key.startswith(order_key(job, "")):
        return None
    try:
        signer.check_record(record, job)
        order = decode(ReplayOrder, record.value)
    except MessageError:
        return None
    return order if order_key(order.job, order.id) == record.key else None


def change_order(kafka: Kafka, job: str, name: str, wanted: str, then: str | None = None) -> ReplayOrder:
    """Order that a replay is to run, pause or be cancelled, and what comes `then` if that changes; return the order.

    Raises:
        OrderError: the job has no such replay, or it is over.
        BrokerError, ValueError: as `send_order` and `read_orders`.
    """
    known = read_orders(kafka, job)
    if name not in known:
        listed = ", ".join(known) or "none"
        raise OrderError(f"job {job!r} has no replay {name!r}; known are {listed}. Order one with --from and --to.")
    if known[name].wanted == "done":
        raise OrderError(f"replay {name!r} of job {job!r} is over: order its range again, with --from and --to.")
    at = later_than(known[name], time.time())
    order = replace(known[name], wanted=wanted, then=then or known[name].then, wall_time=at)
    send_order(kafka, order)
    return order


def newest_progress(kafka: Kafka, job: str) -> dict[str, ReplayProgress]:
    """Return what was last said of each of a job's replays, by id.

    Raises:
        BrokerError, ValueError: the topic cannot be read; an unknown security option.
    """
    found: dict[str, ReplayProgress] = {}
    for record in read_records(kafka, "replays"):
        if (said := read_progress(job, record.key, record.value)) is not None:
            found[said.id] = with_known_done(said, found.get(said.id))
    return found


def follow_progress(kafka: Kafka, order: ReplayOrder) -> Iterator[ReplayProgress | None]:
    """Yield what a job's agent says of an order, from the first words on, until it is over; None after 30 s without.

    One that is to be compared is over, too, once it is and waits for its publication.

    Raises:
        BrokerError, ValueError: the topic cannot be followed; an unknown security option.
    """
    last: ReplayProgress | None = None
    with closing(Follower(kafka, ["replays"])) as follower:
        heard = time.monotonic()
        while True:
            for record in follower.poll(0.5):
                said = read_progress(order.job, record.key, record.value)
                if said is None or said.id != order.id:
                    continue
                last = said = with_known_done(said, last)
                if not said.answers(order):
                    continue
                heard = time.monotonic()
                yield said
                if is_over(said, order):
                    return
            if time.monotonic() - heard > SILENT_S:
                heard = time.monotonic()
                over = ended_before(last, read_orders(kafka, order.job).get(order.id))
                yield last if over else None
                if over:
                    return


def ended_before(last: ReplayProgress | None, standing: ReplayOrder | None) -> bool:
    """Return whether a replay was over before its newest order came, so that no agent says anything of that one.

    Args:
        last: words of it.
        standing: order of it; the agent has noted in its place that it is done.
    """
    return last is not None and last.state in OVER and standing is not None and standing.wanted == "done"


def standing_progress(order: ReplayOrder | None, said: ReplayProgress | None) -> ReplayProgress | None:
    """Return what was said of an order as it stands: nothing where it was over, and has been ordered again since.

    Args:
        order: the newest of a replay; None: it was not read.
        said: last of the replay of that name; None: nothing was.
    """
    if order is None or said is None or order.wanted == "done":
        return said
    return None if said.state in OVER and not said.answers(order) else said


def has_ended(said: ReplayProgress) -> bool:
    """Return whether a replay comes to nothing more by itself after these words; a gap that failed is tried again."""
    return said.state in OVER and not said.tried_again


def is_over(said: ReplayProgress, order: ReplayOrder) -> bool:
    """Return whether nothing more is to be expected of an order after these words."""
    return has_ended(said) or (said.state == "compared" and order.then == "compare")


def read_progress(job: str, key: str | None, value: bytes) -> ReplayProgress | None:
    """Return what a record of the topic `replays` says of a job; None for one of another job, or no valid message."""
    try:
        return decode_keyed(ReplayProgress, key, value) if key == job else None
    except MessageError:
        return None
