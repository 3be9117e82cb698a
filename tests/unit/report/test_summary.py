import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from pipelines.html.numbers import number_of
from pipelines.report.alternatives import NOTHING
from pipelines.report.headline import summary_text, verdict_lines
from pipelines.report.measures import measure_run
from pipelines.report.page import render_report
from pipelines.report.recorded.lines import RunError
from pipelines.report.recorded.run import load_run
from pipelines.report.summary import KEYS, summary_of, write_summary
from tests.fakes import run_dir


@pytest.fixture(scope="module")
def forecast(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forecast")
    return folder, run_dir.write(folder), write_summary(folder)


def test_a_run_says_what_it_is_known_to_hold(forecast):
    _, facts, s = forecast
    assert (s["produced"], s["counted"], s["lost"], s["duplicated"]) == (facts.produced, facts.produced, 0, 0)
    assert (s["scale_ups"], s["scale_downs"]) == (facts.scale_ups, facts.scale_downs)
    assert s["forecast_scale_ups_confirmed"] == s["scale_ups_by_forecast"] == facts.scale_ups
    assert s["decision_to_executor_s"] == {"p50": run_dir.REGISTERS_S, "p95": run_dir.REGISTERS_S, "n": facts.scale_ups}
    assert s["metric_to_decision_s"]["p50"] == 0.4
    assert (s["stopped_s"], s["restarts"], s["failed_tasks"], s["executors_lost"], s["unfinished"]) == (0, 0, 0, 0, 0)
    assert 0 < s["latency_s"]["p50"] <= s["latency_s"]["p95"] <= s["latency_s"]["max"]
    assert s["live_s"] < s["executor_s"] < s["static_executor_s"] == pytest.approx(4 * s["live_s"], abs=0.3)
    assert s["forecast_version"] == "3"
    for e in s["forecast_error"].values():
        assert 0.02 < e["wape"] < 0.1 < e["wape_last_value"]  # the median is 4 % high, and arrivals are noisy


def test_what_signs_of_life_stand_for_is_counted_as_if_it_had_been_written(forecast, tmp_path):
    folder, _, written = forecast
    short = tmp_path / "short"
    shutil.copytree(folder, short)
    standing, kept = {}, []
    for line in (folder / "decisions.jsonl").read_text().splitlines():
        decision = json.loads(line)
        if kept and decision["codes"] == kept[-1]["codes"] == ["hold"]:
            beat = standing.setdefault(kept[-1]["id"], {"job": decision["job"], "by": "autoscaler", "repeats": 0})
            beat |= {"standing": kept[-1]["id"], "wall_time": decision["wall_time"], "repeats": beat["repeats"] + 1}
        else:
            kept.append(decision)
    for name, rows in (("decisions", kept), ("heartbeats", standing.values())):
        (short / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(kept) < 0.5 * written["decisions"]
    summary, same = write_summary(short), ("decisions", "stood_in", "scale_ups", "scale_downs", "scale_ups_by_forecast")
    assert {key: summary[key] for key in same} == {key: written[key] for key in same}


def test_the_keys_are_the_documented_ones_and_the_file_is_strict_json(forecast):
    folder, _, s = forecast
    assert list(s) == list(KEYS)
    assert json.loads((folder / "summary.json").read_text(), parse_constant=pytest.fail) == json.loads(json.dumps(s))


def test_a_stand_in_is_not_passed_over(forecast):
    *_, s = forecast
    assert "stood in" not in summary_text(s)
    said = summary_text({**s, "policy": "dqn", "stood_in": 3, "decisions": 7})
    assert "In 3 of 7 decisions another policy stood in for dqn." in said


@pytest.mark.parametrize(("busy", "told"), [(None, False), (0.89, False), (0.9, True), (1.0, True)])
def test_a_computer_whose_cores_are_too_busy_is_told_with_the_verdict(forecast, busy, told):
    s = {**forecast[2], "cores": 2, "cores_busy": busy}
    words = f"The 2 cores of this computer were busy {(busy or 0):.0%} of the time".replace("%", " %")
    assert any(line.startswith(words) for line in verdict_lines(s)) is told
    assert (words in summary_text(s)) is (busy is not None)


def test_the_table_shows_the_figures(forecast):
    _, facts, s = forecast
    text = summary_text(s)
    assert f"{facts.produced:,} of {facts.produced:,}; 0 lost, 0 twice" in text
    assert "Processing never stopped." in text
    _, table = text.split("\n\n")
    assert len({line.index(line.split("  ", 1)[1].strip()) for line in table.splitlines()}) == 1  # aligned


def test_the_table_says_what_came_of_the_newcomer_in_two_lines(forecast):
    *_, s = forecast
    lines = summary_text(s).splitlines()
    assert sum("word_count (shape 0.23, kept under 0.5)" in line for line in lines) == 1
    assert sum("version 2, blend, promoted" in line and "version 2 serves" in line for line in lines) == 1
    assert len(summary_text({**s, "newcomer": None}).splitlines()) == len(lines) - 2
    none = {**s["newcomer"], "version": None, "why": "", "reason": "no challenger: 48 steps in the lake"}
    assert "none was judged; no challenger: 48 steps" in summary_text({**s, "newcomer": none})


def test_a_stop_is_found_to_the_second(tmp_path):
    facts = run_dir.write(tmp_path, seconds=60, stop=(44, 4))
    s = write_summary(tmp_path)
    assert s["stopped_s"] == facts.stopped_s == 4
    assert s["stopped_in_action_s"] == 0
    assert 4 < s["longest_pause_s"] < 5.5
    assert "stopped for 4 s, none of them in a scale action" in summary_text(s)


def test_an_executor_that_was_not_asked_to_leave_is_lost(tmp_path):
    run_dir.write(tmp_path, seconds=40)
    log = tmp_path / "eventlog" / run_dir.APP
    gone = {
        "Event": "SparkListenerExecutorRemoved", "Timestamp": int((run_dir.START + 38) * 1000), "Executor ID": "1",
        "Removed Reason": "Command exited with code 137",
    }  # fmt: skip
    log.write_text(log.read_text() + json.dumps(gone, separators=(",", ":")) + "\n")
    assert write_summary(tmp_path)["executors_lost"] == 1


def test_a_record_that_was_never_committed_is_over_the_target(tmp_path):
    run_dir.write(tmp_path, seconds=40)
    progress = tmp_path / "word_count.progress.jsonl"
    lines = progress.read_text().splitlines()
    progress.write_text("\n".join(lines[:-1]) + "\n")
    s = write_summary(tmp_path)
    assert s["unfinished"] == json.loads(lines[-1])["numInputRows"] > 0
    assert s["over_target_s"] > 0


def test_records_that_were_never_committed_count_with_what_they_waited_by_the_end(tmp_path):
    run_dir.write(tmp_path, seconds=40)
    progress = tmp_path / "word_count.progress.jsonl"
    lines = progress.read_text().splitlines()
    whole = write_summary(tmp_path)["latency_s"]
    progress.write_text("\n".join(lines[:-20]) + "\n")
    s = write_summary(tmp_path)
    found = s["latency_s"]
    assert s["unfinished"] > 0 and found["n"] == whole["n"], "the quantiles are over every live record"
    measured = measure_run(load_run(tmp_path))
    never = np.isinf(measured.committed)
    assert found["max"] == pytest.approx(
        measured.live_end - measured.run.produced["produced_at"][never].min(), abs=1e-3
    )
    assert found["p95"] > whole["p95"] + 5 and found["max"] > whole["max"] + 10


def test_a_restart_of_the_query_is_counted(tmp_path):
    run_dir.write(tmp_path, seconds=40)
    progress = tmp_path / "word_count.progress.jsonl"
    lines = progress.read_text().splitlines()
    progress.write_text("\n".join([*lines[:20], *(line.replace("run-1", "run-2") for line in lines[20:])]) + "\n")
    assert write_summary(tmp_path)["restarts"] == 1


@pytest.mark.parametrize(
    "name", ["run.json", "truth.json", "produced.npz", "counts.json", "metrics.jsonl", "word_count.progress.jsonl"]
)
def test_a_missing_file_is_named(tmp_path, name):
    run_dir.write(tmp_path, seconds=10)
    (tmp_path / name).unlink()
    with pytest.raises(RunError, match=name):
        write_summary(tmp_path)


def test_a_broken_line_is_named(tmp_path):
    run_dir.write(tmp_path, seconds=10)
    file = tmp_path / "decisions.jsonl"
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], "{", *lines[1:]]) + "\n")
    with pytest.raises(RunError, match=r"decisions\.jsonl:2"):
        write_summary(tmp_path)


