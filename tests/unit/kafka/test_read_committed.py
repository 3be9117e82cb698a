"""A topic's committed records are read to the end that it has, whatever its other partitions do meanwhile."""

import time
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from configs.sections import Kafka
from pipelines.kafka import committed
from pipelines.kafka.committed import read_committed
from pipelines.kafka.connection import BrokerError, TopicError

HERE = Kafka(bootstrap="here:9092")


def record(partition, offset):
    return SimpleNamespace(
        partition=lambda: partition, offset=lambda: offset, error=lambda: None, key=lambda: b"k",
        value=lambda: f"{partition}.{offset}".encode(), timestamp=lambda: (1, 5000),
    )  # fmt: skip


def told(code, partition=0):
    return SimpleNamespace(partition=lambda: partition, error=lambda: KafkaError(code))


class Reader:
    """Polls what it is given in turn, then nothing."""

    def __init__(self, polls):
        self.polls, self.assigned, self.closed = iter(polls), [], 0

    def assign(self, places):
        self.assigned = [(place.partition, place.offset) for place in places]

    def poll(self, wait_s):
        return next(self.polls, None)

    def close(self):
        self.closed += 1


@pytest.fixture
def reads(monkeypatch):
    """From bounds of partitions and what is polled to the reader; a topic that gives nothing is given up soon."""
    monkeypatch.setattr(committed, "WAIT_S", 0.05)

    def there(bounds, polls):
        reader = Reader(polls)
        monkeypatch.setattr(committed, "topic_offsets", lambda kafka, topic: bounds)
        monkeypatch.setattr(committed, "make_client", lambda client, kafka, options: reader)
        return reader

    return there


def test_a_partition_is_read_to_the_end_that_it_had_or_to_where_no_more_is_committed(reads):
    polls = [record(0, 3), record(1, 0), record(0, 4), record(0, 5), told(KafkaError._PARTITION_EOF, 1), record(0, 6)]
    reader = reads({0: (3, 5), 1: (0, 2)}, polls)
    assert [one.value for one in read_committed(HERE, "results")] == [b"0.3", b"1.0", b"0.4"]
    assert reader.assigned == [(0, 3), (1, 0)] and reader.closed == 1
    reads({0: (0, 9)}, [record(0, 7), record(0, 11)])  # marks of transactions stand between
    assert [one.value for one in read_committed(HERE, "results", 2)] == [b"0.7"]


def test_a_partition_that_gives_nothing_is_not_waited_for_while_another_one_grows(reads):
    reader = reads({0: (0, 1), 1: (0, 1)}, (record(0, offset) for offset in range(10**9)))
    with pytest.raises(BrokerError, match=r"'results' at here:9092: nothing more came for 0\.05 s\. .*start again"):
        list(read_committed(HERE, "results"))
    assert reader.closed == 1


def test_whoever_takes_long_for_a_record_gets_the_next_one_all_the_same(reads):
    reads({0: (0, 2)}, [record(0, 0), None, record(0, 1)])
    found = []
    for one in read_committed(HERE, "results"):
        time.sleep(0.06)
        found.append(one.value)
    assert found == [b"0.0", b"0.1"]


def test_a_topic_that_may_not_be_read_is_told_with_where_the_rights_stand(reads):
    reads({0: (0, 1)}, [told(KafkaError._ALL_BROKERS_DOWN, -1), told(KafkaError.TOPIC_AUTHORIZATION_FAILED)])
    with pytest.raises(TopicError, match=r"here:9092 forbids to read topic 'results'\. docs/security\.md"):
        list(read_committed(HERE, "results"))
