"""`tidecast switch-on`."""

import pytest
from typer.testing import CliRunner

from pipelines.airflow.rest import OrchestratorError
from pipelines.airflow.standing import STANDING
from pipelines.cli.app import app


@pytest.fixture
def switch(monkeypatch, tmp_path):
    """What comes of the command in an Airflow that lacks some DAGs, and which ones it was told to switch on."""

    def run(*lacked):
        told = []

        class AirflowOfFour:
            def __init__(self, settings):
                assert settings.var_dir == tmp_path

            def wait_for_dags(self, names):
                if missing := [name for name in names if name in lacked]:
                    raise OrchestratorError(f"Airflow does not know the DAGs {', '.join(missing)}")

            def unpause(self, dag):
                told.append(dag)

        monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
        monkeypatch.setattr("pipelines.airflow.rest.Orchestrator", AirflowOfFour)
        return CliRunner().invoke(app, ["switch-on"]), told

    return run


def test_the_dags_that_are_switched_on_are_named(switch):
    ended, told = switch()
    assert ended.exit_code == 0 and told == list(STANDING)
    assert ended.output == "switched on: retrain_forecaster, ingest_metrics, serve_forecasts, maintain_lake\n"


def test_a_dag_that_is_missing_ends_the_command(switch):
    ended, told = switch("serve_forecasts")
    assert isinstance(ended.exception, OrchestratorError) and told == []
    assert "serve_forecasts" in str(ended.exception) and ended.output == ""
