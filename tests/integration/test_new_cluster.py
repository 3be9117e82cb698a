"""A job and the autoscaler are pointed to another Kafka cluster, on which their topics are empty."""

import json
import os
import shlex
import signal
import subprocess
import sys

import pytest

from configs.settings import load
from pipelines.jobs.launch import read_first_offsets
from pipelines.jobs.truth import compare_counts, read_counts
from pipelines.kafka.topics import create_topics
from pipelines.stack.stack import Stack
from tests.fakes.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PATIENCE_S = 300


@pytest.fixture
def clusters(empty_topics, tmp_path):
    """The one of all tests, and another one with topics of the same names."""
    with Stack(load(var=tmp_path / "other"), {"broker"}) as stack:
        bootstrap = stack.settings.kafka.bootstrap
        other = empty_topics.model_copy(update={"bootstrap": bootstrap})
        create_topics(other)
        yield empty_topics, other


@pytest.fixture
def start(tmp_path):
    """Starts a module of `pipelines.jobs` on a cluster; what still runs at the end is killed."""
    (tmp_path / "word_count.yaml").write_text("job: word_count\n")
    started = []

    def run(kafka, module, *options):
        environment = {
            **os.environ, "TIDECAST_KAFKA__BOOTSTRAP": kafka.bootstrap, "TIDECAST_KAFKA__PREFIX": kafka.prefix,
            "TIDECAST_SPARK__MASTER": "local[2]", "TIDECAST_VAR": f"{tmp_path / 'var'}",
            "TIDECAST_CONTRACTS": f"{tmp_path}", "TIDECAST_JOB__SERVICE_MS": "1", "TIDECAST_JOB__TRIGGER": "1 second",
            "TIDECAST_REPLAY__SPEED": "720", "TIDECAST_REPLAY__LIVE_HOURS": "1.5",
            "TIDECAST_REPLAY__PEAK_RPS": "300", "TIDECAST_REPLAY__WITHHELD_SHARE": "0",
        }  # fmt: skip
        command = [sys.executable, "-m", f"pipelines.jobs.{module}", "--run-dir", f"{tmp_path / 'run'}", *options]
        started.append(subprocess.Popen(command, env=environment, start_new_session=True, stderr=-1, text=True))
        return started[-1]

    yield run
    for process in started:
        process.stderr.close()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def counted(folder):
    lines = (folder / "word_count.progress.jsonl").read_text().splitlines()
    return sum(json.loads(line)["numInputRows"] for line in lines if line.endswith("}"))


def test_a_job_refuses_by_name_and_counts_exactly_after_the_one_command_that_it_names(clusters, start, tmp_path):
    (here, there), folder = clusters, tmp_path / "run"
    job = start(here, "word_count", "--no-agent")
    wait_until((folder / "word_count.json").is_file, "the first batch", PATIENCE_S, every_s=0.2)
    assert start(here, "load_generator", "--warm-up").wait(PATIENCE_S) == 0
    wait_until(lambda: counted(folder) > 0, "records that are counted", PATIENCE_S, every_s=0.2)
    job.terminate()
    assert job.wait(PATIENCE_S) == 0

    refused = start(there, "word_count", "--no-agent")
    assert refused.wait(PATIENCE_S) == 1
    said = refused.stderr.read()
    assert f"{there.prefix}events, {there.prefix}results at {there.bootstrap}: not the topics on which" in said
    (command,) = [line.strip() for line in said.splitlines() if line.strip().startswith("mv ")]
    subprocess.run(shlex.split(command), check=True)

    job = start(there, "word_count", "--no-agent")
    wait_until((folder / "word_count.json").is_file, "the first batch", PATIENCE_S, every_s=0.2)
    assert start(there, "load_generator").wait(PATIENCE_S) == 0
    truth, first = json.loads((folder / "truth.json").read_text()), read_first_offsets(folder, "word_count")["results"]

    def exact():
        found = compare_counts(truth, read_counts(there, first))
        return found["counted"] == truth["produced"] > 0 and not found["lost"] and not found["duplicated"]

    wait_until(exact, "counts equal to the truth", PATIENCE_S, every_s=0.5)
    job.terminate()
    assert job.wait(PATIENCE_S) == 0
