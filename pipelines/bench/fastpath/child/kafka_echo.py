"""A bare echo from one topic to another, the floor under the fast path on a broker.

Run it as `python -m pipelines.bench.fastpath.child.kafka_echo FROM TO`.
"""

from __future__ import annotations

import gc
import sys
import time

from configs.sections import Kafka
from configs.settings import load
from pipelines.kafka.broker import Record, offsets
from pipelines.kafka.librdkafka import Feed, Sender
from pipelines.serve.fast.server import SWITCH_S
from pipelines.stack.state import with_stack_addresses


def echo_topic(kafka: Kafka, come: str, go: str) -> None:
    """Send every new record of topic `come` to topic `go`, key, value and headers unchanged, until the reading fails.

    Raises:
        BrokerError: the broker does not answer at the start.
        Exception: whatever ended the reading later.
    """
    sender = Sender(kafka)

    def back(records: list[Record]) -> None:
        for record in records:
            sender.send(go, record.key or "", record.value, list(record.headers.items()))
        sender.poll()

    sys.setswitchinterval(SWITCH_S)
    feed = Feed(kafka, come, {partition: end for partition, (_, end) in offsets(kafka, come).items()}, back)
    gc.freeze()
    while feed.failure is None:
        time.sleep(0.5)
    raise feed.failure


if __name__ == "__main__":
    echo_topic(with_stack_addresses(load()).kafka, sys.argv[1], sys.argv[2])
