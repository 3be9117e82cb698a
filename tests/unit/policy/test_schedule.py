import numpy as np
import pytest

from configs.contract import Contract
from configs.errors import SettingsError
from models.policy.catalogue import build
from models.policy.core.policy import decide
from models.policy.rules.fixed import QUANTILE, Schedule, Timetable, learn_timetable
from tests.fakes.views import a_view


def test_a_timetable_is_learned_per_slot_and_followed_blindly():
    hours = np.arange(72)
    load = np.where(hours % 24 < 12, 100.0, 1000.0)
    load[2] = np.nan
    table = learn_timetable(hours * 3600.0, load, slots=2)
    assert table.rps.tolist() == [100.0, 1000.0]
    policy = Schedule("schedule", table, 0.5, 600.0)
    for now, executors in [(0.0, 1), (12 * 3600 - 601, 1), (12 * 3600 - 599, 10), (23.9 * 3600, 10), (86400.0 * 9, 1)]:
        _, choice = decide(policy, {}, a_view(now_s=now, arrival_rps=5000, busy=1.0))
        # 200 records/s each: 0.004 s per record, and batches of 2 s have 0.4 s of overhead.
        assert choice.target[0] == executors, now


def test_a_trace_that_runs_faster_has_shorter_days_and_may_begin_at_noon():
    table = Timetable(np.array([1.0, 2.0, 3.0, 4.0]), day_s=120.0, origin_s=60.0)
    assert [table.rate_at(now)[0] for now in (0.0, 29.0, 30.0, 60.0, 119.0, 120.0)] == [3, 3, 4, 1, 2, 3]


@pytest.mark.parametrize("rps", [[np.nan, np.nan], [1.0, -1.0], []])
def test_a_history_without_rates_teaches_nothing(rps):
    with pytest.raises(SettingsError, match="history of rates"):
        learn_timetable(np.arange(len(rps)) * 1.0, np.array(rps))


def test_a_slot_without_history_takes_the_quantile_of_the_whole():
    table = learn_timetable(np.zeros(3), np.array([1.0, 2.0, 3.0]), slots=2)
    assert table.rps == pytest.approx(np.quantile([1.0, 2.0, 3.0], QUANTILE)) and table.rps.shape == (2,)


def test_a_schedule_without_a_timetable_says_what_it_needs():
    with pytest.raises(SettingsError, match="needs a timetable"):
        build("schedule", Contract(job="j"))
