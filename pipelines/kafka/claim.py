"""Who serves or decides, and until when: each claims an epoch on `control`; one that sees a later claim leaves.

Forecasts carry their server's epoch: milliseconds of the claim's wall time, and always above the claim before, so that
a later server counts for more even where the broker was built anew and offsets begin again.
"""

from __future__ import annotations

import time
from contextlib import suppress

from configs.sections import Kafka
from pipelines.kafka.broker import Follower, Record, read_records
from pipelines.kafka.connection import answered
from pipelines.kafka.publisher import Publisher
from tidecast.messages import Control, MessageError, decode, encode

TOPIC = "control"
SERVING, AUTOSCALER = "serving", "autoscaler"


class Claim:
    """One process's claim on the topic `control`, by which an older one of its role sees that it must leave.

    Attributes:
        epoch: number in a server's forecasts: wall time of the claim in ms, above all claims before.
        epochs: this and every other claim that the topic holds.
    """

    def __init__(
        self, kafka: Kafka, publisher: Publisher, role: str, by: str | None = None, kept: int | None = None
    ) -> None:
        """Publish a claim and wait until the broker has it (at most 30 s), or take up the claim of an earlier run.

        Args:
            kafka: connection settings.
            publisher: sends the claim.
            role: SERVING or AUTOSCALER.
            by: name of the deployment, which the claim says.
            kept: epoch of the earlier run on the same store; it is used again if no other one has claimed since, so
                that replayed forecasts have the same bytes.

        Raises:
            BrokerError: the broker does not answer, or not within 30 s, or forbids it (TopicError).
            kafka.errors.KafkaError: it does not take the claim.
        """
        now, self._role = time.time(), role
        records = read_records(kafka, TOPIC)
        claims = [(record.offset, epoch) for record in records if (epoch := self._epoch(record, now))]
        newest = max(claims, default=(-1, 0))
        if kept is None or kept != newest[1]:
            epoch = max(round(now * 1000), *(epoch + 1 for _, epoch in claims), 0)
            message = encode(Control(job=role, wall_time=epoch / 1000, by=by))
            sent = publisher.send_bytes(TOPIC, claim_key(role).encode(), message)
            with answered(kafka):
                newest = int(sent.get(timeout=30).offset), epoch
        self._offset, self.epoch = newest
        self.epochs = frozenset({self.epoch, *(epoch for _, epoch in claims)})
        self._claims, self._read = Follower(kafka, [TOPIC]), -1

    def superseded(self) -> bool:
        """Return whether another one has claimed since the last look, and this one must leave; does not wait."""
        now, offsets = time.time(), list[int]()
        for record in self._claims.poll(0):
            if self._epoch(record, now):
                if record.offset <= self._read:  # the topic was made anew: whoever claims there came later
                    self._offset = -1
                self._read = record.offset
                offsets.append(record.offset)
        return any(offset > self._offset for offset in offsets)

    def close(self) -> None:
        """Close the consumer of `control`; the claim stays on the topic."""
        self._claims.close()

    def _epoch(self, record: Record, now: float) -> int | None:
        """The epoch that a record claims for this role; None of what is no such claim."""
        said = _claimed(record, self._role, now)
        return None if said is None else round(said.wall_time * 1000)


def last_claim(kafka: Kafka, role: str) -> str | None:
    """Return the name of the deployment that claimed a role last; None: nobody did, or a release that says no name.

    Raises:
        BrokerError: the broker does not answer, or forbids it (TopicError).
    """
    now = time.time()
    claims = [said.by for record in read_records(kafka, TOPIC) if (said := _claimed(record, role, now)) is not None]
    return claims[-1] if claims else None


def _claimed(record: Record, role: str, now: float) -> Control | None:
    """The claim on a role that a record is; None of any other."""
    if record.key == claim_key(role):
        with suppress(MessageError):
            return decode(Control, record.value, now)
    return None


def claim_key(role: str) -> str:
    """Return the key of a role's claims."""
    return f"{role}:epoch"
