"""How large the load of a run is on a slow computer."""

import pytest

from configs.settings import load
from pipelines.demo.fitted_load import fit_load, measure_slowness
from pipelines.traces.trace import load_trace


@pytest.mark.parametrize("slowness", [0.5, 1.0, 1.5])
def test_a_usual_computer_has_the_whole_load(slowness):
    assert fit_load(load(), slowness) == (load(), "")


def test_a_slow_computer_has_as_many_fewer_records_as_it_is_slower():
    settings, said = fit_load(load(), 2.5)
    assert settings.replay.peak_rps == 54  # 90 * 1.5 / 2.5
    assert "2.5 times as long" in said and "54 records/s instead of 90" in said
    trace = load_trace(settings.replay)
    assert max(trace.history()[1].max(), trace.live()[1].max()) == pytest.approx(54)


@pytest.mark.parametrize("stated", [{"replay": {"peak_rps": 90}}, {"autoscaler": {"policy": "schedule"}}])
def test_a_load_that_is_stated_and_one_that_a_timetable_is_of_stay(stated):
    assert fit_load(load(**stated), 4.0) == (load(**stated), "")


def test_slowness_is_that_of_this_computer():
    assert 0.05 < measure_slowness() < 200
