"""A range read in an application of its own, beside the live job's process: killed on the way, gone on with, exact."""

import json
import os
import subprocess
import sys
import time

import pytest

from configs.settings import load
from pipelines.backfill.application import give_order, start_application
from pipelines.backfill.orders import newest_progress
from pipelines.jobs.plans import key_totals
from pipelines.jobs.plans.merged import table_of
from pipelines.jobs.windows import WINDOW_MS
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.publisher import Publisher
from pipelines.stack.processes import end_processes, find_processes
from tests.fakes.plan_truths import SignedEvent, encode_signed, true_totals
from tests.fakes.result_tables import standing
from tests.fakes.waiting import wait_until
from tidecast.orders import ReplayOrder

JOB, PATIENCE_S = key_totals.JOB, 400.0
WINDOWS, EACH = 24, 1_000
"""Of ten minutes each, from the epoch on, and events in each: long enough to be killed on the way."""
MISSED = 3
"""Windows of which a tenth of the events came before the live job was first started, which begins behind them."""


@pytest.fixture
def world(empty_topics, tmp_path, monkeypatch):
    """Settings and contracts; both processes find the broker in their environment."""
    kafka = empty_topics
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", kafka.bootstrap)
    for name, value in {
        "TIDECAST_KAFKA__PREFIX": kafka.prefix, "TIDECAST_SPARK__MASTER": "local[1]", "TIDECAST_VAR": tmp_path / "var",
        "TIDECAST_CONTRACTS": tmp_path, "TIDECAST_JOB__TRIGGER": "500 milliseconds",
        "TIDECAST_JOB__MAX_OFFSETS_PER_TRIGGER": "4000",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    command = f"{sys.executable} -m pipelines.jobs.plans.key_totals --run-dir {tmp_path} --replays {{executors}}"
    text = f"job: {JOB}\nbackpressure: {{apart: {{executors: 2, command: {json.dumps(command)}}}}}\n"
    (tmp_path / "plans").mkdir()
    for folder in (tmp_path, tmp_path / "plans"):
        (folder / f"{JOB}.yaml").write_text(text)
    return load()


@pytest.fixture
def start(world, tmp_path):
    """Starts the live job."""
    begun = []

    def live():
        begun.append(subprocess.Popen(command, env=os.environ.copy(), start_new_session=True))
        return begun[0]

    command = [sys.executable, "-m", "pipelines.jobs.plans.key_totals", "--run-dir", str(tmp_path), "--no-agent"]
    yield live
    pids = [process.pid for process in begun]
    end_processes(lambda: find_processes(pids), leaders=pids)


def _send(kafka, events):
    publisher = Publisher(kafka)
    for event in events:
        publisher.send_bytes("events", None, encode_signed(event), partition=event.seq % 2)
    publisher.close()


def _events():
    each = WINDOW_MS // EACH
    return [SignedEvent(n, n * each, f"k{n % 7}") for n in range(WINDOWS * EACH)]


def test_what_the_live_job_never_read_is_counted_by_an_application_that_was_killed_once(world, start, tmp_path):
    events = _events()
    missed = [one for one in events if one.t_e < MISSED * WINDOW_MS and one.seq % 10 == 0]
    read = [one for one in events if one not in set(missed)]
    table = table_of(tmp_path, JOB)

    def rows():
        assert live.poll() is None
        found = standing(table) if (table / "_delta_log").exists() else []
        return {(row["key"], row["_window_start"]): (row["n"], row["seq_sum"]) for row in found}

    _send(world.kafka, missed)
    live = start()
    wait_until((tmp_path / f"{JOB}.start.json").exists, "where the live job begins", PATIENCE_S, every_s=0.5)
    _send(world.kafka, read)
    wait_until(lambda: rows() == true_totals(read), "what it reads", PATIENCE_S, every_s=1.0)
    ends = {str(part): end for part, (_, end) in topic_offsets(world.kafka, "events").items()}
    name = world.kafka.topic("events")
    order = ReplayOrder(
        "missed", JOB, time.time(), "run", {name: dict.fromkeys(ends, 0)}, {name: ends}, begin_ms=0,
        end_ms=MISSED * WINDOW_MS, apart=1, task_rows=500, task_s=4.0, most_rps=1_500.0,
    )  # fmt: skip
    assert give_order(world, order) is not None
    _killed(world, order)
    assert start_application(world, order) is not None
    wait_until(lambda: _said(world) in ("done", "failed"), "its end", PATIENCE_S, every_s=0.5)
    assert _said(world) == "done", newest_progress(world.kafka, JOB)
    assert rows() == true_totals([one for one in events if one.t_e < MISSED * WINDOW_MS]) | {
        group: told for group, told in true_totals(read).items() if group[1] >= MISSED * WINDOW_MS
    }
    assert live.poll() is None and start_application(world, order) is not None  # nothing is left: it ends at once
    wait_until(lambda: "nothing was ordered" in _log(world), "the end of one that had nothing to do", PATIENCE_S)


def _killed(world, order):
    """Kill it once it reads, by the session that it began."""

    def reads():
        said = newest_progress(world.kafka, JOB).get(order.id)
        return said is not None and 0 < said.done < said.records

    wait_until(reads, "the first records", PATIENCE_S, every_s=0.2)
    mine = str(os.getpid())
    found = subprocess.run(["pgrep", "-P", mine, "-f", "--", "--replays"], capture_output=True, text=True, check=True)
    for pid in found.stdout.split():
        assert not end_processes(lambda session=int(pid): find_processes([session]), grace_s=0.0)


def _said(world):
    said = newest_progress(world.kafka, JOB).get("missed")
    return said.state if said else ""


def _log(world):
    return (world.var_dir / "log" / f"{JOB}.replays.log").read_text()