def test_the_promise_comes_first_and_is_judged_by_the_seconds(forecast):
    *_, s = forecast
    late = s["over_target_s"] / s["produced_s"]
    assert s["promise"]["late_share"] == pytest.approx(late, abs=1e-4)
    assert s["promise"]["kept"] is (late <= s["promise"]["budget"])
    word = "kept" if s["promise"]["kept"] else "broken"
    first, *more = summary_text(s).split("\n\n")[0].splitlines()
    assert [f"- {line}" for line in verdict_lines(s)[1:]] == more
    assert first.startswith("The promise, 5 s in all but 1.0 % of the seconds, was " + word)
    assert s["promise"]["accounted_s"] is None and s["lead_s"] is None  # a run of before
    broken = {**s["promise"], "kept": False, "announced": 0.4}
    assert "; the autoscaler first warned when 40 % of that budget was spent." in summary_text({**s, "promise": broken})


def test_the_cost_stands_beside_what_others_would_take(forecast):
    *_, s = forecast
    cost = s["cost"]
    assert cost["executor_s"] == s["executor_s"] and cost["reactive_executor_s"] > 0
    assert cost["smallest_fixed"] == 2 and cost["live_executor_s"] == cost["executor_s"]
    assert cost["smallest_fixed_executor_s"] == pytest.approx(2 * s["produced_s"], rel=0.02)
    assert cost["clairvoyant_executor_s"] < cost["smallest_fixed_executor_s"]
    took, others = verdict_lines(s)[1:3]
    assert took.startswith(f"It used {cost['executor_s']:,.0f} executor-seconds")
    assert others.startswith("Simulated, by a model fitted to this run: reactive, a policy without a forecast, uses ")
    assert f"uses {cost['reactive_executor_s']:,.0f} and is late in " in others
    assert "; a plan that knows the whole load ahead uses " in others


