"""Offsets of a range where the broker forbids to read, or gives little or nothing of a partition."""

import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.errors import TopicAuthorizationFailedError

from configs.sections import Kafka
from pipelines.backfill import held, ranges
from pipelines.backfill.asked import NotHeldError, RangeError, TimeRange
from pipelines.backfill.held import HeldTopic
from pipelines.backfill.ranges import find_offsets
from pipelines.backfill.tables import find_range
from pipelines.kafka.connection import TopicError

KAFKA = Kafka(bootstrap="broker:9092")
DAY = 1_700_000_000.0
ASKED = TimeRange(DAY, DAY + 600, 0.0, DAY + 3600)


class Topic:
    """Partition 0 holds offsets 5 to 9, stamped a minute apart from a moment on; how it is read, `poll` says."""

    def __init__(self, since):
        self.stamps, self.at, self.closed = {5 + n: since + 60 * n for n in range(5)}, 5, 0
        self.partition = TopicPartition("events", 0)

    def partitions_for_topic(self, topic):
        return {0}

    def beginning_offsets(self, places):
        return dict.fromkeys(places, 5)

    def end_offsets(self, places):
        return dict.fromkeys(places, 10)

    def offsets_for_times(self, times):
        later = {place: [at for at, s in self.stamps.items() if s * 1000 >= since] for place, since in times.items()}
        return {place: SimpleNamespace(offset=found[0]) if found else None for place, found in later.items()}

    def assign(self, *places): ...

    resume = pause = assign

    def assignment(self):
        return ()

    def seek(self, place, at):
        self.at = at

    def position(self, place):
        return self.at

    def poll(self, timeout_ms):
        found = [SimpleNamespace(offset=at, timestamp=self.stamps[at] * 1000) for at in range(max(self.at, 5), 10)]
        self.at = 10
        return {self.partition: found} if found else {}

    def close(self):
        self.closed += 1


class Several(Topic):
    """Topics of which each begins at a moment of its own, and has lost what was before its first `kept` offsets."""

    kept = 0

    def __init__(self, since):
        self.since, self.closed = since, 0

    def partitions_for_topic(self, topic):
        super().__init__(self.since[topic])
        self.partition = TopicPartition(topic, 0)
        return {0}

    def beginning_offsets(self, places):
        return {place: self.kept if place.topic == "refunds" else 0 for place in places}


class Silent(Topic):
    def poll(self, timeout_ms):
        return {}


class Fast(Topic):
    """Every other record is of a clock that runs an hour fast; a poll gives two of them, and takes its time."""

    def __init__(self, since):
        super().__init__(since)
        self.stamps |= {at: self.stamps[at] + 3600 for at in (5, 7, 9)}

    def poll(self, timeout_ms):
        time.sleep(ranges.FIRST_S / 2)
        begin, self.at = self.at, min(self.at + 2, 10)
        found = [SimpleNamespace(offset=at, timestamp=self.stamps[at] * 1000) for at in range(begin, self.at)]
        return {self.partition: found} if found else {}


class Emptied(Topic):
    """Retention has dropped all that the partition had."""

    def __init__(self, since):
        super().__init__(since)
        self.stamps = {}

    def beginning_offsets(self, places):
        return dict.fromkeys(places, 10)


class Marks(Topic):
    """What is left are marks of transactions, which a reader is not given."""

    def poll(self, timeout_ms):
        self.at = 10
        return {}


class Forbidden(Topic):
    def poll(self, timeout_ms):
        raise TopicAuthorizationFailedError({"events"})


@pytest.fixture
def at(monkeypatch):
    """Reads a topic of the given kind, whose records begin at a moment."""

    def read(kind, since):
        topic = kind(since)
        for module in (ranges, held):
            monkeypatch.setattr(module, "connect_client", lambda make, kafka: topic)
        monkeypatch.setattr(ranges, "FIRST_S", 0.05)
        return topic

    return read


def test_a_range_is_found_whose_records_are_followed_by_others(at):
    topic = at(Topic, DAY + 420)
    topic.beginning_offsets = lambda places: dict.fromkeys(places, 0)
    found = find_offsets(KAFKA, "events", ASKED)
    assert (found.starts, found.ends, topic.closed) == ({"events": {"0": 5}}, {"events": {"0": 8}}, 1)


def test_a_range_of_several_topics_has_each_of_them_also_one_without_a_record_of_it_but_not_all(at):
    at(Several, {"events": DAY + 420, "refunds": DAY + 1200, "sales": DAY + 480})
    found = find_range(KAFKA, ["events", "refunds", "sales"], ASKED)
    assert found.starts == {"events": {"0": 5}, "refunds": {"0": 5}, "sales": {"0": 5}}
    assert found.ends == {"events": {"0": 8}, "refunds": {"0": 5}, "sales": {"0": 7}} and found.records == 5
    at(Several, {"events": DAY + 1200, "refunds": DAY + 1200})
    with pytest.raises(RangeError, match=r"^none of the topics events, refunds holds a record produced from 2023-11-1"):
        find_range(KAFKA, ["events", "refunds"], ASKED)
    with pytest.raises(RangeError, match="--topic names no topic"):
        find_range(KAFKA, [], ASKED)
    with pytest.raises(RangeError, match=r"^topic 'events' holds no record produced from"):
        find_range(KAFKA, ["events"], ASKED)


