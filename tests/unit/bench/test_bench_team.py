"""Proposals for the shipped jobs are measured: all jobs, each as its lake would hold it, and what became of them."""

import sys

import pytest

from configs.settings import load
from pipelines.advise import observed
from pipelines.advise.proposal_text import format_proposal
from pipelines.bench.team import init, shipped_jobs
from pipelines.bench.team.shipped_jobs import HOURS, list_jobs, load_of, simulated_job
from pipelines.cli.bench.team import WAITS, measure_team
from pipelines.figures.form import read_figure
from pipelines.figures.goals import goals_of
from pipelines.figures.written import write_figure


def test_every_shipped_job_is_one_and_its_load_fits_its_executors():
    jobs = list_jobs(load())
    assert len(jobs) == 8 and {"word_count", "key_window", "ride_count", "key_totals"} <= set(jobs)
    job = simulated_job(jobs["word_count"])
    assert job.least == job.most == jobs["word_count"].executors.max
    arrived = load_of(job, jobs["word_count"], 5, 1)
    assert len(arrived) == HOURS * 3600 + 1 and arrived[-1] == load_of(job, jobs["word_count"], 5, 1)[-1]
    assert arrived[-1] != load_of(job, jobs["word_count"], 7, 1)[-1]


@pytest.mark.study
def test_a_proposal_is_judged_by_the_check_by_its_twin_and_by_the_job(monkeypatch):
    told, texts, every = [], [], list_jobs(load())

    def keep(observed, proposal):
        texts.append(format_proposal(observed, proposal))
        return texts[-1]

    monkeypatch.setattr(init, "list_jobs", lambda settings: {"key_window": every["key_window"]})
    monkeypatch.setattr(shipped_jobs, "HOURS", 0.34)
    for name, seconds in (("LEAST_S", 1200.0), ("LEAST_LATE_S", 12.0)):  # an hour takes three times as long
        monkeypatch.setattr(observed, name, seconds)
    monkeypatch.setattr(init, "format_proposal", keep)
    found = init.measure_proposals(load(), told.append)
    (row,) = found["jobs"]
    assert told == ["key_window"] and (found["n"], found["passed"], found["held"]) == (1, 1, 1)
    assert row["target_s"] >= row["kept_s"] and row["executors"][1] >= row["were"] == 2
    assert row["late"] <= init.BUDGET and found["next"] == (row["next_late"] <= init.BUDGET)
    assert not init._passes("job: key_window\nlatency: 3\n", every["key_window"])
    stated = [line for line in texts[0].splitlines() if ": " in line and not line.lstrip().startswith("#")]
    assert all(" # " in line for line in stated if not line.startswith("job: ")), texts[0]
    above = texts[0].replace("\n# ", " ")
    assert "Less than a day was observed" in above and " late over " in above


def test_a_part_that_is_not_run_keeps_its_rows_and_says_where_they_are_of(tmp_path, monkeypatch):
    file = tmp_path / "team.json"
    monkeypatch.setattr(sys, "argv", ["tidecast", "bench", "team", "--parts", "pools"])
    write_figure(file, {"pools": {"most_changes": 2.0}})
    before = read_figure(file)
    monkeypatch.setattr(sys, "argv", ["tidecast", "bench", "team", "--parts", "alerts"])
    monkeypatch.setattr("pipelines.bench.team.alerts.measure.measure_alerts", lambda report: {**ALERTS})
    measure_team("alerts", file)
    after = read_figure(file)
    assert after.data["pools"]["source"]["command"] == before.command
    assert after.data["alerts"]["source"]["command"] == after.command == "tidecast bench team --parts alerts"
    measured = {row.what: row.measured for row in after.rows if row.measured is not None}
    assert set(measured.values()) == {2.0, 15, 1.0, 0.5, 0}
    measure_team("alerts", file)
    assert read_figure(file).data["pools"] == after.data["pools"]


def test_what_the_console_was_measured_to_is_said_and_judged(tmp_path, monkeypatch, capsys):
    waits = {name: {"median": 0.5, "worst": worst, "n": 3} for name, worst in zip(WAITS, (1.2, 0.9, 1.9), strict=True)}
    counts = {"looks": 36, "errors": 0, "violations": 1, "askew": 0, "answers": 25, "as_said": 24}
    same = {"compared": 900, "differ": 1, "differing": ["orders: row.target is 4, in the lake 3"], "estimates": 6}
    figures = {**same, "budget_off": 0.001, "burn_off": 0.2}
    measured = {**waits, **counts, "figures": figures, "found": ["jobs 360 light: contrast at a"]}
    monkeypatch.setattr("pipelines.bench.team.console.measure.measure_console", lambda settings, report: measured)
    monkeypatch.setattr(sys, "argv", ["tidecast", "bench", "team", "--parts", "console"])
    measure_team("console", tmp_path / "team.json")
    said = capsys.readouterr().out
    assert "1 of 900 figures differ from the lake's\norders: row.target is 4, in the lake 3\n" in said
    assert "cold 0.50 (1.20)" in said and "24 of 25 requests" in said and "jobs 360 light: contrast at a" in said
    whats = goals_of("tidecast bench team").list_part("console")
    held = {row.what: row.holds for row in read_figure(tmp_path / "team.json").rows if row.what in whats}
    assert [*held.values()] == [
        None, False, None, True, None, True, True, False, True, False, False, True, False,
    ]  # fmt: skip


ALERTS = {"troubles": [], "n": 15, "told": 15, "slowest": 0.5, "quiet": 0, "quiet_h": 24.0}
