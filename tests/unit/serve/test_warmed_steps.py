"""A champion that reads last week is started on more than a week of windows, however short its steps."""

import numpy as np
import pytest

from configs.sections import Serving
from models.forecast.baselines.linear import fit_linear
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.neural.windows import PastWindow
from models.forecast.online import Online
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.step.job import ServedJob
from pipelines.serve.step.jobs import ServedJobs
from pipelines.serve.step.windower import Window
from pipelines.serve.step.windows import RecentWindows, warmed_steps

JOB, STEP_S = "orders", 120.0
TASK = Task(STEP_S, 1, (0.1, 0.5, 0.9))
LOADS = 100 + 50 * np.sin(np.arange(3 * TASK.week) * 2 * np.pi / TASK.day)


@pytest.fixture(scope="module")
def ridge():
    made = fit_linear(TASK, Series(0.0, STEP_S, LOADS))
    assert TASK.week in made.fitted.seasons
    return made


@pytest.mark.parametrize("step_s", [30, 60, 120, 300, 1800])
def test_windows_hold_what_a_network_reads_of_a_week_and_errors_of_its_own(step_s):
    task = Task(step_s, 12, (0.5,))
    assert PastWindow(task, task.week).needs + task.day <= warmed_steps(step_s) <= 26_000


def test_at_steps_too_short_for_a_week_they_hold_two_days_and_at_a_second_no_more_than_at_half_an_hour():
    assert warmed_steps(20.0) == 2 * 86_400 / 20
    assert warmed_steps(1.0) == warmed_steps(6.0) == warmed_steps(1800.0) == 2880


def test_the_store_keeps_what_a_champion_is_warmed_on_by_default_but_at_the_documented_steps():
    assert [s for s in range(1, 1801) if warmed_steps(s) > Serving().history] == [7, 8, *range(30, 39)]


@pytest.fixture(scope="module")
def warmed(ridge):
    """That model, made ready on the loads, which takes seconds; whoever serves it steps a model of his own."""
    windows = RecentWindows(STEP_S)
    windows.add(JOB, enumerate(LOADS.tolist()))
    return prepare_model(windows, JOB, f"{JOB}-forecaster", "1", pack_model(ridge))


@pytest.fixture
def served(warmed):
    windows = RecentWindows(STEP_S)
    jobs = ServedJobs(windows, {JOB}, lambda job, by: None, 7)
    for window, rate in enumerate(LOADS.tolist()):
        jobs.step(JOB, Window(window, rate, None, 0.0))
    served = jobs.job(JOB)
    deployment = warmed.deployment(1, len(LOADS), STEP_S)
    served.deployments[:] = [deployment]
    served.switch_model(Online(warmed.model.forecaster), deployment, warmed.warm_state)
    return served


def test_a_champion_that_reads_last_week_serves_as_itself_from_its_promotion_on_and_after_a_long_gap(served):
    assert served.model.basis(JOB) == "ridge"
    served.step(Window(len(LOADS) + 50, 100.0, None, 0.0))
    assert served.streak.warming and served.model.basis(JOB) == "ridge"


@pytest.mark.parametrize(("missing", "knows"), [(25, True), (2880, True), (2881, False)])
def test_a_job_that_comes_back_keeps_the_server_no_longer_than_its_gap_and_forecasts_the_same(
    served, ridge, monkeypatch, missing, knows
):
    read, history = [], ServedJob.history
    monkeypatch.setattr(ServedJob, "history", lambda *asked: read.append(history(*asked)) or read[-1])
    served.step(Window(len(LOADS) + missing, 120.0, None, 0.0))
    assert sum(len(series) for series in read) == 0, "a model is begun on windows in the thread that serves"
    anew, before = Online(ridge), LOADS if knows else LOADS[:0]
    values = np.concatenate([before, np.full(missing, np.nan), [120.0]])
    anew.admit(JOB, Series((len(LOADS) - len(before)) * STEP_S, STEP_S, values))
    np.testing.assert_array_equal(served.model.current(JOB), anew.current(JOB))
