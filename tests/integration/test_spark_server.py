"""Serving as a streaming query in a process of its own: two jobs, a new champion, a restart on more cores."""

import json
import os
import signal

import pytest

from pipelines.kafka.broker import read_records
from pipelines.spark.query_session import kept_partitions
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.spark_serving import JOBS, TwoJobs, ended, epoch_of

pytestmark = pytest.mark.spark


def test_two_jobs_are_forecast_a_champion_is_swapped_and_a_later_server_goes_on(empty_topics, tmp_path):
    site = TwoJobs(empty_topics, tmp_path)
    site.say(40)
    first, log = site.start(1)
    later = None
    try:
        epoch = epoch_of(first, log)
        (made, *_) = site.forecast(epoch=epoch, version="1")
        assert made["model"].endswith("-forecaster") and len(made["quantiles"]) == TASK.horizon
        site.promote("2")
        site.forecast(epoch=epoch, version="2")
        checkpoint = tmp_path / "var" / "serving" / f"{STEP:g}" / "query"
        ended(first, log)
        site.say(3)
        later, log = site.start(2)
        second = epoch_of(later, log)
        again = site.forecast(epoch=second, version="2")
        assert second > epoch and kept_partitions(checkpoint) == 2
        assert "spread over 2 partitions; it was 1" in log.read_text()
        assert len({(one["job"], one["time"]) for one in again}) == len(again)
        beats = [json.loads(record.value) for record in read_records(empty_topics, "heartbeats")]
        assert {one["job"] for one in beats if one["by"] == "serving"} == set(JOBS)
        ended(later, log, signal.SIGINT)
    finally:
        site.publisher.close()
        for process in (first, later):
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
