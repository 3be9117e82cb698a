"""A topic is read to its end, also where the broker goes away meanwhile."""

from contextlib import closing
from types import SimpleNamespace

import pytest
from kafka.errors import CorruptRecordError, KafkaTimeoutError, RequestTimedOutError

from configs.sections import Kafka
from pipelines.kafka import broker
from pipelines.kafka.broker import Follower, read_records, topic_offsets
from pipelines.kafka.connection import BrokerError, TopicError

HERE = Kafka(bootstrap="here:9092")


class Broker:
    """Holds `held` records of one partition, says that there are `end`, and answers no more once they are given."""

    def __init__(self, held, end, at_once=1):
        self.held, self.end, self.at_once, self.at, self.closed = held, end, at_once, 0, 0
        self.value = b"v"

    def partitions_for_topic(self, topic):
        return {0}

    def beginning_offsets(self, partitions):
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions):
        return dict.fromkeys(partitions, self.end)

    def assign(self, partitions):
        (self.partition,) = partitions

    def assignment(self):
        return [self.partition]

    def seek_to_beginning(self, *partitions):
        self.at = 0

    def seek(self, partition, offset):
        self.at = offset

    def position(self, partition):
        return self.at

    def poll(self, timeout_ms):
        if self.at >= self.held:
            return {}
        given = range(self.at, min(self.at + self.at_once, self.held))
        self.at = given.stop
        return {
            self.partition: [
                SimpleNamespace(
                    topic="forecasts", partition=0, offset=at, key=b"k", value=self.value, timestamp=5000,
                    headers=[("a", b"b")],
                )
                for at in given
            ]
        }  # fmt: skip

    def close(self):
        self.closed += 1


def test_the_newest_are_read_with_their_headers(monkeypatch):
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: Broker(5, 5))
    found = list(read_records(HERE, "forecasts", newest=2))
    assert [(one.offset, one.headers, one.timestamp) for one in found] == [(3, {"a": b"b"}, 5.0), (4, {"a": b"b"}, 5.0)]


def test_a_record_without_a_value_has_an_empty_one(monkeypatch):
    there = Broker(1, 1)
    there.value = None
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: there)
    assert [one.value for one in read_records(HERE, "forecasts")] == [b""]


def follow_all(kafka, topic):
    """What a follower reads up to the end that there is, which is closed then."""
    with closing(Follower(kafka, [topic])) as follower:
        yield from follower.read_until(follower.ends())


@pytest.mark.parametrize("read", [read_records, follow_all])
def test_a_broker_that_dies_while_a_topic_is_read_to_its_end_is_an_error_with_words(monkeypatch, read):
    gone = Broker(1, 2)
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: gone)
    monkeypatch.setattr(broker, "STUCK_S", 0.05)
    with pytest.raises(BrokerError, match=r"'forecasts' at here:9092: nothing more came for 0.05 s, 1 records.*start"):
        list(read(HERE, "forecasts"))
    assert gone.closed == 1


@pytest.mark.parametrize(("read", "found"), [(read_records, [0, 1, 2]), (follow_all, [0, 1, 2, 3])])
def test_what_comes_while_a_topic_is_read_is_left_out_unless_it_is_followed_on(monkeypatch, read, found):
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: Broker(4, 3, at_once=2))
    assert [one.offset for one in read(HERE, "forecasts")] == found


class Halves(Broker):
    """Two partitions, of which one gives a record at each poll, for ever, and the other none."""

    def partitions_for_topic(self, topic):
        return {0, 1}

    def assign(self, partitions):
        self.partition, self.other = partitions

    def assignment(self):
        return [self.partition, self.other]

    def seek_to_beginning(self, *partitions): ...

    def position(self, partition):
        return self.at if partition == self.partition else 0


@pytest.mark.parametrize("read", [read_records, follow_all])
def test_a_partition_that_gives_nothing_is_not_waited_for_while_another_one_grows(monkeypatch, read):
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: Halves(10**9, 1))
    monkeypatch.setattr(broker, "STUCK_S", 0.05)
    with pytest.raises(BrokerError, match=r"nothing more came for 0\.05 s"):
        list(read(HERE, "forecasts"))


class Silent(Broker):
    """A broker that answered when it was connected, and does not answer one of the questions behind that."""

    def __init__(self, silent, error):
        super().__init__(1, 1)
        setattr(self, silent, self.wait)
        self.error = error

    def wait(self, *_, **__):
        raise self.error


@pytest.mark.parametrize("error", [KafkaTimeoutError, RequestTimedOutError])
@pytest.mark.parametrize(
    ("read", "silent"),
    [
        (read, silent)
        for read, asked in (
            (read_records, ("partitions_for_topic", "beginning_offsets", "end_offsets", "position")),
            (follow_all, ("partitions_for_topic", "end_offsets", "position")),
            (topic_offsets, ("partitions_for_topic", "beginning_offsets", "end_offsets")),
        )
        for silent in asked
    ],
)
def test_a_broker_that_ceases_to_answer_is_told_with_its_address_and_a_remedy(monkeypatch, read, silent, error):
    there = Silent(silent, error("no answer within 30 s"))
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: there)
    with pytest.raises(BrokerError, match=r"here:9092 does not answer: .*30 s.*`make up`.*start again"):
        list(read(HERE, "forecasts"))
    assert there.closed == 1


@pytest.mark.parametrize("read", [read_records, follow_all])
def test_records_that_the_broker_cannot_give_are_told_with_its_address_and_a_remedy(monkeypatch, read):
    there = Silent("poll", CorruptRecordError("checksum"))
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: there)
    with pytest.raises(BrokerError, match=r"here:9092 does not do it: .*checksum.*start again"):
        list(read(HERE, "forecasts"))
    assert there.closed == 1


def test_a_follower_of_a_topic_that_is_not_there_leaves_no_client_open(monkeypatch):
    there = Broker(1, 1)
    there.partitions_for_topic = lambda topic: None
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: there)
    with pytest.raises(TopicError, match="'forecasts' does not exist"):
        Follower(HERE, ["forecasts"])
    assert there.closed == 1


class Growing(Broker):
    """Holds old records, and gets a new one just after it was first asked for its ends, or for where a time begins."""

    def __init__(self, held, after):
        super().__init__(held, held)
        self.old, self.after = held, after

    def seek_to_end(self, *partitions):
        self.at = None  # which is looked up later

    def position(self, partition):
        self.at = self.held if self.at is None else self.at
        return self.at

    def end_offsets(self, partitions):
        return self._answered("ends", dict.fromkeys(partitions, self.held))

    def offsets_for_times(self, times):
        new = SimpleNamespace(offset=self.old) if self.held > self.old else None
        return self._answered("times", dict.fromkeys(times, new))

    def poll(self, timeout_ms):
        self.position(self.partition)
        return super().poll(timeout_ms)

    def _answered(self, asked, answer):
        if asked == self.after:
            self.held, self.after = self.held + 1, ""
        return answer


@pytest.mark.parametrize("after", ["ends", "times"])
def test_no_record_is_skipped_that_comes_while_the_place_of_a_time_is_looked_up(monkeypatch, after):
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: Growing(5, after))
    follower = Follower(HERE, ["forecasts"])
    follower.seek_to_time(10.0)
    assert [one.offset for one in follower.poll(0.0)] == [5]
