import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.forecast.core.gaps import LONGEST_GAP
from models.forecast.core.series import SeriesError, resample
from pipelines.serve.step.keys import window_of
from pipelines.serve.step.windower import AGREEING_RECORDS, OpenWindow, Window, add_sample
from pipelines.serve.step.windows import FEWEST
from tidecast.messages import MetricSample

STEP = 10.0
NOW = 1e9


def second(time, rate, span=1.0, **changes):
    return MetricSample("j", "interval", time, 1000.0 + time, 1.0, span, rate, lag_records=7, **changes)


def run(samples, step=STEP):
    open_window, closed, late = OpenWindow(), [], 0
    for one in samples:
        effect = add_sample(open_window, one, step, NOW)
        open_window, late = effect.open_window, late + effect.late
        closed += effect.closed
    return open_window, closed, late


def test_ten_seconds_make_one_window_closed_by_the_record_that_reaches_its_end():
    open_window, closed, _ = run([second(t, float(t)) for t in range(20, 29)])
    assert not closed and open_window.weight == 9
    closed = add_sample(open_window, second(29.0, 29.0), STEP, NOW).closed
    assert closed == [Window(2, 24.5, 7, 0.0)]  # the mean of 20 ... 29


def test_a_record_over_several_windows_closes_them_oldest_first():
    _, closed, _ = run([second(5.0, 6.0, 30.0)])
    assert [(w.window_index, w.rate) for w in closed] == [(0, 6.0), (1, 6.0), (2, 6.0)]
    _, closed, _ = run([second(5.0, 6.0, 30.0), second(35.0, 2.0, 5.0)])
    assert closed[-1][:2] == (3, 4.0)  # half at 6, half at 2


def test_of_a_record_over_many_windows_as_many_of_the_newest_are_closed_as_a_model_is_stepped_over():
    _, closed, _ = run([second(3.0, 5.0, 7.0), second(10.0, 6.0, (FEWEST + 9) * STEP)])
    assert [w.window_index for w in closed] == [0, *range(10, FEWEST + 10)]
    _, closed, _ = run([second(0.0, 5.0, 8.0), second(2 * FEWEST * STEP, 6.0, 10.0)])  # missing ones do not count
    assert [w.window_index for w in closed] == [0, 2 * FEWEST]


def test_a_missing_window_is_a_gap_in_the_versions():
    _, closed, _ = run([second(0.0, 5.0, 10.0), second(30.0, 7.0, 10.0)])
    assert [w.window_index for w in closed] == [0, 3]


def test_a_window_of_which_less_than_half_was_seen_is_missing():
    _, closed, _ = run([second(6.0, 5.0, 4.0), second(10.0, 7.0, 10.0)])
    assert [w.window_index for w in closed] == [1]


def test_what_comes_again_or_late_changes_nothing():
    samples = [second(float(t), 5.0) for t in range(10)]
    open_window, closed, late = run([*samples[:6], samples[5], samples[2], *samples[6:]])
    assert (open_window, closed) == run(samples)[:2] and late == 2


def test_a_whole_window_that_comes_again_is_named_so_that_it_can_be_compared():
    open_window, _, _ = run([second(0.0, 5.0, 10.0), second(10.0, 6.0, 10.0)])
    assert add_sample(open_window, second(0.0, 4.0, 10.0), STEP, NOW).repeated == Window(0, 4.0, 7, 0.0)
    assert add_sample(open_window, second(1.0, 4.0, 9.0), STEP, NOW).repeated is None
    assert add_sample(open_window, second(5.0, 4.0, 10.0), STEP, NOW).repeated is None


def test_busy_time_of_batches_goes_to_the_next_window_that_closes():
    batch = MetricSample("j", "batch", 3.0, 1003.0, batch_s=0.75)
    _, closed, _ = run([second(0.0, 5.0, 5.0), batch, batch, second(5.0, 5.0, 5.0), second(10.0, 5.0, 10.0)])
    assert [w.busy_s for w in closed] == [1.5, 0.0]


def test_a_record_a_million_windows_ahead_is_refused_and_nothing_changes():
    open_window, _, _ = run([second(0.0, 5.0)])
    with pytest.raises(SeriesError, match="wrong clock"):
        add_sample(open_window, second(1.0, 5.0, span=2e7), STEP, NOW)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.5, 1.0, 2.5, 25.0]), st.floats(0, 1e6)), max_size=60))
def test_windows_are_the_steps_that_training_sees(pieces):
    """The same records give the same steps whether they come one by one or are read as a history."""
    time, samples = 1000.0, []
    for pause, span, rate in pieces:
        time += pause
        samples.append(second(time, rate, span))
        time += span
    _, closed, late = run(samples)
    columns = [[getattr(s, name) for s in samples] for name in ("time", "arrival_rps", "span_s")]
    whole = resample(*columns, STEP)
    first = round(whole.start / STEP)
    expected = {first + i: v for i, v in enumerate(whole.values) if not math.isnan(v)}
    assert {w.window_index: w.rate for w in closed} == pytest.approx(expected) and not late


def test_the_index_is_that_of_the_begin_also_where_floats_fall_short():
    assert window_of(1_800.0 * 784_417, 1800.0) == 784_417
    assert window_of(0.1 * 3, 0.1) == 3 and window_of(np.nextafter(30.0, 0), 10.0) == 3
    assert window_of(29.9, 10.0) == 2


