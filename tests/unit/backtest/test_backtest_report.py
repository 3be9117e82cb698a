import json
from functools import partial

import numpy as np
import pytest
from typer.testing import CliRunner

from configs.errors import SettingsError
from models.forecast.core.series import SeriesError
from models.twin.experiment import benchmark
from models.twin.experiment.benchmark import Effort
from models.twin.experiment.contenders import ablations, forecasters_of, select_contenders
from models.twin.experiment.setup import Setup
from models.twin.sim.job import TwinError, TwinJob
from pipelines.backtest.in_parts import split_contenders
from pipelines.backtest.job_file import read_job
from pipelines.backtest.load import list_map_loads, read_load
from pipelines.backtest.report import backtest
from pipelines.backtest.text import describe_backtest, format_hours, verdict_sentence
from pipelines.cli.app import app
from pipelines.traces.trace_file import TraceError

pytestmark = pytest.mark.study

JOB = {"overhead_s": 0.5, "per_record_s": 0.005, "most": 10, "startup_s": [5.0, 6.0, 7.0], "batch_rows": None}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With an hour's load in it."""
    folder = tmp_path_factory.mktemp("backtest")
    values = 100 + 60 * np.sin(np.arange(360) / 30)
    rows = [
        f"2024-01-01T{s // 3600:02}:{s % 3600 // 60:02}:{s % 60:02},{v:.1f}"
        for s, v in zip(range(0, 3600, 10), values, strict=True)
    ]
    (folder / "toy.csv").write_text("\n".join(["timestamp,value", *rows]) + "\n")
    return folder


@pytest.fixture(scope="module")
def alone(folder):
    """A small backtest in this process, and how far it said that it was."""
    load, names, shares = read_load(str(folder / "toy.csv")), ("static", "reactive", "forecast"), []
    (found,) = backtest([load], Setup(lead_s=20.0), names, Effort(4, 2), report_share=shares.append)
    return found, shares


@pytest.fixture(scope="module")
def run(folder, alone):
    """The same through the front door. Its two processes find compiled what that one has compiled."""
    asked = ["--policies", "static,reactive,forecast", "--lead-s", "20", "--seeds", "2", "--knobs", "4"]
    written = ["--json", str(folder / "new" / "toy.json"), "--page", str(folder / "toy.html")]
    done = CliRunner().invoke(app, ["backtest", str(folder / "toy.csv"), *asked, *written], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "[#" not in done.output, "a bar where there is no terminal"
    return folder, done.output, json.loads((folder / "new" / "toy.json").read_text())["data"]


def test_one_process_finds_the_same_as_two(run, alone):
    """And tells how far it is on the way."""
    found, shares = alone
    assert found == run[2]
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1.0)


def test_policies_of_one_kind_stay_together_and_the_groups_do_about_the_same():
    found, _ = select_contenders(["all"], Setup().contract)
    groups = split_contenders([*found, *ablations(found)], 2)
    assert sorted(one.name for group in groups for one in group) == sorted(
        one.name for one in [*found, *ablations(found)]
    )
    assert len({one.policy for group in groups for one in group}) == sum(len({o.policy for o in g}) for g in groups)
    assert {one.policy for one in groups[0]} >= {"mpc"} and "forecast" not in {one.policy for one in groups[0]}
    assert len(split_contenders(found[:1], 3)) == 1, "groups without anybody"


def test_only_what_a_policy_hears_is_forecast():
    def heard(*names):
        found, _ = select_contenders(names, Setup().contract)
        return forecasters_of([*found, *ablations(found)])

    assert heard("static", "reactive") == []
    assert heard("forecast") == heard("mpc") == ["blend", "last_value"]


