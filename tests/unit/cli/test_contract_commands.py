"""`tidecast contract`: what is wrong is told with its line; what is proposed, what a change costs, what replays."""

import json
import math
import re

import pytest
from typer.testing import CliRunner

from configs.errors import SettingsError
from models.contract.state import begin
from models.contract.trace import header, trace_line
from models.policy.replays.control import decide_rate
from models.twin.contract import proposed
from pipelines.advise import observed
from pipelines.bench import controller
from pipelines.cli.app import app
from pipelines.figures.goals import goals_of
from tests.fakes.shared_job import EAGER, run_queue, shared_plan, shared_terms
from tests.unit.advise.test_measured_job import NO_ACTION
from tests.unit.advise.test_observed_job import RAISES, rows

READ = "pipelines.advise.read.read_messages"
TERMS = shared_terms(lag={"max_ms": 900}, weights=EAGER)
LINES = [
    header(TERMS, shared_plan(), begin(TERMS, shared_plan(), 1e9)),
    *(trace_line(one.line) for one in run_queue(TERMS, [600.0, 650.5, 700.5] * 4)),
]


def run(*words):
    return CliRunner().invoke(app, ["contract", *map(str, words)])


def written(folder, lines, name="a.jsonl"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_trace_replays(tmp_path):
    ran = run("replay", written(tmp_path, LINES))
    assert ran.exit_code == 0 and "12 intervals, each control as logged" in ran.output


def test_the_first_difference_is_told_with_its_line(tmp_path):
    lines = [json.loads(line) for line in LINES]
    at = next(n for n, line in enumerate(lines) if n and line["controls"]["replay_rps"] > 0)
    right = lines[at]["controls"]["replay_rps"]
    lines[at]["controls"]["replay_rps"] = math.nextafter(right, math.inf)
    lines[9]["reason"] = "other"
    path = written(tmp_path, map(json.dumps, lines))
    ran = run("replay", path)
    assert ran.exit_code == 1
    assert (
        f"line {at + 1}: controls.replay_rps is logged as {math.nextafter(right, math.inf)!r}, computed as {right!r}"
        in (ran.output)
    )
    assert "line 10: reason is logged as 'other'" in run("replay", path, "--tolerance", "1e-9").output


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: [*lines[:3], "{"], "line 4: not JSON.*may be deleted"),
        (lambda lines: lines[1:], "line 1: controller=None, this is 7. Use the release"),
        (lambda lines: [lines[0], ""], "line 2: not JSON"),
        (lambda lines: [lines[0], '{"y": {"time_s": 1e30}}'], "line 2: time_s=1e[+]30.*not as this code writes"),
        (lambda lines: ["[" * 100_000], "line 1: not JSON"),
        (lambda lines: [lines[0].replace('"max_ms":900.0', '"max_ms":901.0')], "line 1: hash=.*It was edited"),
    ],
)  # fmt: skip
def test_a_bad_trace_is_refused_with_line_and_remedy(tmp_path, change, told):
    ran = run("replay", written(tmp_path, change(LINES)))
    assert ran.exit_code == 1 and re.search(told, str(ran.exception)), ran.exception


def test_files_that_are_none_are_refused(tmp_path):
    (tmp_path / "b").write_bytes(b"\xff\xfe")
    assert "no text" in str(run("replay", tmp_path / "b").exception)
    assert "cannot be read" in str(run("replay", tmp_path / "none").exception)
    (tmp_path / "empty").touch()
    assert "line 1: missing" in str(run("replay", tmp_path / "empty").exception)


def test_what_follows_from_the_short_form_is_printed():
    shown = run("check", "word_count").output
    for said in (
        "contract 7d3bf29a00895c39", "95.0000% of the seconds", "96.6667% of the records within 9867 ms",
        "replay: 0 to 300 records/s", "6 records are shed: never", "executors are asked for, 6 at most",
        "times of backfills in the zone of the setting replay.timezone",
    ):  # fmt: skip
        assert said in shown


