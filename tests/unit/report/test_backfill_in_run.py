"""A run whose live day had a backfill: what summary, first line and page say of it."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from pipelines.demo.run import list_failures
from pipelines.report.backfill.charts import control_chart
from pipelines.report.backfill.measure import measure_backfill, summarize_backfill
from pipelines.report.backfill.section import backfill_section
from pipelines.report.backfill.text import backfill_failures, backfill_sentence
from pipelines.report.headline import summary_text, verdict_lines
from pipelines.report.measures import measure_run
from pipelines.report.page import render_report
from pipelines.report.recorded.backfill import read_backfill
from pipelines.report.recorded.lines import RunError
from pipelines.report.recorded.run import load_run
from pipelines.report.summary import write_summary
from tests.fakes import run_backfill, run_dir
from tests.unit.report.test_page import check_by_plotly, figures

FACTS = {"policy": "reactive", "live_ingested_s": 40, "challenger": {"reason": "rejected"}, "left_alive": []}
DONE = {"corrected": 50, "differed": 50, "wrong": 0}


def measured_of(folder):
    return measure_run(load_run(folder))


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """The folder of a run with a backfill, what is known of it, and the run as measured."""
    folder = tmp_path_factory.mktemp("filled")
    run_dir.write(folder, seconds=85)
    facts = run_backfill.write(folder, at=30, seconds=110, records=1500, lent=(40, 50))
    return folder, facts, measured_of(folder)


@pytest.fixture(scope="module")
def summary(filled, tmp_path_factory):
    """A summary with this backfill; all else is of a run too short for a twin, which would take seconds."""
    short = tmp_path_factory.mktemp("short")
    run_dir.write(short, seconds=12)
    return {**write_summary(short), "backfill": summarize_backfill(filled[2])}


def altered(filled, **changed):
    """The backfill's part of the summary, had other things been heard of it."""
    measured = filled[2]
    told = replace(measured.run.backfill, **changed)
    return summarize_backfill(replace(measured, run=replace(measured.run, backfill=told)))


def test_the_summary_says_what_the_backfill_is_known_to_have_come_to(filled):
    _, facts, measured = filled
    b = summarize_backfill(measured)
    assert facts.done_s is not None and facts.highest_rps > 50
    assert (b["from"], b["to"]) == ("2014-10-22T09:00:00+00:00", "2014-10-22T10:00:00+00:00")
    assert (b["done"], b["in_time"], b["as_planned"], b["state"]) == (True, True, True, "done")
    assert (b["records"], b["windows_differed"], b["windows_corrected"], b["windows_wrong"]) == (1500, 50, 50, 0)
    assert b["took_s"] == pytest.approx(facts.done_s - 30, abs=0.1)
    assert b["rps"] == pytest.approx(1500 / b["took_s"], rel=0.01)
    assert b["produced_s"] == pytest.approx(b["took_s"], abs=1.5)
    assert b["live_promise_kept"] and b["late_s"] == 0
    assert b["executor_s"] == pytest.approx(10, abs=1) and b["highest_step"] == "none"
    assert b["latency_s"]["beside"]["n"] + b["latency_s"]["alone"]["n"] == len(measured.run.produced)


def test_live_records_that_were_never_committed_are_among_those_beside_the_backfill(filled):
    _, _, measured = filled
    told, made = measured.run.backfill, measured.run.produced["produced_at"].to_numpy()
    beside = (made >= told.ordered_at) & (made < told.done_at)
    stopped = replace(measured, committed=np.where(beside, np.inf, measured.committed))
    before, after = (summarize_backfill(one)["latency_s"] for one in (measured, stopped))
    assert after["beside"]["n"] == before["beside"]["n"] == beside.sum() and after["alone"] == before["alone"]
    assert after["beside"]["p50"] >= measured.live_end - told.done_at > before["beside"]["p50"]


