"""What a person meets on the terminal: help without notes for readers of the code, errors as one line."""

import errno
import os
import shutil
import sys
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from configs.errors import CorrectableError, without_logins
from pipelines.cli.app import app, main
from pipelines.kafka.mode_word import RefusedModeError
from pipelines.stack import state
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


@pytest.mark.parametrize("command", [
    "bench promise", "bench deadline", "bench headroom", "bench signed", "backtest map google", "forecast table",
    "forecast table2",
])  # fmt: skip
def test_a_measurement_that_is_to_go_on_needs_the_file_that_it_goes_on_from(monkeypatch, capsys, command):
    told = fails(monkeypatch, capsys, *command.split(), "--resume")
    assert "--resume goes on from a file: name it with --json." in told


@pytest.mark.parametrize(("text", "shown"), [
    ("at http://me:s3cr3t@host:1/a, and", "at http://host:1/a, and"),
    ("https://token@host", "https://host"),
    ("postgresql+psycopg2://me:a@b@host/db", "postgresql+psycopg2://host/db"),
    ("hdfs://me@namenode/lake", "hdfs://me@namenode/lake"),
    ("http://host/a@b: me@example.com", "http://host/a@b: me@example.com"),
    ("spark://a:7077,b:7077", "spark://a:7077,b:7077"),
])  # fmt: skip
def test_what_stands_in_an_address_before_its_host_is_left_out_where_it_may_be_secret(text, shown):
    assert without_logins(text) == shown == str(CorrectableError(text))


@pytest.mark.parametrize("setting", ["MLFLOW__TRACKING_URI", "AIRFLOW__URL"])
def test_a_login_in_an_address_is_not_repeated_where_nobody_answers(monkeypatch, capsys, tmp_path, setting):
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setenv(f"TIDECAST_{setting}", "http://bob:pa%40ss@127.0.0.1:1")
    told = CliRunner().invoke(app, ["doctor"]).output + fails(monkeypatch, capsys, "up")
    assert told.count("http://127.0.0.1:1") == 2 and "bob" not in told and "ss@" not in told


def test_the_doctor_names_services_of_others_without_their_logins(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setenv("TIDECAST_MLFLOW__TRACKING_URI", "postgresql://bob:pa%40ss@127.0.0.1:1/mlflow")
    told = CliRunner().invoke(app, ["doctor"]).output
    assert "yours: postgresql://127.0.0.1:1/mlflow" in told and "bob" not in told and "ss@" not in told


def test_a_run_without_an_event_log_is_told_in_a_line(monkeypatch, capsys, tmp_path):
    run_dir.write(tmp_path, seconds=20)
    shutil.rmtree(tmp_path / "eventlog")
    told = fails(monkeypatch, capsys, "report", str(tmp_path))
    assert told.startswith("tidecast: ") and "no Spark event log" in told and "Traceback" not in told


def test_a_section_that_is_no_json_is_told_in_a_line(monkeypatch, capsys):
    monkeypatch.setenv("TIDECAST_TRAINING__MODELS", "ridge")
    told = fails(monkeypatch, capsys, "down")
    assert "TIDECAST_TRAINING__MODELS: not JSON" in told and "Write it as JSON" in told


def test_down_says_who_has_the_folder_where_no_stack_was_left_running(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    assert CliRunner().invoke(app, ["down"]).output == "nothing was running\n"
    held = state.lock(tmp_path)
    told = fails(monkeypatch, capsys, "down")  # beside a start that would leave a stack running
    held.close()
    assert told.startswith(f"tidecast: {tmp_path} is in use by process {os.getpid()} (")


def test_a_name_that_no_job_may_have_is_told_in_a_line(monkeypatch, capsys):
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "127.0.0.1:1")
    told = fails(monkeypatch, capsys, "job", "mode", "a b", "act")
    assert "a b" in told and "as its contract does" in told


def test_a_registry_that_goes_away_before_the_versions_are_listed_is_told_in_a_line(monkeypatch, capsys, tmp_path):
    from mlflow.exceptions import MlflowException

    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))

    class Client:
        def search_model_versions(self, name, max_results, page_token):
            raise MlflowException("connection refused")

    monkeypatch.setattr("pipelines.registry.owned.open_store", lambda settings: (Client(), "http://models", "0"))
    told = fails(monkeypatch, capsys, "models", "list", "orders")
    assert told == "tidecast: MLflow at http://models: connection refused\n"


