"""Records of topics that are read at their own pace, in the order in which they were sent."""

from dataclasses import replace

from pipelines.bench.team.console.records import NOW, decision, interval
from pipelines.console.read.merged import MergedTopics

METRICS, DECISIONS = ("metrics", 0), ("decisions", 0)


def sent(at, made=interval):
    return replace(made("orders", NOW + at), timestamp=NOW + at)


def times(records):
    return [(one.topic[0], one.timestamp - NOW) for one in records]


def test_what_is_read_ahead_waits_for_the_topic_that_lags():
    merged = MergedTopics()
    assert merged.add([sent(3, decision), sent(9, decision)], {METRICS, DECISIONS}) == []
    first = merged.add([sent(1), sent(2), sent(4)], {METRICS})
    assert times(first) == [("m", 1), ("m", 2), ("d", 3), ("m", 4)]
    assert times(merged.add([sent(5)], {METRICS})) == [("m", 5)]
    assert times(merged.add([sent(10)], set())) == [("d", 9), ("m", 10)]


def test_records_of_one_moment_keep_their_order_and_a_clock_that_went_back_holds_nothing_up():
    merged = MergedTopics()
    twice = [sent(1), replace(sent(1), offset=1), sent(0)]
    assert [(one.timestamp - NOW, one.offset) for one in merged.add(twice, {METRICS})] == [(0, 0), (1, 0), (1, 1)]
    assert merged.add([], {DECISIONS}) == []
