import pytest
from kafka.future import Future

from configs.sections import Kafka
from pipelines.kafka import publisher
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher


class Producer:
    """Hands out futures and keeps them."""

    def __init__(self):
        self.futures, self.closed = [], False

    def send(self, topic, **options):
        self.futures.append(Future())
        return self.futures[-1]

    def flush(self, timeout):
        pass

    def close(self):
        self.closed = True


@pytest.fixture
def producer(monkeypatch):
    fake = Producer()
    monkeypatch.setattr(publisher, "producer", lambda *args, **options: fake)
    return fake


def test_a_record_that_was_not_accepted_shows_at_flush_once(producer):
    publisher = Publisher(Kafka(bootstrap="127.0.0.1:9"))
    publisher.send_bytes("events", b"k", b"v")
    publisher.send_bytes("events", b"k", b"w")
    producer.futures[0].success(None)
    producer.futures[1].failure(TimeoutError("too late"))
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:9 did not accept.*too late"):
        publisher.flush()
    publisher.flush()


def test_close_tells_of_a_failure_and_leaves_all_the_same(producer):
    publisher = Publisher(Kafka(bootstrap="127.0.0.1:9"))
    publisher.send_bytes("events", b"k", b"v").failure(TimeoutError("too late"))
    with pytest.raises(BrokerError):
        publisher.close()
    assert producer.closed
