"""How a job's own time follows from wall time, as announced on the topic `control`."""

from __future__ import annotations

from configs.sections import Kafka
from pipelines.kafka.broker import read_records
from pipelines.kafka.signing import Signer
from tidecast.control import Clock, clock_key, clock_of
from tidecast.messages import Control, MessageError, decode


def read_clock(kafka: Kafka, job: str) -> Clock | None:
    """Return how a job's time follows from wall time, as announced last; None where nothing was: it is wall time.

    Of a job with a signing key what is not signed counts for nothing.

    Raises:
        BrokerError, ValueError: the topic cannot be read; an unknown security option.
    """
    clock, signer = None, Signer.of(kafka)
    for record in read_records(kafka, "control"):
        if record.key == clock_key(job):
            try:
                signer.check_record(record, job)
                clock = clock_of(decode(Control, record.value)) or clock
            except MessageError:
                continue
    return clock
