"""librdkafka's client where the broker goes away."""

from types import SimpleNamespace

import pytest

from configs.sections import Kafka
from pipelines.kafka import librdkafka as fast_broker
from pipelines.kafka.broker import BrokerError


class Gone:
    """A broker that told where its topic ends, gave one record, and died."""

    def __init__(self):
        self.given, self.closed = 0, False

    def list_topics(self, topic, timeout):
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=[0])})

    def get_watermark_offsets(self, partition, timeout):
        return 0, 2

    def assign(self, partitions):
        pass

    def consume(self, most, wait_s):
        if self.given:
            return []
        self.given = 1
        told = {"error": None, "partition": 0, "offset": 0, "key": b"k", "value": b"v", "headers": None}
        return [SimpleNamespace(**{name: lambda value=value: value for name, value in told.items()})]

    def position(self, partitions):
        return [SimpleNamespace(partition=0, offset=self.given)]

    def close(self):
        self.closed = True


def test_a_broker_that_dies_while_a_topic_is_read_to_its_end_is_an_error_with_words(monkeypatch):
    gone = Gone()
    monkeypatch.setattr(fast_broker, "_consumer", lambda kafka: gone)
    monkeypatch.setattr(fast_broker, "STUCK_S", 0.05, raising=False)
    with pytest.raises(BrokerError, match=r"'forecasts' at here:9092: nothing more came for 0.05 s, 1 records.*start"):
        fast_broker.read_back(Kafka(bootstrap="here:9092"), "forecasts")
    assert gone.closed
