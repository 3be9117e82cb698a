"""A driver that is killed while it writes its shadow, and while it publishes, leaves nothing that readers see."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from configs.settings import ROOT
from tests.fakes.result_tables import live, seen, told, version
from tidecast.backfill.publish import publish
from tidecast.backfill.running import list_backfills, prepare
from tidecast.backfill.shadow import write

pytestmark = [pytest.mark.spark, pytest.mark.study]
WINDOWS, PATIENCE_S = 40, 400


def files(folder):
    return {path for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts}


def killed(table, word, folder, log):
    """Start a driver, stop it and its JVM once it has said `word` and then a data file is there, look, kill them.

    Returns the Delta version of the live table while they stood still.
    """
    command = [sys.executable, "-m", "tests.fakes.backfill_child", str(table), str(WINDOWS)]
    with log.open("w") as said:
        driver = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said, start_new_session=True)
    try:
        end = time.monotonic() + PATIENCE_S
        known = None
        while True:
            assert time.monotonic() < end and driver.poll() is None, log.read_text()[-2000:]
            if known is None and word in log.read_text().split():
                known = files(folder)
            if known is not None and files(folder) - known:
                break
            time.sleep(0.002)
        os.killpg(driver.pid, signal.SIGSTOP)
        return version(table)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def test_a_killed_driver_leaves_nothing_behind_and_the_same_id_goes_on(one_partition, tmp_path):
    spark, table = one_partition, tmp_path / "hourly"
    old = {("a", 10 * i): 0 for i in range(WINDOWS)} | {("a", 10 * WINDOWS): 7, ("gone", 0): 1}
    true = {("a", 10 * i): i + 1 for i in range(WINDOWS)}
    live(spark, table, old)
    before = version(table)

    shadow = tmp_path / "hourly.backfills" / "fix"
    assert killed(table, "writes", shadow, tmp_path / "first.log") == before
    (left,) = list_backfills(table)
    assert (left.running, left.spec.state, left.spec.last.written) == (False, "open", False)
    assert version(table) == before and seen(spark, table) == old

    assert killed(table, "publishes", table, tmp_path / "second.log") == before, "it was killed after its commit"
    (left,) = list_backfills(table)
    assert (left.running, left.spec.state, left.spec.last.written) == (False, "open", True)
    assert version(table) == before and seen(spark, table) == old

    with prepare(spark, table, "fix", 0, 10 * WINDOWS, "1") as backfill:
        done = publish(backfill)
        assert (done.committed, done.summary.due) == (True, WINDOWS + 1)
    assert version(table) == before + 1 and seen(spark, table) == true | {("a", 10 * WINDOWS): 7}

    # killed after its commit, before it had noted that: the same id finds nothing to do
    with prepare(spark, table, "fix", 0, 10 * WINDOWS, "1") as backfill:
        write(backfill, told(spark, true))
        assert not publish(backfill).committed
    assert version(table) == before + 1