def test_the_promise_stays_in_the_first_place_and_the_backfill_comes_next(summary):
    first, cost, *_ = verdict_lines(summary)
    promise, said = first.split(". ")
    assert promise.startswith("The promise, ") and cost.startswith("It used ")
    assert "The backfill of 09:00 to 10:00" in said and "corrected 50 windows, live promise kept, done at 1" in said
    assert "as planned (by Thu 02:00)" in said
    assert f"{summary['backfill']['executor_s']:.0f} of them asked for by the backfill" in cost
    assert backfill_failures(summary["backfill"]) == list_failures(summary, FACTS) == []


def test_what_live_load_took_alone_is_compared_with_others_who_serve_it_alone(summary):
    others = {"smallest_fixed": 2, "smallest_fixed_executor_s": 5.0, "reactive_executor_s": 6.0,
              "reactive_late_share": 0.0}  # fmt: skip
    b = {**summary["backfill"], "executor_s": 8.0}
    said = summary_text({**summary, "cost": {**summary["cost"], "executor_s": 12.0, **others}, "backfill": b})
    assert "It used 12 executor-seconds, 8 of them asked for by the backfill; the other 4 are 20 % fewer than" in said


@pytest.mark.parametrize(
    ("changed", "said", "failure"),
    [
        ({"planned_at": run_dir.START + 45}, "instead of 13:00 as planned.", None),
        ({"planned_at": run_dir.START + 45, "due_at": run_dir.START + 50}, "and after its deadline 14:00", None),
        ({"windows": {**DONE, "corrected": 49, "wrong": 1}}, "corrected 49 of 50 windows", "of all 1 is wrong"),
        ({"windows": {**DONE, "wrong": 2}}, "corrected 50 windows", "50 are right, and of all 2 are wrong"),
        ({"windows": {**DONE, "corrected": 0, "differed": 0}}, "corrected 0 windows", "nothing to correct"),
        ({"windows": {**DONE, "corrected": 1, "differed": 1}}, "corrected 1 window, live", None),
        ({"windows": None}, "nobody counted", "nobody counted"),
        (
            {"done_at": None, "state": "failed", "reason": "disk full"},
            "was not done: failed, disk full; live promise kept.", "was not done: failed, disk full",
        ),
        ({"done_at": None, "state": "running"}, "was not done: running; live", "was not done: running"),
        (
            {"ordered_at": None, "done_at": None, "progress": [], "state": "not ordered"},
            "was not done: not ordered.", "was not done: not ordered",
        ),
    ],
)  # fmt: skip
def test_each_other_end_is_said(filled, changed, said, failure):
    b = altered(filled, **changed)
    assert said in backfill_sentence(b)
    found = backfill_failures(b)
    assert (found == []) if failure is None else any(failure in one for one in found)


def test_late_live_seconds_meanwhile_break_the_promise_of_these_seconds(tmp_path):
    run_dir.write(tmp_path, seconds=60, stop=(20, 9))
    run_backfill.write(tmp_path, at=10, seconds=60, records=20_000)
    measured = measured_of(tmp_path)
    b, target = summarize_backfill(measured), measured.run.contract.latency_target_s
    late = int((measured.seconds["latency_max_s"] > target).sum())
    assert not b["live_promise_kept"] and 0 < b["late_s"] == late
    assert f"live promise broken meanwhile ({late} of {b['produced_s']} s late)" in backfill_sentence(b)


def test_the_section_shows_rates_executors_latency_progress_prices_and_relief(filled, summary):
    _, facts, measured = filled
    drawn = {}
    (section,) = backfill_section(measured, summary, drawn)
    assert set(re.findall(r'data-chart="([^"]+)"', section)) == set(drawn) == {"backfill", "backfill-control"}
    json.dumps(drawn, allow_nan=False)
    for figure in drawn.values():
        check_by_plotly(figure)
    by_name = {trace["name"]: trace for trace in drawn["backfill"]["data"]}
    assert {"live, arriving", "capacity", "admitted to the backfill", "executors registered", "slowest live record",
            "of these for the backfill"} <= set(by_name)  # fmt: skip
    assert max(by_name["admitted to the backfill"]["y"]) == pytest.approx(facts.highest_rps, abs=1e-3)
    assert by_name["backfill done"]["y"][0] == 0 and by_name["backfill done"]["y"][-1] == 100
    begin, end = drawn["backfill"]["layout"]["xaxis"]["range"]
    assert 0 < begin < 30 and facts.done_s < end


