"""What the ring decides by itself: whether it closed, which event hours it ingests, what the live line shows."""

import json
import subprocess
import time
from contextlib import closing
from datetime import UTC, datetime

import psutil
import pytest

from configs.errors import SettingsError
from configs.settings import load
from pipelines.demo import run as demo
from pipelines.demo.champion import history_window, live_window
from pipelines.demo.compare import _done, compare_policies, read_contestants
from pipelines.demo.own_contracts import with_contract
from pipelines.demo.progress import LiveFigures, Screen
from pipelines.demo.run import create_run_dir, left_alive, list_failures, run_demo, update_run_json
from pipelines.stack.context import StackRunsError
from pipelines.stack.state import lock
from pipelines.traces.trace import TraceError
from tidecast.messages import Decision, Forecast, MetricSample

SUMMARY = {"lost": 0, "duplicated": 0, "produced": 100, "counted": 100, "forecast_scale_ups_confirmed": 1}
FACTS = {"policy": "forecast", "live_ingested_s": 40, "challenger": {"reason": "rejected"}, "left_alive": []}


def test_a_run_that_is_refused_leaves_no_folder(tmp_path):
    with pytest.raises(SettingsError, match="TIDECAST_KAFKA__BOOTSTRAP=mine:9092"):
        run_demo(load(var=tmp_path, kafka={"bootstrap": "mine:9092"}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("slowness", [1.0, 3.0])  # with contracts of its own, and without
def test_a_run_beside_a_stack_that_runs_leaves_no_folder_either(tmp_path, monkeypatch, slowness):
    monkeypatch.setattr(demo, "measure_slowness", lambda: slowness)
    with closing(lock(tmp_path / "demo")), pytest.raises(StackRunsError, match="demo is in use by"):
        run_demo(load(var=tmp_path))
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_load_that_has_not_ended_yet_is_refused_before_anything_is_started(tmp_path):
    (trace := tmp_path / "coming.csv").write_text("timestamp,value\n2999-01-01 00:00,1\n2999-01-01 01:00,2\n")
    coming = {"trace": str(trace), "live_start": "2999-01-01", "live_hours": 1, "history_days": 0}
    settings = load(var=tmp_path / "var", replay=coming)
    for begin in (run_demo, lambda settings: compare_policies(settings, ["mpc"], 1)):
        with (
            closing(lock(tmp_path / "var" / "demo")),  # so that no stack could start
            pytest.raises(TraceError, match=r"ends in the future, at 2999-01-01 01:00:00 UTC"),
        ):
            begin(settings)
    assert not (tmp_path / "var" / "runs").exists()


def test_a_closed_ring_has_no_open_end():
    assert list_failures(SUMMARY, FACTS) == []
    assert list_failures(SUMMARY, {**FACTS, "newcomer": None}) == []
    assert list_failures(SUMMARY, {**FACTS, "newcomer": {"job": "rides", "version": "2", "reason": "rejected"}}) == []


@pytest.mark.parametrize(
    ("summary", "facts", "word"),
    [
        ({"lost": 1, "counted": 99}, {}, "produced 100, counted 99"),
        ({"duplicated": 2}, {}, "counts differ"),
        ({"forecast_scale_ups_confirmed": 0}, {}, "forecast caused"),
        ({}, {"live_ingested_s": 0}, "not in the lake"),
        ({}, {"challenger": None}, "no challenger"),
        ({}, {"newcomer": {"job": "rides", "version": None, "reason": "too few steps"}}, "rides was judged: too few"),
        ({}, {"left_alive": ["17 java"]}, "17 java"),
    ],
)
def test_each_open_end_is_said(summary, facts, word):
    (end,) = list_failures({**SUMMARY, **summary}, {**FACTS, **facts})
    assert word in end


def test_a_run_without_forecasts_needs_no_scale_up_by_one():
    assert list_failures({**SUMMARY, "forecast_scale_ups_confirmed": 0}, {**FACTS, "policy": "reactive"}) == []


def test_the_windows_meet_at_the_live_start_and_hold_the_last_hour():
    settings = load(replay={"live_start": "2014-10-22T04:30:00", "live_hours": 2.0, "history_days": 1})
    history, live = history_window(settings), live_window(settings)
    assert history == (datetime(2014, 10, 21, 4, tzinfo=UTC), datetime(2014, 10, 22, 4, tzinfo=UTC))
    assert live == (datetime(2014, 10, 22, 4, tzinfo=UTC), datetime(2014, 10, 22, 7, tzinfo=UTC))


def test_facts_are_added_to_those_that_are_known(tmp_path):
    folder = create_run_dir(load(var=tmp_path, autoscaler={"policy": "static"}))
    assert folder.name.endswith("-static") and folder.parent == tmp_path / "runs"
    (folder / "run.json").write_text('{"policy": "static", "wall_end": null}')
    assert update_run_json(folder, wall_end=3.0) == {"policy": "static", "wall_end": 3.0}


def test_the_live_line_shows_the_newest_of_each_kind():
    now = time.time()
    metric = MetricSample("a", "interval", now, now, arrival_rps=120.4, executors=2, lag_records=37)
    forecast = Forecast("a", now, now, 1.0, 60.0, [0.1, 0.5, 0.9], [[1.0, 2.0, 3.0]] * 3 + [[200.0, 250.0, 300.0]],
                        "m", "1", "champion", "gru", 9, 1)  # fmt: skip
    decision = Decision("d", "a", now, now, 1.0, "act", "forecast", 3, "up 2 → 3: why", ["up", "forecast"], {}, {})
    view = LiveFigures()
    assert view.line() == "arrival    -/s  ahead    -/s  executors -→-  lag     -  latency p95    - s"
    for message in (metric, forecast, decision):
        view = view.updated_by(message)
    assert view.line() == "arrival  120/s  ahead  250/s  executors 2→3  lag    37  latency p95    - s"
    assert view.last_change == "up 2 → 3: why"


def test_a_stage_that_fails_says_so(capsys):
    with pytest.raises(ValueError, match="broken"), Screen(7, 1).stage("the middle"):
        raise ValueError("broken")
    assert "[2/7] the middle: failed after 0 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("names", "word"), [(["forecst"], "forecst"), (["mpc", "static:9"], "static:2 to static:6"), (["mpc:3"], "mpc:3")]
)
def test_a_comparison_refuses_what_it_cannot_run_before_it_starts(tmp_path, names, word):
    with pytest.raises(SettingsError, match=word):
        compare_policies(load(var=tmp_path), names, 1)
    assert not list(tmp_path.iterdir())


def test_a_fixed_number_of_executors_has_contracts_of_its_own(tmp_path):
    import yaml

    settings = load()
    planner, fixed = read_contestants(["mpc", "static:4"], settings)
    assert (planner.name, planner.contract, fixed.name) == ("mpc", {}, "static:4")
    folder = with_contract(settings, tmp_path, fixed.contract).contracts_dir
    changed = yaml.safe_load((folder / "word_count.yaml").read_text())
    before = yaml.safe_load((settings.contracts_dir / "word_count.yaml").read_text())
    assert changed["planning"].pop("static_executors") == 4 and before["planning"].pop("static_executors") == 6
    assert changed["executors"].pop("min") == 4 and before["executors"].pop("min") == 2
    assert changed == before
    other = yaml.safe_load((folder / "key_window.yaml").read_text())
    assert other == yaml.safe_load((settings.contracts_dir / "key_window.yaml").read_text())


def test_a_run_whose_file_was_cut_off_is_named_and_counts_as_not_finished(tmp_path, capsys):
    of = {"turn": 1, "busy_cores": 0, "trace": "nyc_taxi", "contestant": "mpc"}
    for name, summary in (("1-mpc", '{"late'), ("2-mpc", '{"late": 3}')):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"comparison": of}))
        (folder / "summary.json").write_text(summary)
    assert _done(load(var=tmp_path), "1-mpc", 0) == [{"late": 3, **of}]
    assert f"{tmp_path / 'runs' / '1-mpc' / 'summary.json'}: not JSON" in capsys.readouterr().out