def test_the_json_has_points_per_policy_and_costs_at_equal_violation(run):
    _, _, found = run
    keys = {"knob", "executor_hours", "violation", "p99_latency_s", "worst_latency_s", "actions", "ratio_to_optimum"}
    for name in ("static", "reactive", "forecast", "true_future", "optimum"):
        assert all(keys <= set(point) for point in found["policies"][name])
        assert {name} <= set(found["cheapest_at_violation"]["0.01"])
    assert list(found["cheapest_at_violation"]) == ["0.001", "0.01", "0.05"]


def test_costs_are_in_the_order_that_knowledge_gives(run):
    costs = run[2]["cheapest_at_violation"]["0.01"]
    assert costs["bound"] <= costs["optimum"] <= costs["true_future"] * 1.02
    assert costs["optimum"] < costs["static"]


def test_the_ablation_hears_nothing_the_last_value_ours_and_the_future(run):
    assert set(run[2]["ablation"]["forecast"]["0.01"]) == {"no_forecast", "last_value", "ours", "true_future"}


def test_who_did_not_take_part_is_not_said_to_have_failed(run):
    found = run[2]
    assert "cheapest policy without a forecast is reactive" in verdict_sentence(found)
    alone = {name: points for name, points in found["policies"].items() if name != "reactive"}
    costs = {level: {n: c for n, c in by.items() if n in (*alone, "bound")}
             for level, by in found["cheapest_at_violation"].items()}  # fmt: skip
    said = verdict_sentence({**found, "policies": alone, "cheapest_at_violation": costs})
    assert said.startswith("No policy without a forecast took part")


def test_table_and_page_say_what_was_found(run):
    folder, output, _ = run
    assert "executor-hours" in output and "true_future" in output
    page = (folder / "toy.html").read_text()
    assert "What the forecast is worth" in page and "cost-0" in page


