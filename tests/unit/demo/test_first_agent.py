"""What the first training leaves behind in Airflow."""

from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.airflow.rest import OrchestratorError
from pipelines.demo import champion, run
from pipelines.demo.progress import Screen


class Airflow:
    """Knows every DAG, whose runs all fail; remembers whether one may be scheduled."""

    def __init__(self):
        self.unpaused = {}

    def wait_for_dags(self, names):
        pass

    def unpause(self, dag):
        self.unpaused[dag] = True

    def pause(self, dag):
        self.unpaused[dag] = False

    def trigger(self, dag, conf):
        assert self.unpaused[dag], "a run of a paused DAG stays queued"
        return "r1"

    def wait_run(self, dag, run_id):
        raise OrchestratorError(f"run {run_id} of DAG {dag} failed.")


def test_the_agents_dag_is_paused_again_after_a_failed_run(monkeypatch):
    monkeypatch.setattr(champion, "AgentRegistry", lambda settings: None)
    airflow = Airflow()
    with pytest.raises(OrchestratorError, match="run r1 of DAG retrain_agent failed"):
        champion.train_first_agent(load(), airflow, Screen())
    assert airflow.unpaused == {"retrain_agent": False}


class Trained(Airflow):
    """Its runs succeed, and register nothing."""

    def wait_run(self, dag, run_id):
        pass

    def wait_caused_run(self, dag, by):
        pass


def test_a_training_without_a_champion_names_its_log_in_the_runs_own_airflow(monkeypatch, tmp_path):
    """Not the Airflow of `make up`, which has another folder."""
    monkeypatch.setattr(champion, "Registry", lambda settings: SimpleNamespace(champion_version=lambda job: None))
    monkeypatch.setattr(champion, "publish_history", lambda settings: 5)
    with pytest.raises(champion.DemoError) as error:
        champion.train_first_champion(load(var=tmp_path), Trained(), Screen())
    assert f"{tmp_path}/airflow/logs/dag_id=retrain_forecaster" in str(error.value)


@pytest.mark.parametrize("rows", [0, 5])
def test_no_hour_of_the_clock_starts_an_ingest_or_a_training_in_the_live_load(monkeypatch, tmp_path, rows):
    known = SimpleNamespace(champion_version=lambda job: "1", model_name=str)
    monkeypatch.setattr(champion, "Registry", lambda settings: known)
    monkeypatch.setattr(champion, "publish_history", lambda settings: rows)
    airflow = Trained()
    assert champion.train_first_champion(load(var=tmp_path), airflow, Screen()) == ("1" if rows else None)
    assert airflow.unpaused == {"ingest_metrics": False, "retrain_forecaster": False}


@pytest.mark.parametrize(("rows", "order"), [(0, []), (5, ["ingested", "begun", "trained"])])
def test_what_starts_for_long_does_so_beside_the_first_training(monkeypatch, tmp_path, rows, order):
    """Not beside the ingest, whose newest record of metrics an autoscaler begins with."""
    seen = []
    known = SimpleNamespace(champion_version=lambda job: "1", model_name=str)
    monkeypatch.setattr(champion, "Registry", lambda settings: known)
    monkeypatch.setattr(champion, "publish_history", lambda settings: rows)
    monkeypatch.setattr(champion, "run_ingest", lambda dags, start, end: seen.append("ingested"))
    monkeypatch.setattr(champion, "wait_for_training", lambda settings, dags: seen.append("trained"))
    champion.train_first_champion(load(var=tmp_path), Trained(), Screen(), lambda: seen.append("begun"))
    assert seen == order


def test_what_was_measured_live_is_learned_by_dags_that_are_switched_on(monkeypatch):
    airflow, known, done = Trained(), SimpleNamespace(read_verdict=lambda job: None), []
    for dag in champion.LEARNING:
        airflow.pause(dag)
    monkeypatch.setattr(
        run.newcomer, "publish_newcomer_history", lambda settings, screen: done.append(dict(airflow.unpaused))
    )
    monkeypatch.setattr(run.newcomer, "collect_newcomer_results", lambda settings, registry: None)
    learned = run._learn_from_live_day(load(replay={"newcomer": None}), airflow, known, Screen())
    assert learned == {"challenger": None, "newcomer": None} and all(airflow.unpaused.values())
    # Else an hour that passed while they were paused takes a part of it, and a second training the rest.
    assert done == [dict.fromkeys(champion.LEARNING, False)], "published before they are switched on"


class Asking:
    """An Airflow whose training has asked a person twice; one has answered."""

    def __init__(self):
        self.waited = []

    def wait_caused_run(self, dag, by):
        self.waited.append((dag, by))

    def run_states(self, dag):
        return {"open": "running", "next": "queued", "answered": "success", "broken": "failed"}

    def wait_run(self, dag, run_id, timeout_s):
        self.waited.append((dag, run_id, timeout_s))


@pytest.mark.parametrize(
    ("approval_s", "asked"),
    [(0, []), (60, [("approve_champion", "open", 660), ("approve_champion", "next", 660)])],
)
def test_a_training_is_over_when_what_it_asks_is_answered(approval_s, asked):
    """Where nobody is asked the DAG that asks may not even be there, as in an older release."""
    airflow = Asking()
    champion.wait_for_training(load(training={"approval_s": approval_s}), airflow)
    assert airflow.waited == [("retrain_forecaster", "ingest_metrics"), *asked]
