"""Serving as a streaming query in a process of its own: two jobs, a new champion, and a later one on more cores."""

import json
import os
import signal
from contextlib import closing

import pytest

from pipelines.kafka.broker import read_records
from pipelines.kafka.claim import SERVING, Claim
from pipelines.spark.query_session import kept_partitions
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.spark_serving import JOBS, TwoJobs, ended, epoch_of

pytestmark = pytest.mark.spark


def test_two_jobs_are_forecast_a_champion_is_swapped_and_a_later_server_goes_on(empty_topics, tmp_path, forking_python):
    """The later one begins when a claim has made the first leave: how they wait for each other test_spark_claim has."""
    site = TwoJobs(empty_topics, tmp_path)
    site.say(40)
    process, log = site.start(1, 2, PYSPARK_PYTHON=forking_python)
    try:
        first = epoch_of(process, log)
        (made, *_) = site.forecast(epoch=first, version="1")
        assert made["model"].endswith("-forecaster") and len(made["quantiles"]) == TASK.horizon
        site.promote("2")
        site.forecast(epoch=first, version="2")
        assert "leaving" not in log.read_text()
        with closing(Claim(empty_topics, site.publisher, SERVING)) as claim:
            second = epoch_of(process, log, 2)
        assert "a later epoch has taken over; leaving" in log.read_text()
        assert second > claim.epoch > first
        again = site.forecast(epoch=second, version="2")
        assert kept_partitions(tmp_path / "var" / "serving" / f"{STEP:g}" / "query") == 2
        assert "spread over 2 partitions; it was 1" in log.read_text()
        assert len({(one["job"], one["time"]) for one in again}) == len(again)
        beats = [json.loads(record.value) for record in read_records(empty_topics, "heartbeats")]
        assert {one["job"] for one in beats if one["by"] == "serving"} == set(JOBS)
        ended(process, log)
    finally:
        site.close()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