def test_runs_of_a_comparison_that_broke_off_are_not_run_again(tmp_path):
    idle = {"turn": 1, "busy_cores": 0, "trace": "nyc_taxi"}
    found = {"0-mpc": None, "1-mpc": idle, "2-mpc": {**idle, "busy_cores": 1}, "3-mpc": {**idle, "trace": "wiki_en"}}
    for name, of in found.items():
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({} if of is None else {"comparison": {**of, "contestant": "mpc"}}))
        (folder / "summary.json").write_text("{}")
    settings = load(var=tmp_path)
    assert _done(settings, "", 0) == []
    assert _done(settings, "0-mpc", 0) == [{**idle, "contestant": "mpc"}]
    assert _done(settings, "2-mpc", 0) == []
    with pytest.raises(SettingsError, match="--since 4-mpc: no such run"):
        _done(settings, "4-mpc", 0)


def test_runs_of_another_load_are_not_compared_and_that_is_said(tmp_path, capsys):
    of = {"turn": 1, "busy_cores": 0, "trace": "nyc_taxi", "contestant": "mpc"}
    settings = load(var=tmp_path, replay={"withheld_share": 0.5})
    same = {**settings.replay.model_dump(mode="json"), "withheld_share": 0.0, "newcomer": None}
    of_before = {name: value for name, value in same.items() if name != "surge"}
    found = {"1": same, "2": {**same, "live_hours": 2.0}, "3": of_before, "4": {**same, "speed": 7200.0, "seed": 8}}
    for name, replayed in found.items():
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        (folder / "run.json").write_text(json.dumps({"comparison": of, "replay": replayed}))
        (folder / "summary.json").write_text(json.dumps({"id": name}))
    assert [run["id"] for run in _done(settings, "1", 0)] == ["1", "3"]
    assert capsys.readouterr().out.splitlines() == [
        "2: replay.live_hours was 2.0 and is 24.0. That run is left out",
        "4: replay.speed was 7200.0 and is 200.0, replay.seed was 8 and is 7. That run is left out",
    ]


def test_a_process_that_ends_while_survivors_are_listed_is_none(monkeypatch):
    child = subprocess.Popen(["sleep", "60"])
    ended, me = psutil.Process(child.pid), psutil.Process()
    child.kill()
    child.wait()
    monkeypatch.setattr(demo, "find_processes", lambda sessions, stack_id: [ended, me])
    assert left_alive(type("Stopped", (), {"processes": {}, "id": "x"})()) == [f"{me.pid} {me.name()}"]
