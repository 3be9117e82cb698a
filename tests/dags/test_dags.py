"""The DAG files: they parse, lightly, and keep the team's rules."""

from __future__ import annotations

import json
import re

import pytest

from configs.sections import AgentTraining, Training
from configs.settings import ROOT

OVERLAY = "docker/kubernetes/example"
HEAVY = {"torch", "pyspark", "mlflow", "great_expectations", "kafka", "pandas", "numpy", "sklearn"}
DAGS = (
    "approve_champion",
    "backfill",
    "backtest_policies",
    "ingest_metrics",
    "maintain_lake",
    "plan_placement",
    "retrain_agent",
    "retrain_forecaster",
    "serve_forecasts",
)


@pytest.fixture
def parsed(found):
    return found["parsed"]


def test_every_dag_file_parses(parsed):
    assert parsed["errors"] == {}
    assert tuple(sorted(parsed["dags"])) == DAGS


def test_parsing_is_light(parsed):
    print("seconds per DAG file:", parsed["seconds"])
    assert not HEAVY & set(parsed["loaded"])


@pytest.mark.parametrize("name", DAGS)
def test_every_dag_keeps_the_teams_rules(parsed, name):
    dag = parsed["dags"][name]
    assert "tidecast" in dag["tags"] and len(dag["tags"]) > 1
    assert len(dag["doc"]) > 100
    assert dag["owner"] == "tidecast"
    # Others go on while a job or topology waits for an answer; who has asked for an approval switches nothing else on.
    most = {"backfill": 16, "plan_placement": 16, "approve_champion": 1000}.get(name, 1)
    assert (dag["paused"], dag["max_active_runs"], dag["catchup"]) == (name != "approve_champion", most, False)
    assert all(description for description in dag["params"].values())


def test_tasks_are_retried_except_the_one_that_begins_anew_by_itself(parsed):
    retries = {task: n for dag in parsed["dags"].values() for task, n in dag["retries"].items()}
    assert retries == {
        "ingest": 2,
        "name_troubles": 2,
        "enough": 2,
        "one_job.train": 2,
        "one_job.judge": 2,
        "one_job.won": 2,
        "one_job.ask": 2,
        "serve": 0,
    } | {
        "name_troubles": 2,
        "maintain": 2,
        "trim_models": 2,
        "replayable": 2,
        "replay": 2,
        "learnable": 2,
        "one_agent.train": 2,
        "one_agent.judge": 2,
        "plan": 2,
        "dear": 2,
        "approve": 2,
        "promote": 2,
        "order": 2,
        "follow": 2,
        "end": 2,
        "begun": 2,
        "each": 2,
        "learn": 2,
        "propose": 2,
        "differs": 2,
        "apply": 2,
    }


def test_airflow_shows_a_mapped_task_by_its_job(found):
    labels = found["lineage"]["labels"]
    assert {labels["one_job.train"], labels["one_job.judge"]} == {"orders"}


def test_a_backfill_is_ordered_after_its_approval_alone_and_runs_only_by_hand(parsed):
    dag = parsed["dags"]["backfill"]
    assert dag["after"] == {
        "plan": [], "dear": ["plan"], "approve": ["dear"], "order": ["approve", "plan"], "follow": ["order"],
        "end": ["follow", "order"],
    }  # fmt: skip
    asked = {"job", "begin", "end", "topic", "table", "late_s", "compare", "by", "sure", "most_hours", "weight"}
    assert dag["first_run"] is None and {*dag["params"]} == asked
    assert not {"begin", "end"} & set(dag["filled"])  # nobody counts a range by mistake that a form had ready


@pytest.mark.parametrize(
    "moment", ["after the order died", "for a slot", "for a new try", "as it runs", "set to success"]
)
def test_a_run_that_a_person_ends_cancels_its_order_also_where_nobody_follows_it_yet(found, moment):
    assert found["ended"][moment] == {"due": ["end"], "cancelled": ["fix"], "run": "failed"}


