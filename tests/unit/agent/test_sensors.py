import math
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidecast.spark.sensors import (
    KNOTS,
    BottleneckStage,
    OffsetCurve,
    batch_latency,
    count_arrived,
    guess_first_starts,
    lag_records,
)

P, Q = ("events", 0), ("events", 1)


def curve(*knots):
    made = OffsetCurve()
    for wall, end in knots:
        made.add(wall, end)
    return made


def test_an_arrival_is_read_off_the_curve():
    line = curve((10.0, 100), (11.0, 110), (12.0, 110), (13.0, 130))
    assert line.arrival_time(105) == 10.5
    assert line.arrival_time(109.5) == pytest.approx(10.95)
    assert line.arrival_time(110) == 12.0  # nothing came between 11 and 12
    assert line.arrival_time(120) == 12.5
    assert line.arrival_time(99) is None  # before the first look
    assert line.arrival_time(130) is None  # not arrived yet


def test_a_plateau_costs_two_knots():
    line = curve(*[(float(t), 5) for t in range(1000)], (1000.0, 6))
    assert len(line.times) == 3
    assert line.arrival_time(5) == 999.0


def test_what_the_query_saw_is_sorted_in():
    line = curve((10.0, 0), (12.0, 20))
    line.add(11.0, 18)
    assert line.arrival_time(9) == 10.5
    line.add(10.5, 19)  # contradicts a later look: two clocks, one of them off
    assert line.arrival_time(9) == 10.5


def test_arrivals_are_known_again_at_once_when_the_clock_was_set_back():
    line = curve((3600.0, 100), (7200.0, 200), (7201.0, 210))
    line.add(3602.0, 220)
    line.add(3603.0, 230)
    assert line.arrival_time(225) == 3602.5
    late = curve((10.0, 0), (20.0, 100))
    late.add(12.0, 100)  # all that there is had come by then
    assert late.arrival_time(50) == 11.0


def test_what_a_topic_tells_of_its_past_takes_no_observation_away():
    line = curve((100.0, 50), (110.0, 60))
    line.add_past(101.0, 70)  # a record that was stamped before it came
    line.add_past(90.0, 70)
    line.add_past(120.0, 55)
    assert (line.times, line.ends) == ([100.0, 110.0], [50, 60])
    line.add_past(90.0, 40)
    line.add_past(80.0, 0)
    assert [line.arrival_time(offset) for offset in (20, 45, 55)] == [85.0, 95.0, 105.0]


def test_a_topic_made_anew_starts_afresh():
    line = curve((10.0, 500), (11.0, 600), (12.0, 3), (13.0, 13))
    assert line.arrival_time(8) == 12.5


def test_an_hours_backlog_costs_bounded_memory_and_little_precision():
    line = curve(*[(t / 2, t * 7) for t in range(3 * KNOTS)])
    assert len(line.times) <= KNOTS
    assert line.arrival_time(7 * 1000 + 3.5) == pytest.approx(500.25, abs=4)
    assert line.arrival_time(7 * (3 * KNOTS - 10) + 3.5) == pytest.approx((3 * KNOTS - 9.5) / 2)


def test_forgetting_keeps_what_the_next_batch_needs():
    line = curve((10.0, 0), (11.0, 10), (12.0, 20), (13.0, 30))
    line.forget_before(15)
    assert line.times == [11.0, 12.0, 13.0]
    assert line.arrival_time(15) == 11.5


@given(
    gaps=st.lists(st.tuples(st.floats(0.1, 2.0), st.integers(0, 50)), min_size=2, max_size=30),
    share=st.floats(0, 1, exclude_max=True),
)
def test_arrivals_rise_with_offsets_and_lie_within_their_interval(gaps, share):
    line, wall, end, knots = OffsetCurve(), 0.0, 0, []
    for gap, more in gaps:
        wall, end = wall + gap, end + more
        line.add(wall, end)
        knots.append((wall, end))
    first, last = knots[0][1], knots[-1][1]
    offset = first + share * (last - first)
    when = line.arrival_time(offset)
    if offset < last:
        before = max(w for w, e in knots if e <= offset)
        after = min(w for w, e in knots if e > offset)
        assert before - 1e-9 <= when <= after + 1e-9
        later = line.arrival_time((offset + last) / 2)
        assert later is None or later >= when - 1e-9
    else:
        assert when is None


def test_latency_of_a_steady_stream_is_exact():
    # 10 records/s in one partition from 0 to 10 s, committed at 12 s: arrivals spread evenly over [0, 10]
    line = curve(*[(t / 2, 5 * t) for t in range(21)])
    seen = batch_latency({P: line}, {P: 0}, {P: 100}, finished=12.0)
    assert seen.latency_p50_s == pytest.approx(7.0, abs=0.1)
    assert seen.latency_p95_s == pytest.approx(11.5, abs=0.1)
    assert seen.latency_max_s == pytest.approx(12.0, abs=0.1)


def test_latency_weighs_partitions_by_their_records():
    old, new = curve((0.0, 0), (1.0, 10)), curve((9.0, 0), (10.0, 990))
    seen = batch_latency({P: old, Q: new}, {P: 0, Q: 0}, {P: 10, Q: 990}, finished=11.0)
    assert 1.0 <= seen.latency_p50_s <= 2.0
    assert seen.latency_p95_s <= 2.0  # one in a hundred is old
    assert 10.0 <= seen.latency_max_s <= 11.0


def test_latency_is_unknown_where_no_arrival_was_seen():
    assert batch_latency({}, {P: 0}, {P: 5}, 10.0) is None
    assert batch_latency({P: curve((9.0, 50))}, {P: 0}, {P: 5}, 10.0) is None
    assert batch_latency({P: curve((9.0, 0), (9.5, 10))}, {P: 10}, {P: 10}, 10.0) is None  # no rows
    half = batch_latency({P: curve((9.0, 50), (9.5, 100))}, {P: 0}, {P: 100}, 10.0)
    assert 0.5 <= half.latency_max_s <= 1.0  # those from before the first look are left out


