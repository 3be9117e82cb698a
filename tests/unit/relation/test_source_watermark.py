import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.relation.records import RelationError
from models.relation.watermark import Source, SourceWatermark, advance_watermark, end_source

FRESH = SourceWatermark()


def test_the_watermark_is_the_newest_event_time_less_the_delay():
    assert advance_watermark(Source("s", delay_ms=10_000), FRESH, {0: 100_000}, now=0).value == 90_000


def test_the_slowest_partition_holds_it_back_and_so_does_one_that_was_never_heard():
    source = Source("s", delay_ms=10, partitions=2)
    first = advance_watermark(source, FRESH, {0: 100}, now=0)
    assert first.value == -math.inf
    second = advance_watermark(source, first, {1: 60}, now=1)
    assert second.value == 50
    assert advance_watermark(source, second, {1: 200}, now=2).value == 90


def test_it_never_falls():
    source = Source("s")
    high = advance_watermark(source, FRESH, {0: 100}, now=0)
    assert advance_watermark(source, high, {0: 20}, now=1).value == 100


def test_an_idle_partition_leaves_the_minimum_and_comes_back():
    source = Source("s", partitions=2, idle_ms=50)
    both = advance_watermark(source, FRESH, {0: 100, 1: 60}, now=0)
    assert advance_watermark(source, both, {0: 110}, now=49).value == 60
    quiet = advance_watermark(source, both, {0: 110}, now=50)
    assert quiet.value == 110
    back = advance_watermark(source, quiet, {1: 70}, now=60)
    assert back.value == 110  # what comes back does not pull it down
    assert advance_watermark(source, back, {0: 200}, now=61).value == 110  # but holds it again


def test_a_partition_never_heard_is_idle_in_the_end_and_when_all_are_nothing_moves():
    source = Source("s", partitions=2, idle_ms=50)
    one = advance_watermark(source, FRESH, {0: 100}, now=1000)
    assert one.value == -math.inf
    assert advance_watermark(source, one, {0: 101}, now=1050).value == 101
    assert advance_watermark(source, one, {}, now=1050).value == -math.inf


def test_the_end_is_the_end():
    ended = end_source(advance_watermark(Source("s"), FRESH, {0: 5}, now=0))
    assert ended.value == math.inf
    assert advance_watermark(Source("s"), ended, {}, now=9).value == math.inf


@given(
    st.lists(st.tuples(st.dictionaries(st.integers(0, 2), st.integers(-100, 100)), st.integers(0, 30)), max_size=20),
    st.integers(0, 20),
    st.none() | st.integers(1, 40),
)
def test_no_sequence_makes_it_fall_or_pass_the_newest_event_time(steps, delay, idle):
    source, known, now, newest = Source("s", delay, 3, idle), FRESH, 0, -math.inf
    for brought, gap in steps:
        now += gap
        newest = max([newest, *brought.values()])
        moved = advance_watermark(source, known, brought, now)
        assert known.value <= moved.value <= newest - delay
        known = moved


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"delay_ms": -1}, "delay of source 's', -1 ms"),
        ({"partitions": 0}, "partitions of source 's', 0"),
        ({"idle_ms": 0}, "idle_ms of source 's', 0.*None for never"),
    ],
)
def test_what_makes_no_source_is_refused(wrong, message):
    with pytest.raises(RelationError, match=message):
        Source("s", **wrong)