@pytest.mark.parametrize(
    ("moment", "run"),
    [("for an approval", "failed"), ("by itself", "failed"), ("rejected", "success"), ("well", "success")],
)
def test_a_run_that_has_not_ordered_or_came_to_its_end_cancels_nothing(found, moment, run):
    assert found["ended"][moment] == {"due": ["end"], "cancelled": [], "run": run}


def test_queries_are_moved_after_an_approval_alone(parsed):
    assert parsed["dags"]["plan_placement"]["after"] == {
        "begun": [], "each": ["begun"], "plan": [], "learn": ["plan"], "propose": ["learn", "plan"],
        "differs": ["propose"], "approve": ["differs"], "apply": ["approve", "propose"],
    }  # fmt: skip
    assert parsed["dags"]["plan_placement"]["at_most"] == {"apply": 1, "learn": 1}
    assert parsed["dags"]["backfill"]["waits"] == {"approve": [12 * 3600, ["Reject"]]}  # nobody's answer is no leave
    assert parsed["dags"]["plan_placement"]["waits"] == {"approve": [12 * 3600, ["Reject"]]}  # before the next morning


def test_a_morning_without_a_topology_is_skipped_with_how_to_add_one_and_a_broken_one_fails(found):
    unplanned = found["unplanned"]
    became, said = unplanned["none"]
    assert became == "skipped" and unplanned["folder"] in said and "NAME.yaml" in said and "placement.md" in said
    became, said = unplanned["none begun"]
    assert became == "skipped" and unplanned["folder"] in said and "`tidecast job up NAME`" in said
    became, said = unplanned["broken"]
    assert became == "failed" and said.startswith("broken.yaml")


def test_each_morning_all_jobs_that_were_begun_are_planned_in_runs_of_their_own(found):
    """One that fails, or waits for an answer, is then another run; of a third topology no job was begun."""
    morning = found["unplanned"]["a morning"]
    skipped = ("plan", "learn", "propose", "differs", "approve", "apply")
    ends = {"begun": ["success"], "each": ["success"] * 2, **{task: ["skipped"] for task in skipped}}
    assert (morning["run"], morning["ends"], morning["labels"]) == ("success", ends, ["clicks", "orders"])
    form = {"load": None, "network": "shadow", "env": "twin"}
    assert morning["runs"] == [[f"plan_{job}_ID", {"topology": job, **form}] for job in ("clicks", "orders")]
    assert found["unplanned"]["by name"] == ["done", []], "a run of one topology starts no other"


def test_followed_backfills_leave_places_for_an_ingest_and_a_training(parsed):
    most = parsed["dags"]["backfill"]["at_most"]
    assert most["order"] == 1
    files = (
        "pipelines/stack/services/airflow.py",
        "docker/compose.yaml",
        "docker/kubernetes/example/kustomization.yaml",
    )
    for file in files:
        (places,) = re.findall(r"CORE__PARALLELISM\W+(\d+)", (ROOT / file).read_text())
        assert int(places) - 1 - most["follow"] >= 2, f"{file}: serving has one for good"


def test_a_form_takes_no_number_that_the_settings_refuse(parsed):
    for dag, section in (("retrain_agent", AgentTraining), ("retrain_forecaster", Training)):
        for name, schema in parsed["dags"][dag]["schemas"].items():
            if "minimum" in schema:
                section(**{name: schema["minimum"]})
    least = {name: schema.get("minimum") for name, schema in parsed["dags"]["retrain_agent"]["schemas"].items()}
    assert least == {"job": None, "transitions": 800, "fine_transitions": 300, "seed": 0}


def test_without_a_contract_the_dag_files_parse(found):
    nobody = found["nobody"]
    assert nobody["errors"] == {} and nobody["dags"]["backfill"]["schemas"]["job"]["enum"] == [""]


@pytest.mark.parametrize(
    "name", [name for name in DAGS if name not in ("serve_forecasts", "backfill", "approve_champion")]
)
def test_unpausing_starts_no_run_at_once(found, name):
    """A run of the schedule's own would compete with the one that is asked for, and train twice."""
    assert found["parsed"]["dags"][name]["first_run"] > found["began"] - 60