def test_the_page_has_the_section_also_of_a_backfill_that_did_not_end(tmp_path):
    run_dir.write(tmp_path, seconds=14)
    run_backfill.write(tmp_path, at=5, seconds=14, windows=(50, 0, 50))
    page = render_report(tmp_path).page.read_text()
    assert page.index("Load and capacity") < page.index("Backfill of a corrected hour") < page.index(">Decisions<")
    assert "was not done: running" in page
    drawn = figures(page)
    assert {"backfill", "backfill-control"} <= set(drawn)
    used = set(re.findall(r'"@([a-z]+)(?:/\d+)?"', json.dumps(drawn)))
    assert used <= set(re.findall(r"--([a-z]+):", page))


def test_a_limit_that_is_exceeded_has_a_price_and_leads_onto_the_ladder(tmp_path):
    run_dir.write(tmp_path, seconds=70)
    facts = run_backfill.write(tmp_path, at=5, seconds=70, late=(25, 65), records=20_000)
    measured = measured_of(tmp_path)
    assert facts.stopped and summarize_backfill(measured)["highest_step"] != "none"
    drawn = {trace["name"]: trace["y"] for trace in control_chart(measured, measure_backfill(measured))["data"]}
    steps = drawn.pop("step of relief")
    assert steps[0] == 0 < max(steps)
    assert max(max(prices) for prices in drawn.values()) > 0 == min(min(prices) for prices in drawn.values())
    assert any(re.fullmatch(r"live latency, 99\.\d+ % of records", name) for name in drawn)


def test_relief_is_told_as_it_was_decided_also_by_an_earlier_controller(tmp_path):
    run_dir.write(tmp_path, seconds=70)
    run_backfill.write(tmp_path, at=5, seconds=70, late=(25, 65), records=20_000)
    kept = []
    for line in (tmp_path / "decisions.jsonl").read_text().splitlines():
        decision = json.loads(line)
        inputs = decision["inputs"]
        kept.append(decision)
        if "replay" not in inputs:
            continue
        del inputs["replay"]["controller"]
        if inputs["replay"]["state"]["relief"]["step"] == 1 and inputs["relief"]["step"] == 4:
            inputs["relief"]["step"] = 2  # which was not passed over
            break
    (tmp_path / "decisions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in kept))
    assert kept[-1]["inputs"]["relief"]["step"] == 2
    assert summarize_backfill(measured_of(tmp_path))["highest_step"] == "maintenance"


def test_a_run_without_a_backfill_shows_nothing_of_one(tmp_path):
    folder = tmp_path / "run"
    run_dir.write(folder, seconds=12)
    s, path = render_report(folder)
    assert s["backfill"] is None and "ackfill" not in summary_text(s)
    page = path.read_text()
    assert "Backfill of" not in page and not any("backfill" in name for name in figures(page))
    assert list_failures(s, FACTS) == []
    older = {key: value for key, value in s.items() if key not in ("backfill", "late_dropped")}
    assert summary_text(older) == summary_text(s)


def test_what_came_too_late_and_was_not_corrected_is_said(summary):
    missing = {**summary, "counted": summary["produced"] - 7, "late_dropped": 7}
    assert "0 were lost and 0 counted twice, 7 came too late for their windows" in summary_text(missing)


def test_a_broken_record_is_named(filled, tmp_path):
    known = json.loads((filled[0] / "backfill.json").read_text())
    del known["due_at"]
    (tmp_path / "backfill.json").write_text(json.dumps(known))
    with pytest.raises(RunError, match=r"backfill\.json: 'due_at' is missing"):
        read_backfill(tmp_path)
