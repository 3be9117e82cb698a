"""The commands of a person beside a stack that is up: each finds it by the `var` folder alone, and ends quietly."""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, closing, contextmanager

import pytest
from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.kafka.broker import read_records, topic_offsets
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import topic_id
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.connection.transport import TOPICS
from tidecast.messages import MetricSample

pytestmark = pytest.mark.integration


@contextmanager
def command(log, var, *arguments, **more):
    """A command of the real front door, told nothing but the folder of the stack."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TIDECAST_")}
    with log.open("wb") as out:
        argv = [sys.executable, "-m", "pipelines.cli", *arguments]
        process = subprocess.Popen(
            argv, env={**env, "TIDECAST_VAR": str(var), **more}, stdout=out, stderr=out, start_new_session=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def mlflow_store(broker, broker_var, schema):
    """The stack's embedded MLflow store is there: two servers would make it, which takes seconds."""
    (broker_var / "mlflow").mkdir(exist_ok=True)
    shutil.copy(schema, broker_var / "mlflow")


@pytest.mark.usefixtures("mlflow_store")
def test_a_server_finds_the_stack_that_runs_and_ends_quietly(empty_topics, broker_var, tmp_path):
    signs = {"serve": "serving: epoch", "serve fast": "serving fast: epoch"}  # autoscale has a file of its own
    apart = {"serve fast": {"TIDECAST_KAFKA__PREFIX": empty_topics.prefix}}  # else the later one ends the other
    with ExitStack() as stack:
        started = []
        for name, sign in signs.items():
            log = tmp_path / name
            process = stack.enter_context(command(log, broker_var, *name.split(), **apart.get(name, {})))
            started.append((log, sign, process))
        for log, sign, process in started:
            wait_until(lambda log=log, sign=sign, p=process: sign in log.read_text() or p.poll() is not None, sign)
            assert process.poll() is None and sign in log.read_text(), log.read_text()
        for _, _, process in started:
            os.killpg(process.pid, signal.SIGTERM)  # to all of it, as a service manager or a terminal does
        for log, _, process in started:
            assert process.wait(PATIENCE_S) == 0, log.read_text()
            assert "Traceback" not in log.read_text(), log.read_text()


def test_a_word_to_a_job_reaches_the_broker_of_the_stack(empty_topics, broker_var, tmp_path):
    own = {"TIDECAST_KAFKA__PREFIX": empty_topics.prefix}
    with (
        closing(Publisher(empty_topics)) as agent,
        command(tmp_path / "log", broker_var, "job", "mode", "orders", "freeze", **own) as process,
    ):

        def ended():
            """Meanwhile its agent tells that it obeys, for which the command would wait in vain."""
            now = time.time()
            told = MetricSample("orders", "interval", now - 1, now, arrival_rps=1.0, mode="freeze")
            agent.send("metrics", "orders", told)
            return process.poll() is not None

        wait_until(ended, "the end of the command", every_s=0.2)
        assert process.wait() == 0
    said = (tmp_path / "log").read_text()
    assert "orders: freeze\n" in said and "no sign" not in said and "still after" not in said, said


def test_benchmarks_and_the_demonstration_leave_a_persons_broker_as_it_is(empty_topics, tmp_path, monkeypatch):
    told = ("events", "metrics", "results")
    publisher = Publisher(empty_topics)
    for topic in told:
        publisher.send_bytes(topic, b"orders", b"a person's record")
    publisher.close()

    def standing():
        records = {topic: (topic_id(empty_topics, topic), list(read_records(empty_topics, topic))) for topic in told}
        return records, {topic: topic_offsets(empty_topics, topic) for topic in TOPICS}

    before, offsets = standing()
    assert all(len(records) == 1 for _, records in before.values())
    assert {topic for topic, ends in offsets.items() if any(end for _, end in ends.values())} == {*told}
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", empty_topics.bootstrap)
    monkeypatch.setenv("TIDECAST_KAFKA__PREFIX", empty_topics.prefix)
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path / "var"))
    for arguments in ("run", "compare reactive", "bench agent", "bench fastpath --quick --only kafka"):
        done = CliRunner().invoke(app, arguments.split())
        assert "Unset TIDECAST_KAFKA__BOOTSTRAP" in f"{done.output}{done.exception}", arguments
    assert standing() == (before, offsets)