def of_job(run, tmp_path, job, *options, load="toy.csv"):
    """The figures of a small backtest of a fitted job, without the best plan, which takes longer than all else."""
    (tmp_path / "job.json").write_text(json.dumps(job))
    asked = ["--policies", "static", "--seeds", "1", "--knobs", "2", "--job", str(tmp_path / "job.json")]
    written = ["--processes", "1", "--json", str(tmp_path / "found.json")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(benchmark, "Effort", partial(Effort, oracle=False))
        done = CliRunner().invoke(app, ["backtest", str(run[0] / load), *asked, *options, *written])
    assert done.exit_code == 0, done.output
    return json.loads((tmp_path / "found.json").read_text())["data"]


def test_a_fitted_job_has_its_latency_target_or_the_given_one_and_its_median_start_up_as_lead_time(run, tmp_path):
    job = {**JOB, "startup_s": [5.0, 9.0], "latency_target_s": 6.0}
    own, given = of_job(run, tmp_path, job), of_job(run, tmp_path, job, "--target-s", "20")
    assert (own["lead_s"], own["latency_target_s"], given["latency_target_s"]) == (7, 6, 20)
    assert Setup(lead_s=own["lead_s"], job=TwinJob(0.5, 0.005, startup_s=(5.0, 9.0))).twin_job.startup_s == (5.0, 9.0)


def test_a_load_in_records_a_minute_is_seen_by_its_peak(run, tmp_path):
    header, *rows = (run[0] / "toy.csv").read_text().splitlines()
    by_minute = [f"{moment},{60 * float(value):.0f}" for moment, value in (row.split(",") for row in rows)]
    (run[0] / "minutes.csv").write_text("\n".join([header, *by_minute]) + "\n")
    own = of_job(run, tmp_path, JOB, "--as-is")
    assert own["executors"] == {"least": 1, "most": 10, "at_peak": 1}
    assert "1 to 10 of them, 1 carries the peak of 160 records/s" in describe_backtest(own)
    wrong = of_job(run, tmp_path, JOB, "--as-is", load="minutes.csv")
    assert "1 to 10 of them, not even 10 carry the peak of 9,600 records/s" in describe_backtest(wrong)
    for load in ("toy.csv", "minutes.csv"):
        scaled = describe_backtest(of_job(run, tmp_path, JOB, "--executors", "4", load=load))
        assert "4 carry the peak of 7" in scaled


def test_a_latency_target_of_nothing_is_refused():
    refused = CliRunner().invoke(app, ["backtest", "google", "--target-s", "0"])
    assert refused.exit_code == 2 and "--target-s" in refused.output


def test_an_unknown_policy_is_named():
    with pytest.raises(SettingsError, match="policy 'hpaa' is unknown"):
        CliRunner().invoke(app, ["backtest", "google", "--policies", "hpaa"], catch_exceptions=False)


def test_an_unknown_trace_is_named():
    with pytest.raises(SeriesError, match="'nowhere' is neither a file nor a shipped series"):
        read_load("nowhere")


def test_a_step_that_is_not_shipped_is_named():
    with pytest.raises(SeriesError, match=r"'google' is shipped in steps of .*5min.*, not of 7min"):
        read_load("google", "7min")


def test_local_times_are_read_in_the_zone_that_is_named(tmp_path):
    hours = [f"2023-10-29 {hour:02}:{minute:02},{10 + hour}" for hour in (1, 2, 2, 3) for minute in (0, 30)]
    (tmp_path / "back.csv").write_text("\n".join(["time,load", *hours]) + "\n")
    text = str(tmp_path / "back.csv")
    with pytest.raises(TraceError, match="name its zone in --timezone"):
        read_load(text)
    assert len(read_load(text, timezone="Europe/Berlin").series) == 8
    refused = CliRunner().invoke(app, ["backtest", text, "--timezone", "Europe/Berlin", "--lead-s", "3600"])
    assert isinstance(refused.exception, TwinError) and "8 steps" in str(refused.exception)


def test_the_map_has_every_shipped_load_and_rescaled_ones_with_their_range_restored():
    names = list_map_loads()
    assert len(names) == len(set(names)) >= 10
    assert "nyc_taxi 30min" in names and "google 5min" in names and "google 5min restored" in names
    google, restored = read_load("google").series.values, read_load("google restored").series.values
    assert np.nanmin(restored) == pytest.approx(0.05 * np.nanmin(google))


def test_a_fitted_job_is_read_with_or_without_its_fit(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(JOB))
    (tmp_path / "b.json").write_text(json.dumps({"job": JOB, "unsure": {}}))
    assert read_job(tmp_path / "a.json") == read_job(tmp_path / "b.json")
    assert read_job(tmp_path / "a.json").startup_s == (5.0, 6.0, 7.0)
    assert read_job(tmp_path / "a.json").warmup == 0  # a file of before there was one
    (tmp_path / "a.json").write_text(json.dumps({**JOB, "warmup": 0.9, "warmup_batches": 12.0}))
    assert read_job(tmp_path / "a.json").warmup == 0.9


def test_few_hours_are_told_apart():
    assert [format_hours(cost) for cost in (None, 0.4066, 0.4103, 9.876, 12.34, 4321.0)] == [
        "–", "0.407", "0.41", "9.88", "12.3", "4,321.0",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, said",
    [
        (json.dumps({**JOB, "per_record_s": None}), "per_record_s missing: the fit is unfinished"),
        (json.dumps({**JOB, "startup": 3}), "'startup' is no field of a job"),
        (json.dumps({**JOB, "per_record_s": -1.0}), "per_record_s=-1.0"),
        (json.dumps({**JOB, "warmup_batches": 0}), "warmup_batches=0"),
        (json.dumps({**JOB, "tasks": 0}), "tasks=0: a whole number of at least 1"),
        (json.dumps({**JOB, "most": 10.5}), "most=10.5: a whole number"),
        ("{", "no job can be read"),
    ],
)
def test_an_unfinished_fit_is_named(tmp_path, text, said):
    (tmp_path / "job.json").write_text(text)
    with pytest.raises(TwinError, match=said):
        read_job(tmp_path / "job.json")
