"""Who serves or decides, and until when: each claims an epoch on `control`; one that sees a later claim leaves.

Forecasts carry their server's epoch: milliseconds of the claim's wall time, and always above the claim before, so that
a later server counts for more even where the broker was built anew and offsets begin again, and an old claim that is
sent again for nothing. Where the file of signing keys has a line for the role, only claims signed with it count.
"""

from __future__ import annotations

import time
from contextlib import suppress

from configs.sections import Kafka
from pipelines.kafka.broker import Follower, Record, read_records
from pipelines.kafka.connection import answered
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.signing import Signer
from tidecast.messages import FUTURE_S, Control, MessageError, decode

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
            BrokerError: the broker does not answer, or not within 30 s, forbids it (TopicError), or does not take it.
        """
        now, self._role, self._signer = time.time(), role, Signer.of(kafka)
        self.epochs = frozenset(epoch for record in read_records(kafka, TOPIC) if (epoch := self._epoch(record, now)))
        newest = max(self.epochs, default=0)
        if kept is None or kept != newest:
            newest = max(round(now * 1000), newest + 1)
            sent = publisher.send(TOPIC, claim_key(role), Control(job=role, wall_time=newest / 1000, by=by))
            with answered(kafka):
                sent.get(timeout=30)
        self.epoch = newest
        self.epochs |= {newest}
        self._claims = Follower(kafka, [TOPIC])

    def superseded(self) -> bool:
        """Return whether another one has claimed since the last look, and this one must leave; does not wait."""
        now = time.time()
        epochs = {epoch for record in self._claims.poll(0) if (epoch := self._epoch(record, now))}
        if self.epoch / 1000 > now + FUTURE_S:  # the clock was set back: who claims now does so below this one
            return bool(epochs - self.epochs)
        return any(epoch > self.epoch for epoch in epochs)

    def close(self) -> None:
        """Close the consumer of `control`; the claim stays on the topic."""
        self._claims.close()

    def _epoch(self, record: Record, now: float) -> int | None:
        """The epoch that a record claims for this role; None of what is no such claim."""
        said = _claimed(record, self._role, self._signer, now)
        return None if said is None else round(said.wall_time * 1000)


def last_claim(kafka: Kafka, role: str) -> str | None:
    """Return the name of the deployment that claimed a role last; None: nobody did, or a release that says no name.

    Raises:
        BrokerError: the broker does not answer, or forbids it (TopicError).
    """
    now, signer, newest = time.time(), Signer.of(kafka), None
    for record in read_records(kafka, TOPIC):
        said = _claimed(record, role, signer, now)
        if said is not None and (newest is None or said.wall_time >= newest.wall_time):
            newest = said
    return None if newest is None else newest.by


def _claimed(record: Record, role: str, signer: Signer, now: float) -> Control | None:
    """The claim on a role that a record is; None of any other."""
    if record.key == claim_key(role):
        with suppress(MessageError):
            signer.check_record(record, role)
            return decode(Control, record.value, now)
    return None


def claim_key(role: str) -> str:
    """Return the key of a role's claims."""
    return f"{role}:epoch"
