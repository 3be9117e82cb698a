"""What the first training leaves behind in Airflow."""

import pytest

from configs.settings import load
from pipelines.airflow.rest import OrchestratorError
from pipelines.demo import champion
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
