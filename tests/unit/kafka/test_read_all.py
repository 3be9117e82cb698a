"""A topic is read to its end, also where the broker goes away meanwhile."""

from types import SimpleNamespace

import pytest

from configs.sections import Kafka
from pipelines.kafka import broker
from pipelines.kafka.broker import BrokerError, Follower, read_records


class Broker:
    """Holds `held` records of one partition, says that there are `end`, and answers no more once they are given."""

    def __init__(self, held, end):
        self.held, self.end, self.at, self.closed = held, end, 0, 0

    def partitions_for_topic(self, topic):
        return {0}

    def beginning_offsets(self, partitions):
        return dict.fromkeys(partitions, 0)

    def end_offsets(self, partitions):
        return dict.fromkeys(partitions, self.end)

    def assign(self, partitions):
        (self.partition,) = partitions

    def seek(self, partition, offset):
        self.at = offset

    def position(self, partition):
        return self.at

    def poll(self, timeout_ms):
        if self.at >= self.held:
            return {}
        one = SimpleNamespace(
            topic="forecasts", partition=0, offset=self.at, key=b"k", value=b"v", timestamp=5000, headers=[("a", b"b")]
        )
        self.at += 1
        return {self.partition: [one]}

    def close(self):
        self.closed += 1


def test_the_newest_are_read_with_their_headers(monkeypatch):
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka: Broker(5, 5))
    found = list(read_records(Kafka(bootstrap="here:9092"), "forecasts", newest=2))
    assert [(one.offset, one.headers, one.timestamp) for one in found] == [(3, {"a": b"b"}, 5.0), (4, {"a": b"b"}, 5.0)]


def test_a_broker_that_dies_while_a_topic_is_read_to_its_end_is_an_error_with_words(monkeypatch):
    gone = Broker(1, 2)
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka: gone)
    monkeypatch.setattr(broker, "STUCK_S", 0.05)
    with pytest.raises(BrokerError, match=r"'forecasts' at here:9092: nothing more came for 0.05 s, 1 records.*start"):
        list(read_records(Kafka(bootstrap="here:9092"), "forecasts"))
    assert gone.closed == 1


class Growing(Broker):
    """Holds old records, and gets a new one just after it was first asked for its ends, or for where a time begins."""

    def __init__(self, held, after):
        super().__init__(held, held)
        self.old, self.after = held, after

    def assignment(self):
        return [self.partition]

    def seek_to_beginning(self, *partitions):
        self.at = 0

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
    follower = Follower(Kafka(bootstrap="here:9092"), ["forecasts"])
    follower.seek_to_time(10.0)
    assert [one.offset for one in follower.poll(0.0)] == [5]
