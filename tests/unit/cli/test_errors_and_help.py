"""What a person meets on the terminal: help without notes for readers of the code, errors as one line."""

import shutil
import sys

import pytest
from mlflow.exceptions import MlflowException
from typer.testing import CliRunner

from pipelines.cli.app import app, main
from tests.fakes import run_dir


@pytest.mark.parametrize("command", ["report", "bench fastpath", "job mode", "forecast evaluate"])
def test_help_says_what_a_command_does_and_not_which_errors_its_code_raises(command):
    shown = CliRunner().invoke(app, [*command.split(), "--help"])
    assert shown.exit_code == 0 and "Usage:" in shown.output
    assert "Raises" not in shown.output and "OSError" not in shown.output


def fails(monkeypatch, capsys, *arguments):
    """What a command that must end with status 2 says on stderr."""
    monkeypatch.setattr(sys, "argv", ["tidecast", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_a_run_without_an_event_log_is_told_in_a_line(monkeypatch, capsys, tmp_path):
    run_dir.write(tmp_path, seconds=20)
    shutil.rmtree(tmp_path / "eventlog")
    told = fails(monkeypatch, capsys, "report", str(tmp_path))
    assert told.startswith("tidecast: ") and "no Spark event log" in told and "Traceback" not in told


def test_a_section_that_is_no_json_is_told_in_a_line(monkeypatch, capsys):
    monkeypatch.setenv("TIDECAST_TRAINING__MODELS", "ridge")
    told = fails(monkeypatch, capsys, "down")
    assert "TIDECAST_TRAINING__MODELS: not JSON" in told and "Write it as JSON" in told


def test_a_name_that_no_job_may_have_is_told_in_a_line(monkeypatch, capsys):
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "127.0.0.1:1")
    told = fails(monkeypatch, capsys, "job", "mode", "a b", "act")
    assert "a b" in told and "as its contract does" in told


def test_a_registry_that_goes_away_before_the_versions_are_listed_is_told_in_a_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))

    class Client:
        def search_model_versions(self, name):
            raise MlflowException("connection refused")

    monkeypatch.setattr("pipelines.registry.aliases.open_store", lambda settings: (Client(), "http://models", "0"))
    told = fails(monkeypatch, capsys, "models", "list", "orders")
    assert told == "tidecast: MLflow at http://models: connection refused\n"
