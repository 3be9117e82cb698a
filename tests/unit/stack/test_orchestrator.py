from typing import Any

import httpx
import pytest

from configs.settings import load
from pipelines.airflow import rest as orchestrator
from pipelines.airflow.rest import Orchestrator, OrchestratorError
from pipelines.airflow.standing import STANDING, switch_on_standing
from tests.fakes.clock import clock_with

URL = "http://127.0.0.1:1"


class FakeAirflow:
    """Answers by method and path; a list of answers is used up one by one, its last for good."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = {"GET /auth/token": {"access_token": "t1"}, **answers}
        self.calls: list[tuple[str, Any]] = []

    def __call__(self, method, url, json, **more):
        name = f"{method} {url.removeprefix(URL).removeprefix('/api/v2')}"
        self.calls.append((name, json))
        answer = self.answers[name]
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, str):
            return httpx.Response(200, html=answer)
        if isinstance(answer, int):
            return httpx.Response(answer, text="told why")
        return httpx.Response(200, json=answer)


@pytest.fixture
def airflow(monkeypatch):
    def install(answers: dict[str, Any], **login: Any) -> tuple[Orchestrator, FakeAirflow]:
        fake = FakeAirflow(answers)
        monkeypatch.setattr(orchestrator.httpx, "request", fake)
        monkeypatch.setattr(orchestrator, "time", clock_with(sleep=lambda seconds: None))
        return Orchestrator(load(airflow={"url": URL, **login})), fake

    return install


def run(state: str, **more: Any) -> dict[str, Any]:
    return {"dag_run_id": "r1", "state": state, "triggered_by": "rest_api", "queued_at": "2026-01-01T00:00:10Z", **more}


def test_no_address_says_how_to_get_one():
    with pytest.raises(OrchestratorError, match=r"make up.*TIDECAST_AIRFLOW__URL"):
        Orchestrator(load())


def test_trigger_passes_the_form(airflow):
    dags, fake = airflow({"POST /dags/ingest/dagRuns": run("queued")})
    assert dags.trigger("ingest", {"partition": "2014-10-01T00"}) == "r1"
    assert fake.calls[-1][1] == {"logical_date": None, "conf": {"partition": "2014-10-01T00"}}


def test_wait_run_follows_to_success(airflow):
    dags, fake = airflow({"GET /dags/d/dagRuns/r1": [run("queued"), run("running"), run("success")]})
    dags.wait_run("d", "r1")
    assert [name for name, _ in fake.calls].count("GET /dags/d/dagRuns/r1") == 3


def test_failed_run_shows_the_failed_tasks_last_log_lines(airflow):
    lines = [{"event": f"line {i}"} for i in range(100)]
    fault = {"event": "Task failed", "error_detail": [{"exc_type": "ValueError", "exc_value": "the lake is dry"}]}
    dags, _ = airflow(
        {
            "GET /dags/d/dagRuns/r1": run("failed"),
            "GET /dags/d/dagRuns/r1/taskInstances": {
                "task_instances": [
                    {"task_id": "good", "state": "success", "try_number": 1, "map_index": -1},
                    {"task_id": "bad", "state": "failed", "try_number": 2, "map_index": -1},
                ]
            },
            "GET /dags/d/dagRuns/r1/taskInstances/bad/logs/2": {"content": [*lines, fault]},
        }
    )
    with pytest.raises(OrchestratorError) as error:
        dags.wait_run("d", "r1")
    text = str(error.value)
    assert "task bad" in text and "ValueError: the lake is dry" in text and "line 99" in text
    assert "line 5\n" not in text and "good" not in text


def test_run_that_does_not_end_names_its_tasks(airflow):
    tasks = {"task_instances": [{"task_id": "slow", "state": "running"}, {"task_id": "next", "state": None}]}
    dags, _ = airflow({"GET /dags/d/dagRuns/r1": run("running"), "GET /dags/d/dagRuns/r1/taskInstances": tasks})
    with pytest.raises(OrchestratorError, match=r"is running after 0 s(.|\n)*slow running, next not started"):
        dags.wait_run("d", "r1", timeout_s=0)


def test_the_run_that_the_newest_asset_event_caused_is_waited_for(airflow):
    """Another run of the same DAG may begin meanwhile; while the caused one is queued Airflow cannot tell of it."""
    others = [{"dag_id": "e", "run_id": "another DAG's"}, {"dag_id": "d", "run_id": "mine"}]
    fresh, consumed = ({"asset_events": [{"created_dagruns": created}]} for created in ([], others))
    answers = {"GET /assets/events": [fresh, 500, consumed], "GET /dags/d/dagRuns/mine": run("success")}
    dags, fake = airflow(answers)
    assert dags.wait_caused_run("d", by="ingest") == "mine"
    assert [name for name, _ in fake.calls].count("GET /assets/events") == 3


def test_an_asset_that_causes_no_run_is_named(airflow):
    dags, _ = airflow({"GET /assets/events": [{"asset_events": []}, 403]})
    with pytest.raises(OrchestratorError, match="no run of DAG d was started by an asset of DAG ingest within 0 s"):
        dags.wait_caused_run("d", by="ingest", start_within_s=0)
    with pytest.raises(OrchestratorError, match="403"):
        dags.wait_caused_run("d", by="ingest", start_within_s=0)


def test_a_refusal_that_lasts_is_passed_on(airflow):
    dags, _ = airflow({"GET /assets/events": 500})
    with pytest.raises(OrchestratorError, match=r"no run of DAG d .*assets/events: 500 told why.*dags/d"):
        dags.wait_caused_run("d", by="ingest", start_within_s=0)


def test_missing_dag_shows_import_errors(airflow):
    told = {"import_errors": [{"filename": "ours/b.py", "stack_trace": "NameError: name 'dagg' is not defined"}]}
    none = {"import_errors": []}
    dags, _ = airflow({"GET /dags/a": [404, {"dag_id": "a"}], "GET /dags/b": 404, "GET /importErrors": [none, told]})
    dags.wait_for_dags(["a"])
    with pytest.raises(OrchestratorError, match=r"DAGs b(.|\n)*b\.py(.|\n)*dagg"):
        dags.wait_for_dags(["a", "b"])


def test_a_broken_file_of_somebody_else_ends_no_wait(airflow):
    told = {"import_errors": [{"filename": "theirs/report.py", "stack_trace": "ModuleNotFoundError: pandas"}]}
    dags, _ = airflow({"GET /dags/a": [404, 404, {"dag_id": "a"}, 404], "GET /importErrors": told})
    dags.wait_for_dags(["a"])
    with pytest.raises(OrchestratorError, match=r"DAGs a(.|\n)*report\.py"):
        dags.wait_for_dags(["a"], timeout_s=0)


def test_where_no_import_failed_the_dag_processors_log_is_named(airflow):
    dags, _ = airflow({"GET /dags/a": 404, "GET /importErrors": {"import_errors": []}})
    with pytest.raises(OrchestratorError, match=r"DAGs a; it reports no import errors: see the log of its DAG proc"):
        dags.wait_for_dags(["a"], timeout_s=0)


def test_the_dags_of_a_deployment_are_switched_on_also_where_some_are_on(airflow):
    known = {f"GET /dags/{dag}": {"is_paused": dag != "serve_forecasts"} for dag in STANDING}
    dags, fake = airflow(known | {f"PATCH /dags/{dag}": {} for dag in STANDING})
    switch_on_standing(dags)
    changed = [call for call in fake.calls if call[0].startswith("PATCH")]
    assert changed == [(f"PATCH /dags/{dag}", {"is_paused": False}) for dag in STANDING]


def test_no_dag_is_switched_on_where_one_of_them_cannot_be_imported(airflow):
    told = {"import_errors": [{"filename": "maintain_lake.py", "stack_trace": "ModuleNotFoundError: deltalake"}]}
    answers = {f"GET /dags/{dag}": {"is_paused": True} for dag in STANDING}
    dags, fake = airflow(answers | {"GET /dags/maintain_lake": 404, "GET /importErrors": told})
    with pytest.raises(OrchestratorError, match=r"DAGs maintain_lake; it reports maintain_lake\.py:\s+ModuleNotFound"):
        switch_on_standing(dags)
    assert not any(name.startswith("PATCH") for name, _ in fake.calls)


def test_aged_token_is_renewed_once(airflow):
    dags, fake = airflow({"PATCH /dags/d": [{}, 401, {}]})
    dags.unpause("d")
    dags.pause("d")
    assert [name for name, _ in fake.calls].count("GET /auth/token") == 2
    assert fake.calls[-1][1] == {"is_paused": True}


def test_refusal_names_the_call_and_airflows_words(airflow):
    dags, _ = airflow({"PATCH /dags/d": 404})
    with pytest.raises(OrchestratorError, match=r"PATCH http.*/dags/d: 404 told why"):
        dags.unpause("d")


def test_password_is_used_where_one_is_set(airflow):
    dags, fake = airflow({"POST /auth/token": {"access_token": "t"}, "PATCH /dags/d": {}}, password="secret")
    dags.pause("d")
    assert fake.calls[0] == ("POST /auth/token", {"username": "admin", "password": "secret"})


def test_where_a_token_is_given_for_a_password_alone_the_settings_of_the_login_are_named(airflow):
    """As by FAB: the way without one is that of the simple login, and only where all are administrators."""
    dags, _ = airflow({"GET /auth/token": 405})
    with pytest.raises(OrchestratorError, match=r"token: 405 told why Set TIDECAST_AIRFLOW__USERNAME and TIDECAST"):
        dags.unpause("d")


def test_the_login_page_of_a_proxy_is_told_as_a_refusal(airflow):
    dags, _ = airflow({"GET /auth/token": "<h1>Sign in</h1>"})
    with pytest.raises(OrchestratorError, match=r"Airflow refused GET http.*/auth/token: 200 <h1>Sign in</h1>"):
        dags.unpause("d")


def test_nobody_answers(monkeypatch):
    asked = []

    def refuse(method, url, **more):
        asked.append(url)
        raise httpx.ConnectError("connection refused")

    monkeypatch.setattr(orchestrator.httpx, "request", refuse)
    with pytest.raises(OrchestratorError, match="TIDECAST_AIRFLOW__URL"):
        Orchestrator(load(airflow={"url": URL})).pause("d")
    assert len(asked) == 1, "it is told at once"


def test_asset_events_of_a_dag_are_told_as_airflow_has_them(airflow):
    dags, _ = airflow({"GET /assets/events": {"asset_events": [{"name": "drift", "extra": {"job": "a"}}]}})
    assert dags.asset_events("ingest_metrics") == [{"name": "drift", "extra": {"job": "a"}}]


def test_states_of_runs_are_told_by_their_ids(airflow):
    dags, _ = airflow({"GET /dags/d/dagRuns": {"dag_runs": [run("queued"), run("failed", dag_run_id="r0")]}})
    assert dags.run_states("d") == {"r1": "queued", "r0": "failed"}


def test_runs_that_go_on_are_ended_and_no_others(airflow):
    known = [run(state, dag_run_id=f"{state}+1") for state in ("queued", "running", "success", "failed")]
    ended = [f"PATCH /dags/d/dagRuns/{state}%2B1" for state in ("queued", "running")]
    dags, fake = airflow({"GET /dags/d/dagRuns": {"dag_runs": known}} | {key: {} for key in ended})
    dags.end_runs("d")
    changed = [call for call in fake.calls if call[0].startswith("PATCH")]
    assert changed == [(name, {"state": "success"}) for name in ended]