YEAR = 366 * 86_400.0


def at(time, wall, scale=1.0):
    return MetricSample("j", "interval", time, 1_000_000.0 + wall, scale, 1.0, 5.0)


def replayed(i, ahead=0.0):
    return at(i + ahead, i, 720.0)


def followed():
    return run([replayed(i) for i in range(5)])[0]


def test_one_record_of_a_wrong_clock_is_refused_and_the_job_goes_on():
    leapt = add_sample(followed(), replayed(5, YEAR), STEP, NOW)
    assert "after the job's last record" in leapt.refusal and not leapt.closed
    after = add_sample(leapt.open_window, replayed(5), STEP, NOW)
    assert not after.refusal and after.open_window.until == 6.0 and after.open_window.too_far == (0, 0.0)


@pytest.mark.parametrize(("windows", "refused"), [(LONGEST_GAP - 1, False), (LONGEST_GAP + 1, True)])
def test_a_leap_after_which_the_job_would_start_over_is_not_believed_of_one_record(windows, refused):
    """Job seconds that its wall time does not explain: a hole of a history, or a wrong clock."""
    leapt = add_sample(followed(), at(5.0 + windows * STEP + 720.0, 5.0, 720.0), STEP, NOW)
    assert bool(leapt.refusal) == refused
    assert add_sample(leapt.open_window, replayed(5), STEP, NOW).late != refused


def test_a_clock_that_was_really_moved_is_believed_once_enough_records_agree():
    open_window, refused = followed(), 0
    for i in range(5, 5 + AGREEING_RECORDS):
        effect = add_sample(open_window, replayed(i, YEAR), STEP, NOW)
        open_window, refused = effect.open_window, refused + bool(effect.refusal)
    assert refused == AGREEING_RECORDS - 1 and open_window.until == YEAR + 5.0 + AGREEING_RECORDS


def test_records_that_are_each_elsewhere_are_never_believed():
    open_window = followed()
    for i in range(3 * AGREEING_RECORDS):
        open_window = add_sample(open_window, replayed(i, YEAR * (3 - i % 3)), STEP, NOW).open_window
    assert open_window.until == 5.0


@pytest.mark.parametrize("step", [1.0, STEP])
def test_a_job_that_was_off_for_weeks_goes_on_at_once(step):
    open_window, _, _ = run([at(i, i) for i in range(5)], step)
    back = add_sample(open_window, at(40 * 86_400.0, 40 * 86_400.0), step, NOW)
    assert not back.refusal and back.open_window.until == 40 * 86_400.0 + 1.0 and len(back.closed) <= 1


def told_of(begin, seconds, ahead=0.0):
    """A job of clock time that runs as the wall does: (record, wall time at which it is read)."""
    return [
        (MetricSample("j", "interval", NOW + t, NOW + t + 1.0, 1.0, 1.0, 5.0), NOW + t + 1.0 - ahead)
        for t in range(begin, begin + seconds)
    ]


def closed_of(told):
    """Windows that records close, each with the job seconds by which it is ahead of its clock; how many are late."""
    open_window, found, late = OpenWindow(), [], 0
    for record, now in told:
        effect = add_sample(open_window, record, STEP, now)
        open_window, late = effect.open_window, late + effect.late
        found += [(window.window_index, open_window.ahead_s) for window in effect.closed]
    first = window_of(NOW, STEP)
    return [(index - first, ahead) for index, ahead in found], late


def test_once_the_clock_was_set_back_by_an_hour_windows_go_on_at_once():
    windows, late = closed_of(told_of(0, 60) + told_of(-3540, 60))
    assert windows == [(i, 0.0) for i in range(6)] + [(i, 3600.0) for i in range(6, 12)] and not late


@pytest.mark.parametrize(("fell", "ahead", "late"), [(4, 0.0, 4), (8, 10.0, 0), (12, 10.0, 2)])
def test_windows_stay_in_step_with_the_clock_so_that_half_a_window_at_most_is_late(fell, ahead, late):
    windows, told_late = closed_of(told_of(0, 60) + told_of(60 - fell, 60))
    assert windows[-1][1] == ahead and told_late == late
    assert [index for index, _ in windows] == list(range(len(windows)))


def test_a_clock_that_is_right_again_after_seconds_leaves_no_gap():
    windows, late = closed_of(told_of(0, 60) + told_of(-3540, 20) + told_of(80, 40))
    assert [index for index, _ in windows] == list(range(12)) and windows[-1][1] == 0.0 and not late


def test_what_comes_again_of_a_job_whose_clock_is_ahead_is_no_clock_that_was_set_back():
    told = told_of(0, 60, ahead=60.0)
    assert closed_of(told + told[-20:]) == ([(i, 0.0) for i in range(6)], 20)
    slightly = told_of(0, 60, ahead=8.0)  # so that what is some seconds old is not ahead any more
    again = [(record, slightly[-1][1]) for record, _ in slightly[-20:]]
    assert closed_of(slightly + again) == ([(i, 0.0) for i in range(6)], 20)
    # Nor is a job's clock that is behind the server's: of metrics so old no forecast is of use.
    read_late = [(record, NOW + 3600.0) for record, _ in told_of(0, 60) + told_of(-3540, 60)]
    assert closed_of(read_late) == ([(i, 0.0) for i in range(6)], 60)
