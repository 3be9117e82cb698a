"""Serving as a streaming query on executors of a cluster of its own, which get each champion."""

import os
import signal

from configs.settings import load
from pipelines.spark.query_session import kept_partitions
from pipelines.stack.executors import find_executors
from pipelines.stack.stack import Stack
from tests.fakes.forecasters import STEP
from tests.fakes.spark_serving import TwoJobs, ended, epoch_of


def test_on_a_cluster_each_job_is_forecast_by_an_executor_and_a_champion_is_swapped(empty_topics, tmp_path):
    settings = load(var=tmp_path / "stack", kafka=empty_topics.model_dump())
    with Stack(settings, {"spark"}) as stack:
        site = TwoJobs(empty_topics, tmp_path)
        server, log = site.start(2, TIDECAST_SERVING__MASTER=stack.settings.spark.master)
        try:
            epoch = epoch_of(server, log)
            site.say(40)
            site.forecast(epoch=epoch, version="1")
            assert len(find_executors(stack.id)) == 2
            site.promote("2")
            site.forecast(epoch=epoch, version="2")
            assert kept_partitions(tmp_path / "var" / "serving" / f"{STEP:g}" / "query") == 2
            ended(server, log)
        finally:
            site.close()
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
                server.wait()