def test_an_ingest_by_hand_takes_nothing_from_the_hourly_one_and_a_repeat_starts_no_training(found):
    *new, hour_again, repeat, retried = found["ingests"]["runs"]  # by hand twice, hourly, by another DAG, by an asset
    assert [run["offsets"] for run in new] == [[0, 10], [10, 20], [20, 30], [30, 40], [40, 50]]
    assert all(run["told"] == ["tidecast.metrics"] for run in new)
    assert (repeat["offsets"], repeat["told"]) == (hour_again["offsets"], hour_again["told"]) == ([20, 30], [])
    # What a try committed before it failed is new; of a run that is cleared after its end it is reported once more.
    assert (retried["offsets"], retried["told"]) == ([20, 30], ["tidecast.metrics"])


def test_one_ingest_goes_on_at_a_time_also_where_a_backfill_has_many_runs_at_once(parsed):
    assert parsed["dags"]["ingest_metrics"]["at_most"] == {"ingest": 1}


def test_an_ingest_asks_for_the_newest_drifts_of_its_jobs_and_not_for_all_there_ever_were(found):
    drifts = found["ingests"]["drifts"]
    assert drifts["newest"] == 99_999 and 0 < drifts["many"] == 50 * drifts["jobs"]


def test_assets_of_a_neighbour_and_of_an_earlier_release_keep_none_of_ours_from_being_active(found):
    """An ingest begins only where the asset that it reads is active, and of each name and address only one is."""
    beside = found["neighbours"]
    assert beside["theirs"] == ["drift", "metrics"]
    assert beside["with ours"] == ["drift", "metrics", "tidecast.drift", "tidecast.metrics"]


def test_a_topic_in_trouble_fails_the_ingest_behind_the_events_of_the_others(found):
    assert found["parsed"]["dags"]["ingest_metrics"]["after"]["name_troubles"] == ["ingest"]
    assert found["ingests"]["troubled"] == ["", "outcomes: offsets 1 to 2 were deleted"]


@pytest.mark.parametrize(("task", "run"), [("one_job.train", "f1"), ("one_agent.train", "a1")])
def test_trainings_of_a_run_have_a_bound_on_time_and_a_place_each(found, task, run):
    asked = found["trainings"][task]
    assert asked["early"] == {"job": "orders", "run_id": run}
    late = "this run began 70 s ago and begins no training after 60 s (retraining.begin_s)"
    assert asked["late"].startswith(f"AirflowSkipException: {late}") and asked["cleared, late"] == asked["late"]
    assert asked["again"] == asked["early"]
    assert asked["again, late"].startswith(f"FinalError: an earlier try of this training failed, and {late}")
    assert (asked["at once"], asked["longest_s"]) == (3, 600)
    assert (asked["too long"], asked["an outage"]) == ("fail", "default")  # as long again is no remedy


def test_a_load_that_has_drifted_is_trained_on_first(found):
    assert found["trainings"]["drifted"] == ["orders"]


def test_where_a_person_is_asked_the_training_goes_on_and_nothing_is_promoted_before_the_answer(found):
    training, asking = (found["asking"]["dags"][name] for name in ("retrain_forecaster", "approve_champion"))
    assert training["after"]["one_job.ask"] == ["one_job.judge", "one_job.won"]
    assert training["after"]["one_job.won"] == ["one_job.judge"]
    assert asking["after"] == {"approve": [], "promote": ["approve"]}
    assert asking["waits"] == {"approve": [60, ["Approve"]]}  # silence is consent: the gate has judged
    assert found["parsed"]["dags"]["approve_champion"]["waits"] == {"approve": [1, ["Approve"]]}, "nobody is asked"