@pytest.mark.parametrize(("there", "said"), [([2, 10, 3], "There are 2, 3, 10."), ([], "There is none yet.")])
def test_a_version_that_is_not_there_is_told_in_a_line_with_those_that_are(monkeypatch, capsys, tmp_path, there, said):
    from mlflow.store.entities import PagedList

    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    found = PagedList([SimpleNamespace(version=version) for version in there], token=None)
    client = SimpleNamespace(search_model_versions=lambda name, max_results, page_token: found)
    monkeypatch.setattr("pipelines.registry.owned.open_store", lambda settings: (client, "http://models", "0"))
    told = fails(monkeypatch, capsys, "models", "promote", "orders", "30")
    assert told == f"tidecast: orders: its forecaster has no version '30'. {said}\n"


@pytest.mark.parametrize(
    "command",
    [
        "models list", "models rollback", "advise", "contract check", "contract init", "backfill", "job show",
        "job measure", "job contracts", "twin fit --job",
    ],
)  # fmt: skip
def test_a_job_with_a_slash_is_told_in_a_line_by_every_command(monkeypatch, capsys, command):
    told = fails(monkeypatch, capsys, *command.split(), "a/b")
    assert told.startswith("tidecast: job='a/b': ") and "Name a job as its contract does." in told


@pytest.mark.parametrize(("job", "told"), [("ordres", True), ("word_count", False)])
def test_a_word_to_a_job_that_nobody_here_knows_is_sent_and_told(monkeypatch, job, told):
    sent = []
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setattr("tidecast.control.set_mode", lambda *given: sent.append(given[1:3]))
    monkeypatch.setattr("pipelines.kafka.mode_word.await_answer", lambda kafka, word: "no sign of its agent")
    ran = CliRunner().invoke(app, ["job", "mode", job, "freeze"])
    assert "not signed (no kafka.signing_keys): an agent with a signing key refuses it" in ran.stderr
    assert sent == [(job, "freeze")] and ran.stdout == f"{job}: freeze\n" and ran.exit_code == 0
    assert (f"nobody here knows a job '{job}'" in ran.stderr) is told
    assert f"{job}: no sign of its agent.\n" in ran.stderr


def test_a_mode_that_an_agent_refuses_is_no_success(monkeypatch, capsys):
    def refused(kafka, word):
        raise RefusedModeError("the agent of orders refuses the mode: set the sender's clock")

    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "127.0.0.1:1")
    monkeypatch.setattr("tidecast.control.set_mode", lambda *given: None)
    monkeypatch.setattr("pipelines.kafka.mode_word.await_answer", refused)
    assert "tidecast: the agent of orders refuses the mode" in fails(
        monkeypatch, capsys, "job", "mode", "orders", "act"
    )


def test_an_address_of_mlflow_without_a_scheme_is_told_in_a_line(monkeypatch, capsys, tmp_path):
    import mlflow

    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setenv("TIDECAST_MLFLOW__TRACKING_URI", "mlflow.example.com:5000")
    try:
        told = fails(monkeypatch, capsys, "models", "list", "orders")
    finally:
        mlflow.set_tracking_uri(None)
    assert told.startswith("tidecast: MLflow at mlflow.example.com:5000 (check mlflow.tracking_uri; ")
    assert "begins with http://" in told


def unwritable(monkeypatch, capsys, error):
    """What is said where a command meets an error."""

    def met(**_):
        raise error

    monkeypatch.setattr("pipelines.cli.app.app", met)
    return fails(monkeypatch, capsys)


def test_a_file_that_cannot_be_written_is_told_in_a_line_with_the_remedy(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path / "made" / "var"))
    remedy = " Set TIDECAST_VAR to a folder that can be written.\n"
    for place, said in ((tmp_path / "made" / "var" / "runs", remedy), (tmp_path / "made", remedy), (tmp_path, "\n")):
        told = unwritable(monkeypatch, capsys, PermissionError(errno.EACCES, "Permission denied", str(place)))
        assert told == f"tidecast: {place}: Permission denied.{said}"
    gone = tmp_path / "made" / "var" / "gone"
    told = unwritable(monkeypatch, capsys, FileNotFoundError(errno.ENOENT, "No such file", str(gone)))
    assert told == f"tidecast: {gone}: No such file.\n"


def test_an_error_of_no_file_passes(monkeypatch, capsys):
    with pytest.raises(ConnectionRefusedError):
        unwritable(monkeypatch, capsys, ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