def test_one_of_a_thing_is_told_as_one(forecast):
    *_, s = forecast
    one = {**s, "scale_ups": 1, "scale_ups_by_forecast": 1, "lost": 1, "restarts": 1, "failed_tasks": 1}
    told = " ".join(summary_text(one).split())
    assert "The forecast caused 1 of 1 scale-up;" in told and "1 was lost and 0 counted twice" in told
    assert "1 restart, 1 failed task" in told
    assert number_of(2000, "query", "queries") == "2,000 queries" and number_of(None, "step") == "– steps"


def test_money_is_told_where_the_contract_has_a_price(forecast, monkeypatch):
    folder, _, s = forecast
    assert s["cost"]["money"] is None and " for " not in verdict_lines(s)[1].split(",")[0]
    priced = load_run(folder)
    priced = replace(priced, contract=priced.contract.model_copy(update={"price_per_executor_hour": 0.5}))
    known = {name: s["cost"][name] for name in NOTHING}  # which no price changes, and which takes seconds
    monkeypatch.setattr("pipelines.report.summary.price_run", lambda measured: known)
    found = summary_of(measure_run(priced))
    assert found["cost"]["money"] == pytest.approx(s["executor_s"] / 7200, abs=1e-3)
    assert f"executor-seconds for {found['cost']['money']:.2f}" in summary_text(found)


def test_a_run_that_tells_too_little_for_a_twin_says_so(tmp_path):
    run_dir.write(tmp_path, seconds=12)
    s = write_summary(tmp_path)
    assert set(s["cost"].values()) == {s["executor_s"], None}
    assert "too little was measured" in summary_text(s)


def test_a_run_whose_only_raise_was_of_no_use_is_summarised(tmp_path):
    run_dir.write(tmp_path, seconds=40)
    for file in tmp_path.glob("*s.jsonl"):  # as a message's bytes, which leave out what is None
        rows = map(json.loads, file.read_text().splitlines())
        kept = [{name: value for name, value in row.items() if value is not None} for row in rows]
        if file.name == "outcomes.jsonl":
            unused = ("confirmed_at", "useful_at", "executors_after")
            kept = [{name: value for name, value in kept[0].items() if name not in unused} | {"status": "ineffective"}]
        file.write_text("".join(json.dumps(row) + "\n" for row in kept))
    s, page = render_report(tmp_path)
    assert (s["ineffective"], s["scale_ups"], s["forecast_scale_ups_confirmed"]) == (1, 1, 0)
    assert s["decision_to_useful_s"]["n"] == s["decision_to_executor_s"]["n"] == 0
    assert page.exists()