def test_what_is_stated_is_printed(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(
        "job: a\ntimezone: Asia/Tokyo\n"
        "backpressure:\n  controls: {live_rps: {max: 90}}\n  shed: {allowed: true, max_fraction: 0.2}\n"
        "  error: {hll: {eps_rel: 0.01, pf: 0.05}}\n  recall: {near: {min: 0.9}}\n  memory: {max_bytes: 10}\n"
        "  util_max: {disk: 0.6}\n  priorities: {maintenance: 40}\n  fairness: {policy: log}\n"
        "  lag: {max_ms: 5000, drift_max: 0.5}\n  seed: 7\n"
    )
    shown = run("check", path).output
    for said in (
        "times of backfills in Asia/Tokyo\n",
        "hll go to their error",
        "to 90 records/s",
        "at most 20.00%",
        "recall of near at least 0.9",
        "memory 10",
        "network 0.7, disk 0.6 (checked only",
        "watermark at most 5000 ms behind, growing by at most 0.5 ms/s (checked only",
    ):
        assert said in shown
    unmeasured = [line for line in shown.splitlines() if "(checked only: nothing measures it" in line]
    named = ("busy at most", "watermark at most", "memory 10 bytes", "recall of near")
    assert len(unmeasured) == len(named) and all(any(name in line for line in unmeasured) for name in named)
    undone = re.findall(r"^ *(.+) \(not of a running job", shown, re.MULTILINE)
    assert undone[:3] == [
        "priorities: live 100, maintenance 40, replay 10",
        "shares of tenants: log",
        "seed of sampling: 7",
    ]
    assert [line.split()[0] for line in undone[3:]] == ["6"], "of the ladder's steps"
    assert [line.split()[0] for line in shown.splitlines() if "(passed over" in line] == ["2", "3"]


@pytest.mark.parametrize(
    ("section", "told"),
    [
        (
            "  controls:\n    replay_rps:\n      min: 1.0e+9",
            r"a.yaml, line 5: backpressure.controls.replay_rps.min=1e\+09",
        ),
        ("  paths:\n    - {}\n    - {}", "a.yaml, line 3: backpressure.paths: .* is limited twice. Keep the stricter"),
        ("  seed: -1", "a.yaml, line 3: backpressure.seed=-1"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, section, told):
    path = tmp_path / "a.yaml"
    path.write_text(f"job: a\nbackpressure:\n{section}\n")
    with pytest.raises(Exception, match=told):
        raise run("check", path).exception


def test_keys_that_the_set_policy_does_not_keep_to_are_told(tmp_path, monkeypatch):
    path = tmp_path / "a.yaml"
    stated = "  lead_s: 20\n  target_utilisation: 0.6\n  quantile: 0.9\n  cooldown_s: 1\n  max_step_down: 2\n"
    path.write_text(f"job: a\nplanning:\n{stated}")

    def told(policy):
        monkeypatch.setenv("TIDECAST_AUTOSCALER__POLICY", policy)
        return [line for line in run("check", path).output.splitlines() if line.startswith("planning.")]

    assert told("mpc") == [
        "planning.quantile (line 5): not kept by the policy mpc, but by forecast",
        "planning.target_utilisation (line 4): not kept by the policy mpc, but by schedule, reactive, forecast",
        "planning.max_step_down (line 7): not kept by the policy mpc, but by reactive, forecast",
    ]
    assert told("reactive") == ["planning.quantile (line 5): not kept by the policy reactive, but by forecast"]
    assert told("forecast") == []
    path.write_text("job: a\n")
    assert told("mpc") == []


def test_a_file_that_is_no_contract_is_refused(tmp_path):
    assert "no contract's file" in str(run("check", tmp_path / "none.yaml").exception)
    assert "has no contract at" in str(run("check", "nowhere").exception)


def test_who_has_no_contract_yet_is_told_where_a_first_one_stands(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    assert str(run("check", "orders").exception).endswith("orders.yaml. docs/attach.md shows a first one.")
    (tmp_path / "trips.yaml").write_text("job: trips\n")
    assert str(run("check", "orders").exception).endswith("Known contracts: trips. Copy one and edit it.")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A team's contracts: one is right, one wrong in two lines, one wrong in its terms, one called as nothing reads."""
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    (tmp_path / "orders.yaml").write_text("job: orders\n")
    (tmp_path / "rides.yaml").write_text("job: rides\nlatency: 3\nexecutors:\n  max: 0\n")
    (tmp_path / "trips.yaml").write_text("job: trips\nbackpressure:\n  paths:\n    - {}\n    - {}\n")
    return tmp_path


def test_all_problems_of_all_contracts_are_told_line_by_line(folder):
    (folder / "late.yml").write_text("job: late\n")
    ran = run("check", "--all")
    *problems, last = ran.output.splitlines()
    assert ran.exit_code == 1 and last == "4 contracts, 4 problems" and len(problems) == 4
    assert "late.yml: no contract's file" in problems[0]
    assert problems[1].startswith("rides.yaml, line 2: latency=3: no such key")
    assert problems[2].startswith("rides.yaml, line 4: executors.max=0")
    assert problems[3].startswith("trips.yaml, line 3: backpressure.paths: ")


def test_several_contracts_that_are_right_are_status_0(folder):
    ran = run("check", "orders", folder / "orders.yaml")
    assert ran.exit_code == 0 and ran.output == "2 contracts, no problems\n"
    for file in folder.glob("*.yaml"):
        if file.stem != "orders":
            file.unlink()
    assert run("check", "--all").output == "1 contract, no problems\n"
    ran = run("check", "orders", "nowhere", "a/b")
    assert ran.exit_code == 1 and "3 contracts, 2 problems" in ran.output and "no contract at" in ran.output


def test_nothing_to_check_is_trouble(folder, monkeypatch):
    assert "Which contracts?" in str(run("check").exception)
    assert "Which contracts?" in str(run("check", "orders", "--all").exception)
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(folder / "none"))
    assert "no contract in it" in str(run("check", "--all").exception)


@pytest.fixture
def lake(monkeypatch):
    """What the lake holds of a job, in the place of its tables."""
    monkeypatch.setattr(READ, lambda settings, job: (rows(), NO_ACTION))


def once(call):
    """What the first call of it returns, at each."""
    found = []

    def called(*args, **more):
        if not found:
            found.append(call(*args, **more))
        return found[0]

    return called


def test_a_contract_is_proposed_and_written_where_there_is_none(folder, monkeypatch):
    monkeypatch.setattr(READ, lambda settings, job: (rows(), RAISES))
    monkeypatch.setattr(observed, "observe_job", once(observed.observe_job))  # either takes seconds
    monkeypatch.setattr(proposed, "propose_contract", once(proposed.propose_contract))
    shown = run("init", "fares", "--price", "0.5")
    assert shown.exit_code == 0 and "price_per_executor_hour: 0.5 # as given" in shown.stdout
    assert shown.stderr.startswith("2.5 s with 1 to 2 executors: ") and not (folder / "fares.yaml").exists()
    assert run("init", "fares", "--price", "0.5", "--write").exit_code == 0
    assert (folder / "fares.yaml").read_text() == shown.stdout
    assert run("check", "fares").exit_code == 0
    refused = run("init", "orders", "--write")
    assert "has a contract already" in str(refused.exception)
    assert (folder / "orders.yaml").read_text() == "job: orders\n"


def test_a_diff_has_the_status_of_diff(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(READ, lambda settings, job: (rows(seconds=1200), NO_ACTION))
    earlier = tmp_path / "before"
    earlier.write_text("job: orders  # as it is\nlatency_target_s: 5\n")
    same = run("diff", "orders", "--against", earlier)
    assert same.exit_code == 0 and "no term differs" in same.output
    earlier.write_text("job: orders\nlatency_target_s: 2\nexecutors: {max: 6}\n")
    terms = run("diff", "orders", "--against", earlier, "--terms-only")
    assert terms.exit_code == 1 and "orders: 2 terms differ" in terms.output and "twin" not in terms.output
    alerts = tmp_path / "alerts"
    alerts.write_text("job: orders\nalerts: {webhook: 'https://hooks.example/T0PSECRET', repeat_s: 60}\n")
    told = run("diff", "orders", "--against", alerts, "--terms-only")
    assert told.exit_code == 1 and "alerts.webhook: an address → none\n  alerts.repeat_s: 60 → none" in told.output
    assert "T0PSECRET" not in told.output
    full = run("diff", folder / "orders.yaml", "--against", earlier)
    assert full.exit_code == 1 and full.stdout.startswith(terms.stdout)
    assert "in the same 6 futures for both" in full.stdout and "executor-hours a day" in full.stdout
    assert "executors.max: 6 → 4" in full.stdout


def test_configurations_are_tried_where_there_is_a_choice_and_load_enough(folder, lake):
    assert "fewer than two configurations" in str(run("try", "orders").exception)
    stated = "backpressure: {interval_s: 1}\nconfigurations:\n  usual: {}\n"
    (folder / "orders.yaml").write_text(f"job: orders\n{stated}  lazy: {{trigger: 20 seconds}}\n")
    tried = run("try", "orders")
    assert tried.exit_code == 0 and "2 configurations by its twin" in tried.stdout, tried.exception
    usual, lazy = tried.stdout.splitlines()[2:]
    assert usual.startswith("  usual  cost J") and lazy.endswith("in the end in 0 futures")
    assert "simulating" in tried.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("job: rides\n", "a contract of 'orders' is compared"),
        ("", "an empty file is not a mapping"),
        (None, "before: cannot be"),
    ],
)
def test_a_diff_against_what_is_no_contract_of_the_job_is_trouble(folder, text, told):
    earlier = folder / "before"
    if text is not None:
        earlier.write_text(text)
    for ran in (run("diff", "orders", "--against", earlier), run("diff", "rides", "--against", earlier)):
        assert isinstance(ran.exception, SettingsError)
    assert told in str(run("diff", "orders", "--against", earlier).exception)


def test_an_interval_is_timed_for_every_plan_and_a_running_jobs_evaluation_beside_a_replay(monkeypatch):
    decided = []

    def decide(*args, **more):
        made = decide_rate(*args, **more)
        decided.append(made)
        return made

    monkeypatch.setattr(controller, "decide_rate", decide)
    found = controller.measure_decisions(100)
    assert [row["operators"] for row in found["plans"]] == [1, 3, 10] and found["largest"] == found["plans"][-1]
    assert all(0 < row["p50_ms"] <= row["p99_ms"] <= row["most_ms"] for row in (*found["plans"], found["evaluation"]))
    assert found["evaluation"]["decisions"] == 100 and len(decided) == 100 + controller.WARM
    assert 0 < found["evaluation"]["core"] < found["evaluation"]["most_ms"] / 1000  # one a second
    intervals = {rate.inputs["state"]["interval"] for _, rate in decided}
    assert intervals == {*range(16)}  # each ten seconds
    assert all(rate.rps > 0 for _, rate in decided)  # beside a replay that reads
    assert len({kept.sustained[0] for kept, _ in decided}) > 1  # and terms that are derived again
    told = goals_of("tidecast bench controller").fill_rows(found)[:6]
    assert all(row.measured is not None for row in told)
    assert {row.goal for row in told if "decide_rate" in row.what} == {"< 2", "< 0.03", None}
