"""A window of which an agent must have miscounted the load counts as missing where a model serves, too."""

import json

import numpy as np
import pytest
from numpy.testing import assert_equal

from models.forecast.blend.blend import Blend
from models.forecast.core.series import Series
from models.forecast.online import Online
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.step.kept import JudgedWindows, KeptWindows
from pipelines.serve.step.keys import forecast_key
from pipelines.serve.step.records import ForecastValue, decode_value
from pipelines.serve.step.windows import RecentWindows
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, NOW, raw

JOB, WRONG = "orders", 5.6e8
LOADS = 100.0 + np.arange(40) % 24


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "store") as opened:
        yield opened


def forecast_of(values):
    online = Online(Blend(TASK))
    online.admit(JOB, Series(BEGIN * STEP, STEP, np.array(values)))
    return online.current(JOB)


def put(core, rates, first):
    """Put whole windows, and return the newest one's forecast message; None without one."""
    for i, rate in enumerate(rates):
        core.process([IncomingSample(raw(JOB, first + i, rate))], NOW)
    record = core.store.get(forecast_key(JOB, STEP))
    message = b"" if record is None else decode_value(ForecastValue, record.value).message
    return json.loads(message) if message else None


def test_a_miscounted_window_moves_no_forecast_and_nobody_hears_of_its_load(store, caplog):
    core = Core(store, STEP, {JOB}, epoch=7)
    put(core, LOADS, BEGIN)
    swap_model(core, prepare_model(core.windows, JOB, "m", "1", pack_model(Blend(TASK))))
    for later in range(2):  # the second is no nearer to the usual because of the first
        made = put(core, [WRONG], BEGIN + 40 + later)
        assert "last_rps" not in made and "5.6e+08 records/s count as missing" in caplog.text
        np.testing.assert_allclose(made["quantiles"], forecast_of([*LOADS, *[np.nan] * (later + 1)]))
    assert put(core, [116.0], BEGIN + 42)["last_rps"] == 116.0


def test_a_server_that_starts_again_counts_as_it_did_and_a_load_that_lasts_is_believed(store):
    core = Core(store, STEP, {JOB}, epoch=7)
    put(core, LOADS, BEGIN)
    swap_model(core, prepare_model(core.windows, JOB, "m", "1", pack_model(Blend(TASK))))
    put(core, [WRONG] * 9, BEGIN + 40)
    again = Core(store, STEP, {JOB}, epoch=8).job(JOB)
    assert again.rate is None and again.model.state(JOB) == core.job(JOB).model.state(JOB)
    made = put(core, [WRONG] * 4, BEGIN + 49)  # of the first three no forecast is made: nine before were filled
    assert made["last_rps"] == WRONG and made["quantiles"][0][-1] > 1e6
    again = Core(store, STEP, {JOB}, epoch=8).job(JOB)
    assert again.rate == WRONG and again.model.state(JOB) == core.job(JOB).model.state(JOB)


def test_more_than_three_miscounted_windows_silence_a_job_as_missing_ones_do(store):
    core = Core(store, STEP, {JOB}, epoch=7)
    put(core, LOADS, BEGIN)
    swap_model(core, prepare_model(core.windows, JOB, "m", "1", pack_model(Blend(TASK))))
    said = []
    for later, rate in enumerate([*[WRONG] * 5, *[110.0] * 4]):
        if later == 4:
            core = Core(store, STEP, {JOB}, epoch=8)
        core.process([IncomingSample(raw(JOB, BEGIN + 40 + later, rate))], NOW)
        value = decode_value(ForecastValue, store.get(forecast_key(JOB, STEP)).value)
        said.append((value.reason, value.imputed, value.since_gap))
    doubted = [("doubted", 4, 0), ("doubted", 5, 0), *(("doubted", 5, since) for since in range(3))]
    assert said == [("", 1, 0), ("", 2, 0), ("", 3, 0), *doubted, ("", 5, 3)]


def test_a_champion_is_begun_on_windows_without_those_that_were_miscounted():
    windows = RecentWindows(STEP)
    windows.add(JOB, [(BEGIN + i, rate) for i, rate in enumerate([WRONG, *LOADS[20:], WRONG, 101.0, 102.0])])
    ready = prepare_model(windows, JOB, "m", "1", pack_model(Blend(TASK)))
    online = Online(Blend(TASK))
    online.admit(JOB, Series(BEGIN * STEP, STEP, np.array([np.nan, *LOADS[20:], np.nan, 101.0])))
    assert ready.warm_state == online.state(JOB)


