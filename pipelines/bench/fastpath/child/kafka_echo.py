"""A bare echo from one topic to another, the floor under the fast path on a broker.

Run it as `python -m pipelines.bench.fastpath.child.kafka_echo FROM TO`.
"""

from __future__ import annotations

import gc
import sys
import time

from configs.sections import Kafka
from configs.settings import load
from pipelines.kafka.broker import Record, topic_offsets
from pipelines.kafka.librdkafka import Feed, Sender
from pipelines.serve.fast.server import SWITCH_S
from pipelines.stack.state import with_stack_addresses


def echo_topic(kafka: Kafka, source: str, target: str) -> None:
    """Send every new record of one topic to another, key, value and headers unchanged, until reading fails.

    A failure is noticed within 0.5 s. Sets the process's thread switch interval and freezes its heap (`gc.freeze`).

    Args:
        kafka: the broker.
        source: topic that is read, from its end on.
        target: topic that is written to; a record without a key gets an empty one.

    Raises:
        BrokerError: the broker or the source topic is not there at the start.
        SettingsError: a security option that librdkafka lacks.
        Exception: whatever ended the reading later.
    """
    sender = Sender(kafka)

    def send_back(records: list[Record]) -> None:
        for record in records:
            sender.send(target, record.key or "", record.value, list(record.headers.items()))
        sender.poll()

    sys.setswitchinterval(SWITCH_S)
    ends = {partition: end for partition, (_, end) in topic_offsets(kafka, source).items()}
    feed = Feed(kafka, source, ends, send_back)
    gc.freeze()
    while feed.failure is None:
        time.sleep(0.5)
    raise feed.failure


if __name__ == "__main__":
    echo_topic(with_stack_addresses(load()).kafka, sys.argv[1], sys.argv[2])