def test_whether_a_person_is_asked_is_for_the_worker_to_say_whatever_settings_made_the_graph(found):
    """A winner that is left to a task which another computer's settings leave out would never serve."""
    graphs = [found[by]["dags"]["retrain_forecaster"]["after"] for by in ("parsed", "asking")]
    assert graphs[0] == graphs[1]
    asked = found["trainings"]["asked"]
    assert asked == {"promoted by judge": False, "of a winner": "passed", "of a loser": "skipped: worse"}
    ends = found["lineage"]["ends"]  # of a run where nobody is asked
    assert [ends[f"one_job.{task}"] for task in ("judge", "won", "ask")] == ["success", "skipped", "skipped"]
    assert found["lineage"]["states"]["retrain_forecaster"] == "success"


def test_an_answer_is_heeded_and_a_no_written_down_with_its_author(found):
    assert found["trainings"]["answers"] == {
        "approved": {"job": "orders", "promoted": True, "reason": "better"},
        "by silence": {"job": "orders", "promoted": True, "reason": "better"},
        "set to success": {"job": "orders", "promoted": True, "reason": "better"},
        "too late": "another serves",
        "rejected": "rejected by ann",
        "rejected by nobody known": "rejected by a person",
    }


def test_what_follows_a_task_that_a_person_sets_to_success_is_skipped_and_says_which(found):
    """Such a task has no result; what takes a person's answer, and what ends a backfill, do without it."""
    needs = {
        "backfill.dear": "plan", "backfill.order": "plan", "backfill.follow": "order",
        "ingest_metrics.name_troubles": "ingest", "plan_placement.propose": "plan", "plan_placement.differs": "propose",
        "plan_placement.apply": "propose", "retrain_agent.one_agent.judge": "train",
        "retrain_forecaster.one_job.judge": "train", "retrain_forecaster.one_job.won": "judge",
    }  # fmt: skip
    said = {task: told.partition(" has no result")[0] for task, told in found["unreturned"].items()}
    assert said == {task: f"task {before}" for task, before in needs.items()}


def test_a_load_too_short_is_left_out_of_the_backtests_and_a_fit_that_cannot_be_read_fails_its_own(found):
    replays = ["AirflowSkipException: ten steps", "TwinError: orders.json: no job can be read"]
    assert found["trainings"]["replays"] == replays


def test_the_console_asks_airflow_for_the_login_and_the_role(found):
    answers = found["console"]["answers"]
    assert [one for one in answers if one["status"] != one["wanted"]] == []
    by_who = {(one["who"], one["asked"].partition("/")[2].endswith("mode")): one["status"] for one in answers}
    assert {by_who[who, False] for who in ("viewer", "user", "by cookie")} == {200}
    changing = [by_who[who, True] for who in ("nobody", "no role", "viewer", "user")]
    assert changing == [401, 403, 403, 404]  # there is no broker that could know the job


def test_the_console_is_in_airflows_menu_and_says_that_there_is_no_broker(found):
    (view,) = found["console"]["views"]
    assert (view["name"], view["href"], view["destination"]) == ("Tidecast", "tidecast/", "nav")
    assert found["console"]["errors"] == {"import_errors": [], "total_entries": 0}
    assert found["console"]["loaded before a request"] == []
    assert "topics" in found["console"]["problem"]


def test_where_airflow_asks_for_no_login_pages_of_others_reach_nothing_of_it(found):
    assert found["console"]["elsewhere"] == [403, 403, 404]  # the last is asked of a page of its own


def test_the_console_reads_drifts_and_plans_from_airflows_database(found):
    newest, before = found["console"]["drifts"]
    assert (newest["name"], newest["extra"]["factor"], before["extra"]["factor"]) == ("tidecast.drift", 1.5, 1.3)
    assert newest["timestamp"] > before["timestamp"]
    assert found["console"]["advice"] == {}, "no plan was ever made here"


def test_changes_of_a_mode_are_in_airflows_audit_log(found):
    failed, made = sorted(found["console"]["log"], key=lambda entry: "failed" not in entry["event"])
    assert (made["event"], failed["event"]) == ("tidecast_mode", "tidecast_mode_failed")
    assert made["owner"] == "ann"
    assert json.loads(made["extra"]) == {"job": "orders", "before": "act", "after": "freeze", "by": "ann"}
    assert json.loads(failed["extra"])["failed"] == "no broker"