def test_windows_to_step_over_are_judged_as_when_they_came():
    windows = RecentWindows(STEP)
    windows.add(JOB, enumerate([*[7.0] * 20, *[WRONG] * 11]))
    kept = KeptWindows(windows, JOB, [(31, 8.0)])
    nan = np.nan
    assert_equal(kept.later(18, 31).values, [7.0, 7.0, *[nan] * 9, WRONG, WRONG, 8.0])
    assert_equal(kept.history(10, 28).values, [*[7.0] * 10, *[nan] * 9])
    assert_equal(kept.history(10, 31).values, [*[7.0] * 10, *[WRONG] * 11, 8.0])
    assert (kept.later(32, 31).values.size, kept.later(32, 31).start) == (0, 32 * STEP)
    rates, judged = [*[7.0] * 20, *[WRONG] * 11], JudgedWindows()
    counted = [judged.counted_rate(kept, n, rate) for n, rate in enumerate([*rates, 8.0])]
    assert counted == [*[7.0] * 20, *[None] * 9, WRONG, WRONG, 8.0]
    assert [JudgedWindows().counted_rate(kept, n, rates[n]) for n in (0, 20, 28, 29)] == [7.0, None, None, WRONG]


@pytest.mark.parametrize(
    "usual", [[7.0] * 40, [0.0] * 30 + [7.0] * 10 + [0.0] * 20, [7.0] * 10 + [0.0] * 500, [0.0] * 50]
)
@pytest.mark.parametrize("rate", [0.0, 5.0, 7e4, 7.1e4, WRONG])
def test_the_newest_window_is_judged_by_the_newest_hundred_however_few_are_looked_at(usual, rate):
    windows = RecentWindows(STEP)
    windows.add(JOB, enumerate([*usual, rate]))
    kept, newest = KeptWindows(windows, JOB), len(usual)
    counted = JudgedWindows().counted_rate(kept, newest, rate)
    assert counted == (None if 7.0 in usual[-100:] and rate > 7e4 else rate)
    assert_equal(kept.later(newest, newest).values, [np.nan if counted is None else counted])


@pytest.mark.parametrize(("step_s", "every", "long"), [(1800.0, 336, 1), (60.0, 1440, 4), (60.0, 10_080, 4)])
def test_a_burst_that_comes_back_is_believed_where_it_is_warmed_on_and_where_it_is_served(step_s, every, long):
    """Of one half hour a week 2,880 windows hold eight, of four minutes a day eight to eleven."""
    times = max(3000 // every, 1) + 1
    rates = np.tile(np.r_[np.full(every - long, 7.0), np.full(long, 1e6)], times)
    windows, judged = RecentWindows(step_s), JudgedWindows()
    counted = []
    for newest, rate in enumerate(rates.tolist()):
        windows.add(JOB, [(newest, rate)])
        if newest >= every - long:
            counted.append(judged.counted_rate(KeptWindows(windows, JOB), newest, rate))
    first, since = every - long, (times - 1) * every
    expected = [*[None] * long, *rates[every:]]
    assert counted == expected
    kept, last = KeptWindows(windows, JOB), times * every - 1
    assert_equal(kept.later(since, last).values, rates[since:])
    assert_equal(kept.history(first, last).values, rates[first:], "by all of them the first was one of several")


def test_a_server_that_starts_again_counts_what_came_a_week_before(store):
    core = Core(store, STEP, {JOB}, epoch=7)
    put(core, [*[100.0] * 120, 1e7, *[100.0] * 168], BEGIN)
    again = Core(store, STEP, {JOB}, epoch=8)
    put(again, [1e7, 1e7], BEGIN + 289)
    assert again.job(JOB).rate == 1e7
    assert Core(store, STEP, {JOB}, epoch=9).job(JOB).rate == 1e7


def test_what_decides_is_read_once_and_carried():
    asked = []

    class Counted(RecentWindows):
        def rates(self, job, first, last):
            asked.append(last - first + 1)
            return super().rates(job, first, last)

    rates, windows, judged = np.full(800, 7.0), Counted(1800.0), JudgedWindows()
    rates[300:306], rates[500:502], rates[750] = 1e6, 1e6, 1e6
    counted = []
    for newest, rate in enumerate(rates.tolist()):
        windows.add(JOB, [(newest, rate)])
        counted.append(judged.counted_rate(KeptWindows(windows, JOB), newest, rate))
    assert [n for n, one in enumerate(counted) if one is None] == [*range(300, 306)]
    assert sum(many > 100 for many in asked) == 1
