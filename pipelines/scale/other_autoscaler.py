"""Whether somebody else decides on the same topics already: agents would obey both in turn."""

from __future__ import annotations

import time
from contextlib import closing, suppress

from configs.errors import CorrectableError
from configs.sections import Kafka
from pipelines.kafka.broker import Follower, Record
from pipelines.kafka.claim import AUTOSCALER
from pipelines.kafka.signing import Signer
from pipelines.scale.written import BEAT_S
from tidecast.messages import Decision, Heartbeat, MessageError, decode

LISTEN_S = BEAT_S + 3.0
"""Seconds within which an autoscaler of a job that runs says something."""


class AnotherAutoscalerError(CorrectableError, RuntimeError):
    """Two autoscalers would decide for the same jobs; the message names the topics and the remedy."""


def refuse_another(kafka: Kafka, listen_s: float = LISTEN_S) -> None:
    """Listen whether an autoscaler speaks on the topics; not at all where none has spoken a little while ago.

    Args:
        kafka: the broker, and the prefix of the topics.
        listen_s: seconds.

    Raises:
        AnotherAutoscalerError: one does.
        BrokerError: the broker does not answer, has none of Tidecast's topics, or forbids to read them.
    """
    with closing(Follower(kafka, ["heartbeats", "decisions"], start="latest")) as heard:
        now_on = time.monotonic()
        with closing(Follower(kafka, ["heartbeats", "decisions"])) as earlier:
            earlier.seek_to_time(time.time() - listen_s)
            if first_job_heard(kafka, earlier, 1.0) is None:
                return
        job = first_job_heard(kafka, heard, max(listen_s - (time.monotonic() - now_on), 0.0))
    if job is not None:
        raise another_autoscaler(kafka, f"job {job!r}")


def another_autoscaler(kafka: Kafka, jobs: str) -> AnotherAutoscalerError:
    """Return the error that another one decides for some jobs."""
    return AnotherAutoscalerError(
        f"another autoscaler decides for {jobs} on the topics {kafka.prefix}* at {kafka.bootstrap}: agents obey both "
        "in turn. End that one, or give this deployment topics of its own (TIDECAST_KAFKA__PREFIX)."
    )


def first_job_heard(kafka: Kafka, follower: Follower, within_s: float) -> str | None:
    """Return the first job for which an autoscaler says something within some seconds; None: for none.

    What it said over LISTEN_S (10 s) before is passed over, as somebody may have sent it again, and what is not signed
    for a job that has a key. Where the autoscaler has one itself, so is what it says for jobs without.
    """
    signer, now, until = Signer.of(kafka), time.time(), time.monotonic() + within_s
    while True:
        for record in follower.poll(min(max(until - time.monotonic(), 0.0), 0.5)):
            with suppress(MessageError):
                if (job := _decided_for(record, signer, now)) is not None:
                    return job
        if time.monotonic() >= until:
            return None


def _decided_for(record: Record, signer: Signer, now: float) -> str | None:
    kind: type[Decision | Heartbeat] = Decision if record.topic == "decisions" else Heartbeat
    said = decode(kind, record.value)
    if (isinstance(said, Heartbeat) and said.by != AUTOSCALER) or now - said.wall_time > LISTEN_S:
        return None
    signer.check_record(record, said.job)
    if signer.keys_of(AUTOSCALER) is not None and signer.keys_of(said.job) is None:
        return None
    return str(said.job)
