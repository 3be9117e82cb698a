import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError, TopicAuthorizationFailedError
from kafka.future import Future

from configs.sections import Kafka
from pipelines.backfill.orders import send_order
from pipelines.kafka import publisher
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from tests.fakes.planned_job import order
from tidecast import control


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


class Away(Producer):
    """Of a broker that has gone away: what waits fails once it was for long enough on its way, and not before."""

    def __init__(self, delivery_timeout_ms=120_000, **_):
        super().__init__()
        self.gives_up_s, self.waited_s = delivery_timeout_ms / 1000, 0.0

    def flush(self, timeout):
        if self.waited_s + timeout < self.gives_up_s:
            self.waited_s += timeout
            raise KafkaTimeoutError("Timeout waiting for future")
        self.waited_s = max(self.waited_s, self.gives_up_s)
        for future in self.futures:
            if not future.is_done:
                future.failure(KafkaTimeoutError("expired"))


def test_an_order_that_is_said_to_have_failed_is_given_up_and_not_sent_behind_that(monkeypatch):
    made = []
    monkeypatch.setattr(publisher, "producer", lambda *args, **options: made.append(Away(**options)) or made[-1])
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:9 has not acknowledged.*expired.*may have it all the same"):
        send_order(Kafka(bootstrap="127.0.0.1:9"), order())
    assert made[0].futures[0].is_done and made[0].closed and made[0].waited_s <= 10


class Answering(Producer):
    """Gives a record up once it was for long enough on its way, or hands it an error before."""

    def __init__(self, error=None):
        super().__init__()
        self.error = error

    def __call__(self, *_, delivery_timeout_ms=120_000, **__):
        self.gives_up_s = delivery_timeout_ms / 1000
        return self

    def send(self, topic, **options):
        self.futures.append(self)
        return self

    def get(self, timeout):
        if self.error is not None:
            raise self.error
        raise KafkaTimeoutError("expired" if timeout > self.gives_up_s else "on its way still")

    def close(self, timeout):
        self.closed = self.error is not None or self.gives_up_s <= control.SEND_S
        if not self.closed:
            raise KafkaTimeoutError("Timeout waiting for future")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (None, r"127\.0\.0\.1:9 has not acknowledged orders:mode within 10 s: .* not known.*job show orders"),
        (KafkaConnectionError("cut"), "has not acknowledged orders:mode"),
        (TopicAuthorizationFailedError("control"), "did not take orders:mode: TopicAuthorizationFailedError"),
    ],
)
def test_of_a_mode_on_its_way_it_is_not_said_that_it_was_not_taken_and_it_comes_no_later(monkeypatch, error, words):
    client = Answering(error)
    monkeypatch.setattr("tidecast.connection.transport.producer", client)
    with pytest.raises(ConnectionError, match=words):
        control.set_mode("127.0.0.1:9", "orders", "act")
    assert client.closed
