"""A driver that stops dead while it writes its shadow, and is killed while it publishes: readers see nothing of it."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from configs.settings import ROOT
from tests.fakes.result_tables import live, seen, version
from tidecast.backfill.publish import publish
from tidecast.backfill.running import list_backfills, prepare

pytestmark = [pytest.mark.spark, pytest.mark.study]
WINDOWS, PATIENCE_S = 40, 400


def files(folder):
    return {path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


@contextmanager
def driver(table, log):
    """A driver that runs the backfill, in a session of its own with its JVM; it is killed at the end."""
    command = [sys.executable, "-m", "tests.fakes.backfill_child", str(table), str(WINDOWS)]
    with log.open("w") as said:
        process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def stopped(process, word, folder, log):
    """Stop the driver and its JVM once it has said `word` and then a data file is there: as a kill would leave it."""
    end = time.monotonic() + PATIENCE_S
    known = None
    while True:
        assert time.monotonic() < end and process.poll() is None, log.read_text()[-2000:]
        if known is None and word in log.read_text().split():
            known = files(folder)
        if known is not None and files(folder) - known:
            break
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGSTOP)


def test_a_killed_driver_leaves_nothing_behind_and_the_same_id_goes_on(one_partition, tmp_path):
    spark, table, log = one_partition, tmp_path / "hourly", tmp_path / "log"
    old = {("a", 10 * i): 0 for i in range(WINDOWS)} | {("a", 10 * WINDOWS): 7, ("gone", 0): 1}
    true = {("a", 10 * i): i + 1 for i in range(WINDOWS)}
    live(spark, table, old)
    before = version(table)

    with driver(table, log) as process:
        stopped(process, "writes", tmp_path / "hourly.backfills" / "fix", log)
        (left,) = list_backfills(table)
        assert (left.running, left.spec.state, left.spec.last.written) == (True, "open", False)
        assert version(table) == before and seen(table) == old
        os.killpg(process.pid, signal.SIGCONT)
        stopped(process, "publishes", table, log)
        assert version(table) == before, "it was killed after its commit"
    (left,) = list_backfills(table)
    assert (left.running, left.spec.state, left.spec.last.written) == (False, "open", True)
    assert version(table) == before and seen(table) == old

    with prepare(spark, table, "fix", 0, 10 * WINDOWS, "1") as backfill:
        done = publish(backfill)
        assert (done.committed, done.summary.due) == (True, WINDOWS + 1)
    assert version(table) == before + 1 and seen(table) == true | {("a", 10 * WINDOWS): 7}
