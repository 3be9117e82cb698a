"""The commands of a person beside a stack that is up: each finds it by the `var` folder alone, and ends quietly."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.fakes.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration


@contextmanager
def command(log, var, *arguments):
    """A command of the real front door, told nothing but the folder of the stack."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TIDECAST_")}
    with log.open("wb") as out:
        argv = [sys.executable, "-m", "pipelines.cli", *arguments]
        process = subprocess.Popen(
            argv, env={**env, "TIDECAST_VAR": str(var)}, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("arguments", "sign"),
    [(["serve"], "serving: epoch"), (["serve", "fast"], "serving fast: epoch"), (["autoscale"], "ready")],
)
def test_finds_the_stack_that_runs_and_ends_quietly(broker, own_var, tmp_path, arguments, sign):
    log = tmp_path / "log"
    with command(log, own_var / "broker", *arguments) as process:
        wait_until(lambda: sign in log.read_text() or process.poll() is not None, sign)
        assert process.poll() is None and sign in log.read_text(), log.read_text()
        os.killpg(process.pid, signal.SIGTERM)  # to all of it, its JVM too, as a service manager or a terminal does
        assert process.wait(PATIENCE_S) == 0
    assert "Traceback" not in log.read_text() and "Py4J" not in log.read_text(), log.read_text()


def test_a_word_to_a_job_reaches_the_broker_of_the_stack(broker, own_var, tmp_path):
    with command(tmp_path / "log", own_var / "broker", "job", "mode", "orders", "freeze") as process:
        assert process.wait(PATIENCE_S) == 0
    assert (tmp_path / "log").read_text() == "orders: freeze\n"
