"""What a run takes for itself on a slow computer."""

import json
import shutil

import pytest

from configs.contract import load_contract, read_contracts
from configs.pool import read_pools
from configs.settings import load
from pipelines.demo import slow_computer
from pipelines.demo.own_contracts import with_contract
from pipelines.demo.slow_computer import STEP_S, FittedRun, fit_run, measure_slowness
from pipelines.demo.timed_loop import STEPS, time_rounds
from pipelines.traces.trace import load_trace

MAIN = load_contract("word_count", load().contracts_dir)


@pytest.mark.parametrize("slowness", [0.5, 1.0, 1.5])
def test_a_usual_computer_has_the_whole_load(slowness):
    assert fit_run(load(), MAIN, slowness) == FittedRun(load(), {}, "")


def test_a_slow_computer_has_fewer_records_and_longer_starts():
    settings, contract, said = fit_run(load(), MAIN, 2.4)
    assert settings.replay.peak_rps == 44.5  # 90 / 1.6 ** 1.5
    longer = {"lead_s": 16.0, "forecast_age_s": 14.0, "metrics_age_s": 7.0}
    assert contract == {"planning": longer, "backpressure": {"interval_s": 2}}
    assert settings.replay.backfill_after_s == 18 and "the backfill has 18 s more" in said
    assert settings.autoscaler.trigger == "2 seconds"
    assert "a trigger of 2 seconds (so forecasts and metrics may be 2 s older" in said
    assert "2.4 times as slowly" in said and "44.5 records/s instead of 90" in said and "16 s instead of 10" in said
    trace = load_trace(settings.replay)
    assert max(trace.history()[1].max(), trace.live()[1].max()) == pytest.approx(44.5)


def test_a_very_slow_one_has_a_load_that_still_needs_scaling():
    settings = fit_run(load(), MAIN, 6.0).settings
    assert settings.replay.peak_rps == 38 and settings.autoscaler.trigger == "6 seconds"
    assert fit_run(load(), MAIN, 3.0).settings.autoscaler.trigger == "3 seconds"


def test_a_trigger_that_is_stated_and_how_old_may_be_what_it_goes_by_stay():
    settings, contract, _ = fit_run(load(autoscaler={"trigger": "2 seconds"}), MAIN, 3.0)
    assert settings.autoscaler.trigger == "2 seconds"
    assert contract == {"planning": {"lead_s": 20.0}}


@pytest.mark.parametrize("stated", [{"replay": {"peak_rps": 90}}, {"autoscaler": {"policy": "schedule"}}])
def test_a_load_that_is_stated_and_one_that_a_timetable_is_of_stay(stated):
    assert fit_run(load(**stated), MAIN, 4.0) == FittedRun(load(**stated), {}, "")


def test_the_contract_of_such_a_run_differs_by_the_lead_time_and_what_an_autoscaler_that_looks_less_often_needs(
    tmp_path,
):
    settings, contract, _ = fit_run(load(), MAIN, 3.0)
    folders = settings.contracts_dir, with_contract(settings, tmp_path, contract).contracts_dir
    shipped, own = (load_contract("word_count", folder).model_dump() for folder in folders)
    changed = {name: value for name, value in own["planning"].items() if value != shipped["planning"][name]}
    assert changed == {"lead_s": 20.0, "scale_down_delay_s": 16.0, "forecast_age_s": 15.0, "metrics_age_s": 8.0}
    assert own["backpressure"] == {**shipped["backpressure"], "interval_s": 3}
    kept = {name: shipped[name] for name in ("planning", "backpressure")}
    assert {**own, **kept} == shipped


def test_contracts_of_other_jobs_are_copied_as_they_are_and_as_secret_as_they_are(tmp_path):
    folder, run = tmp_path / "contracts", tmp_path / "run"
    shutil.copytree(load().contracts_dir, folder)
    run.mkdir()
    (folder / "broken.yaml").write_text("job: [of nobody")
    for name in ("word_count", "key_window"):
        (folder / f"{name}.yaml").chmod(0o400)  # a webhook's address may stand there
    copied = with_contract(load(contracts=folder), run, {"planning": {"lead_s": 20.0}}).contracts_dir
    assert (copied / "broken.yaml").read_text() == "job: [of nobody"
    assert load_contract("word_count", copied).planning.lead_s == 20.0
    assert [(copied / f"{name}.yaml").stat().st_mode & 0o777 for name in ("word_count", "key_window")] == [0o400] * 2


def test_pools_are_those_of_the_settings(tmp_path):
    folder, run = tmp_path / "contracts", tmp_path / "run"
    shutil.copytree(load().contracts_dir, folder)
    (tmp_path / "pools").mkdir()
    run.mkdir()
    settings = load(contracts=folder)
    pool = "name: shared\ncores: 12\njobs: {word_count: {}, key_window: {}}\n"
    (settings.pools_dir / "shared.yaml").write_text(pool)
    own = with_contract(settings, run, {"planning": {"lead_s": 20.0}})
    given, copied = (read_pools(one.pools_dir, read_contracts(one.contracts_dir)[0]) for one in (settings, own))
    assert copied == given and copied[0]["shared"].cores == 12


def test_slowness_is_that_of_this_computer(monkeypatch):
    monkeypatch.setattr(slow_computer, "MEASURED_S", 0.2)
    assert 0.05 < measure_slowness() < 200


def test_slowness_is_that_of_the_slow_rounds_of_both_cores(monkeypatch):
    usual = STEPS * STEP_S
    told = iter([[usual] * 5 + [3 * usual] * 3, [usual] * 8, [2 * usual] * 8, [usual] * 8])
    monkeypatch.setattr(slow_computer.subprocess, "check_output", lambda words: json.dumps(next(told)).encode())
    monkeypatch.setattr(slow_computer, "usable_cores", lambda: 64)
    assert measure_slowness() == pytest.approx(1.0)  # 3 of 16 rounds
    assert measure_slowness() == pytest.approx(2.0)  # half of them


def test_a_loop_is_timed_once_at_least():
    assert len(time_rounds(0.0)) == 1 and len(time_rounds(0.3)) > 1 and all(took > 0 for took in time_rounds(0.1))