def test_the_first_batch_began_where_its_rows_allow():
    curves = {P: curve((1.0, 0), (2.0, 40)), Q: curve((1.0, 100), (2.0, 160))}
    ends = {P: 40, Q: 160}
    assert guess_first_starts(curves, ends, rows=100) == {P: 0, Q: 100}
    assert guess_first_starts(curves, ends, rows=7) == {}  # it began later, nobody knows where


def test_arrivals_are_what_the_ends_moved():
    assert count_arrived({P: 10, Q: 5}, {P: 25, Q: 5}) == 15
    assert count_arrived({P: 10}, {P: 12, Q: 1000}) == 2  # a new partition counts nothing
    assert count_arrived({P: 10, Q: 0}, {P: 3, Q: 4}) == 4  # a topic made anew


def test_lag_is_what_no_finished_batch_covers():
    assert lag_records({P: 30, Q: 10}, {P: 20, Q: 10}) == 10
    assert lag_records({P: 30, Q: 10}, {P: 20}) == 20
    assert lag_records({P: 30}, {P: 33}) == 0  # the sample is older than the batch
    assert lag_records({P: 30}, None) is None
    assert lag_records({}, {P: 20}) is None is lag_records({("audit", 0): 99}, {P: 20})  # no end was seen: not "none"
    assert lag_records({P: 30, ("audit", 0): 99}, {P: 20}) == 10  # watched, but not what the query reads


def batches(heavy, map_s, state_s, rows=(100, 300, 500, 200), times=10):
    """Batches of changing size: `map_s` and `state_s` are (fixed, per row) seconds of an 8-task and a 2-task stage."""
    for n in rows * times:
        heavy.add_batch(n, [(8, map_s[0] + map_s[1] * n), (2, state_s[0] + state_s[1] * n)])


def test_the_stage_that_grows_with_the_load_is_heavy():
    heavy = BottleneckStage()
    assert heavy.tasks() is None
    batches(heavy, map_s=(0.5, 0.004), state_s=(0.3, 0.0002))
    assert heavy.tasks() == 8
    batches(heavy, map_s=(0.5, 0.0002), state_s=(0.3, 0.004), times=30)  # the work moves to the stateful stage
    assert heavy.tasks() == 2


def test_a_state_commit_is_no_ceiling_however_long_it_takes():
    heavy = BottleneckStage()
    batches(heavy, map_s=(0.1, 0.003), state_s=(5.0, 0.0001))
    assert heavy.tasks() == 8


def test_light_steady_load_proves_nothing():
    heavy = BottleneckStage()
    batches(heavy, map_s=(0.2, 0.003), state_s=(0.9, 0.004), rows=(50, 51, 49, 50), times=20)
    assert heavy.tasks() == 8


def test_cold_batches_prove_nothing():
    heavy = BottleneckStage()
    for _ in range(BottleneckStage.COLD):
        heavy.add_batch(400, [(8, 2.0), (2, 30.0)])
    assert heavy.tasks() is None
    batches(heavy, map_s=(0.2, 0.003), state_s=(0.3, 0.0002), times=2)
    assert heavy.tasks() == 8


def test_empty_batches_are_not_looked_at():
    heavy = BottleneckStage()
    for _ in range(20):
        heavy.add_batch(0, [(8, math.inf)])
    assert heavy.tasks() is None


def test_one_slow_task_of_an_executor_that_has_just_come_is_no_ceiling():
    heavy = BottleneckStage()
    for n in (40, 60, 30, 50, 40, 70, 50, 60, 40):
        heavy.add_batch(n, [(8, 0.2 + 0.01 * n), (2, 0.3)])
    heavy.add_batch(160, [(8, 0.2 + 1.6), (2, 4.3)])
    assert heavy._find_heaviest() == 2 and heavy.tasks() == 8
    for n in (150, 120, 90):
        heavy.add_batch(n, [(8, 0.2 + 0.01 * n), (2, 0.3 + 0.03 * n)])
    assert heavy.tasks() == 2  # it lasts


def test_a_wide_stage_that_came_once_is_a_ceiling_for_a_while_and_no_longer():
    """As of a command that a sink runs within one batch: of a new stage nothing is known yet."""
    heavy = BottleneckStage()
    for n in range(BottleneckStage.COLD + 60):
        heavy.add_batch(40 + n % 7, [(12, 2.0)] + ([(200, 3.0)] if n == 10 else []))
        assert heavy.tasks() == (None if n < BottleneckStage.COLD else 200 if 10 <= n <= 55 else 12), n


def test_a_quiet_night_in_which_few_partitions_get_records_lowers_no_ceiling():
    """A batch has as many tasks as partitions that received something."""
    heavy = BottleneckStage()
    for n in range(350):
        heavy.add_batch(40 if n < 200 else 3, [(12 if n < 200 else 1 + n % 3, 2.0)])
    assert heavy.tasks() == 12


def test_the_bottleneck_is_found_while_another_thread_adds_stages():
    """Offsets are sampled in one thread and batches read in another; of a new stage nothing is known yet."""
    stages = BottleneckStage()
    for _ in range(BottleneckStage.COLD + 1):
        stages.add_batch(100, [(4, 1.0), (2, 1.0)])
    adding = threading.Thread(target=lambda: [stages.add_batch(100, [(n, 1.0)]) for n in range(5, 400)])
    adding.start()
    while adding.is_alive():
        assert stages.tasks() >= 4
    assert stages.tasks() == 399