def test_of_several_topics_the_one_is_named_that_holds_a_range_no_longer(at):
    at(Several, {"events": DAY + 420, "refunds": DAY + 60}).kept = 5
    with pytest.raises(NotHeldError, match=r"^topic 'refunds' no longer holds all from .* Give --from \S+T22:14:21Z"):
        find_range(KAFKA, ["events", "refunds"], ASKED)


def test_records_of_a_range_are_found_among_those_of_a_clock_that_runs_fast_as_long_as_they_come(at, monkeypatch):
    at(Fast, DAY).beginning_offsets = lambda places: dict.fromkeys(places, 0)
    found = find_offsets(KAFKA, "events", ASKED)
    assert (found.starts, found.ends) == ({"events": {"0": 5}}, {"events": {"0": 9}})
    at(Fast, DAY).beginning_offsets = lambda places: dict.fromkeys(places, 0)
    monkeypatch.setattr(ranges, "STRAYS_S", 0.0)
    with pytest.raises(
        NotHeldError, match=r"'events', partition 0: .* a clock which runs fast .* Give a --to .*--table PATH, or Table"
    ):
        find_offsets(KAFKA, "events", ASKED)


@pytest.mark.parametrize(("since", "kept"), [(DAY + 420, 0), (DAY + 60, 5)])
def test_a_partition_that_gives_nothing_is_named_and_not_taken_for_read(at, since, kept):
    """Records behind the range may be of it, and the first one that is kept says where a range can begin."""
    topic = at(Silent, since)
    topic.beginning_offsets = lambda places: dict.fromkeys(places, kept)
    with pytest.raises(RangeError, match=r"'events' gives no record of partition 0 within 0\.05 s: see.*try again"):
        find_offsets(KAFKA, "events", ASKED)
    assert topic.closed == 1


def test_a_range_of_before_what_is_kept_is_told_by_the_first_stamp(at):
    at(Topic, DAY + 60)
    with pytest.raises(NotHeldError, match=r"in 1 of its partitions it begins at 2023-11-14T22:14:20Z\. Give --from"):
        find_offsets(KAFKA, "events", ASKED)


@pytest.mark.parametrize("kind", [Emptied, Marks])
def test_a_partition_without_a_record_had_none_of_a_range_that_retention_surely_left(at, monkeypatch, kind):
    at(kind, DAY)
    monkeypatch.setattr(ranges, "retention_s", lambda kafka, topic: None)
    with pytest.raises(RangeError, match=r"holds no record any more in 1 of .* such as 0, .*DescribeConfigs.*--table"):
        find_offsets(KAFKA, "events", ASKED)
    monkeypatch.setattr(ranges, "retention_s", lambda kafka, topic: 3_600.0)
    with pytest.raises(NotHeldError, match=r"keeps them for 3,600 s\. Read the range from a table .*--table"):
        find_offsets(KAFKA, "events", ASKED)
    with pytest.raises(RangeError, match=r"retention\.ms keeps .* Give --from 2023-11-14T22:46:41Z, or read .*--table"):
        find_offsets(KAFKA, "events", TimeRange(DAY, DAY + 3_600, 0.0, DAY + 4_400))
    monkeypatch.setattr(ranges, "retention_s", lambda kafka, topic: 4_199.0)  # the broker's clock may be ahead
    with pytest.raises(RangeError, match=r"retention\.ms keeps"):
        find_offsets(KAFKA, "events", ASKED)
    monkeypatch.setattr(ranges, "retention_s", lambda kafka, topic: 4_200.0)
    with pytest.raises(RangeError, match="holds no record produced") if kind is Emptied else nullcontext():
        find_offsets(KAFKA, "events", ASKED)


@pytest.mark.parametrize(
    "read",
    [
        lambda: find_offsets(KAFKA, "events", ASKED),
        lambda: HeldTopic(KAFKA, "events", {}).first_stamps({0: (5, 10)}),
    ],
)
def test_a_topic_that_may_not_be_read_is_named_with_where_the_rights_stand(at, read):
    topic = at(Forbidden, DAY + 420)
    with pytest.raises(TopicError, match=r"broker:9092 forbids it: .*events.*docs/security\.md"):
        read()
    assert topic.closed == 1


def test_the_first_stamp_of_a_span_is_found_where_it_has_a_record(at):
    at(Topic, DAY)
    assert HeldTopic(KAFKA, "events", {}).first_stamps({0: (7, 10)}) == {0: DAY + 120}
    at(Topic, DAY)
    assert HeldTopic(KAFKA, "events", {}).first_stamps({0: (3, 5)}) == {}
