"""Serving as a streaming query in a process of its own: two jobs, a new champion, and a later one on more cores."""

import contextlib
import json
import os
import signal

import psutil
import pytest

from pipelines.kafka.broker import read_records
from pipelines.spark.query_session import kept_partitions
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.spark_serving import JOBS, TwoJobs, ended, epoch_of
from tests.fakes.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.spark


def test_two_jobs_are_forecast_a_champion_is_swapped_and_a_later_server_goes_on(empty_topics, tmp_path):
    site = TwoJobs(empty_topics, tmp_path)
    site.say(40)
    first, earlier_log = site.start(1)
    later = None
    try:
        epoch = epoch_of(first, earlier_log)
        (made, *_) = site.forecast(epoch=epoch, version="1")
        assert made["model"].endswith("-forecaster") and len(made["quantiles"]) == TASK.horizon
        site.promote("2")
        site.forecast(epoch=epoch, version="2")
        checkpoint = tmp_path / "var" / "serving" / f"{STEP:g}" / "query"
        later, log = site.start(2)
        wait_until(lambda: _has_jvm(later), "its JVM", every_s=0.2)
        assert "leaving" not in earlier_log.read_text() and "epoch" not in log.read_text()
        second = epoch_of(later, log)
        assert first.wait(PATIENCE_S) == 0, earlier_log.read_text()
        assert "a later epoch has taken over; leaving" in earlier_log.read_text()
        again = site.forecast(epoch=second, version="2")
        assert second > epoch and kept_partitions(checkpoint) == 2
        assert "spread over 2 partitions; it was 1" in log.read_text()
        assert len({(one["job"], one["time"]) for one in again}) == len(again)
        beats = [json.loads(record.value) for record in read_records(empty_topics, "heartbeats")]
        assert {one["job"] for one in beats if one["by"] == "serving"} == set(JOBS)
        ended(later, log)
    finally:
        site.close()
        for process in (first, later):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _has_jvm(process):
    found = []
    for child in psutil.Process(process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):  # between fork and look it may end
            found += child.cmdline()
    return any("SparkSubmit" in word for word in found)
