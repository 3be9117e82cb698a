"""Which windows an outage leaves to a replay, by hand and for any outage."""

from hypothesis import given
from hypothesis import strategies as st

from tidecast.control import WALL, Clock
from tidecast.orders import ReplayOrder
from tidecast.recovery.checkpoint import Committed
from tidecast.recovery.gap import span_of

PLACE = ("events", 0)


def committed(watermark_s, at_s=1_000.0):
    return Committed(7, at_s, {PLACE: 50}, int(watermark_s * 1000))


def gap(name, begin_s, end_s):
    starts, ends = ({"events": {"0": at}} for at in (0, 9))
    return ReplayOrder(name, "orders", 1.0, "run", starts, ends, begin_ms=int(begin_s * 1000), end_ms=int(end_s * 1000))


def test_an_outage_by_hand():
    span = span_of(committed(940.0), 1_001.0, 1_121.0, 60_000, None, 10.0, WALL)
    assert (span.begin, span.whole_from, span.end) == (880_000, 1_131_001, 1_191_001)
    assert (span.open_from, span.final_s) == (1_121_000 - 60_000 - 60_000, 1_191.001 + 60.0)
    stated = span_of(committed(940.0), 1_001.0, 1_121.0, 60_000, 5.0, 0.0, WALL)
    assert (stated.begin, stated.whole_from, stated.final_s) == (936_000, 1_121_001, 1_181.001 + 5.0)


def test_a_watermark_that_a_clock_ahead_has_pushed_on_hides_no_record_that_waits():
    assert span_of(committed(9_000.0), 1_001.0, 1_121.0, 60_000, None, 0.0, WALL).begin == 941_000


def test_in_a_trace_windows_are_of_its_time_and_the_end_of_waiting_is_of_the_wall():
    clock = Clock(1_000.0, 50_000.0, 10.0)
    span = span_of(committed(49_000.0), 1_001.0, 1_121.0, 60_000, 6.0, 1.0, clock)
    assert (span.begin, span.whole_from) == (49_950_000 - 60_000, 51_220_001)
    assert span.final_s == clock.wall_at(51_280.001) + 6.0


def test_gaps_that_are_not_filled_and_touch_it_are_taken_over_one_after_the_other():
    gaps = [gap("gap-1", 100, 700), gap("gap-2", 600, 950), gap("gap-0", 0, 90)]
    span = span_of(committed(940.0), 1_001.0, 1_121.0, 60_000, 5.0, 0.0, WALL, gaps)
    assert span.absorbed == ("gap-2", "gap-1") and span.begin == 100_000


@given(
    st.integers(1, 500), st.integers(0, 400), st.integers(1, 600), st.integers(1, 120), st.integers(0, 90),
    st.integers(0, 20),
)  # fmt: skip
def test_every_window_that_live_does_not_know_wholly_is_in_it(before_s, mark_s, outage_s, window_s, late_s, ahead_s):
    """Windows of records that wait, late ones too, and those of which live sees a part."""
    watermark_s, now_s = max(1_000 - before_s, 1), 1_000.0 + outage_s
    for late in (None, float(late_s)):
        span = span_of(committed(watermark_s), 1_000.0, now_s, window_s * 1000, late, float(ahead_s), WALL)
        latest_s = watermark_s if late is None else 1_000.0 - late
        for at_s in (latest_s, 1_000.0, now_s, now_s + ahead_s - 0.001):  # event times
            begin = int(at_s * 1000) // (window_s * 1000) * window_s * 1000
            assert begin + window_s * 1000 > latest_s * 1000
            assert span.begin <= begin and begin + window_s * 1000 <= span.end
            assert begin < span.whole_from
        assert span.begin <= span.open_from <= span.whole_from <= span.end
