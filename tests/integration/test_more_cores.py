"""The autoscaler's query on more cores: what it has learned of the jobs goes with it, and executors decide as well."""

import json
import sys
import time

import psutil
import pytest

from configs.settings import load
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.spark.query_session import SpreadError, kept_partitions, spread_state
from pipelines.stack.stack import Stack
from tests.fakes.waiting import PATIENCE_S, wait_until
from tests.integration.test_autoscaler_query import JOB, Job, running
from tidecast.messages import MetricSample

pytestmark = pytest.mark.spark
SETTING = "autoscaler.cores"


def test_what_is_known_of_a_job_is_there_on_more_partitions_and_on_fewer(spark, empty_topics, tmp_path):
    settings, checkpoint = load(kafka=empty_topics.model_dump(), autoscaler={"policy": "reactive"}), tmp_path / "query"
    assert kept_partitions(checkpoint) is None and spread_state(spark, checkpoint, 2, SETTING) == []
    job = Job(empty_topics)
    try:
        with running(spark, settings, checkpoint):
            first = job.until(lambda d: d["inputs"].get("since_change_s", 1e6) < 1e6)[-1]  # the second one
        assert spread_state(spark, checkpoint, 1, SETTING) == []
        changed_at = [first["wall_time"] - first["inputs"]["since_change_s"]]
        for before, after, policy in ((1, 3, "static"), (3, 2, "reactive")):
            said = f"what is known of the jobs is spread over {after} partitions; it was {before}"
            assert spread_state(spark, checkpoint, after, SETTING) == [said]
            assert kept_partitions(checkpoint) == after
            other = load(kafka=empty_topics.model_dump(), autoscaler={"policy": policy})
            with running(spark, other, checkpoint):
                (*_, made) = job.until(lambda d, wanted=policy: d["policy"] == wanted)
            since = made["wall_time"] - made["inputs"]["since_change_s"]  # a million seconds, where nothing is known
            assert any(since == pytest.approx(one, abs=0.1) for one in changed_at)
            changed_at.append(made["wall_time"])  # does not count where the query was stopped before it was committed
    finally:
        job.close()


def test_a_checkpoint_that_cannot_be_spread_is_left_and_refused_with_a_remedy(spark, tmp_path):
    log = tmp_path / "offsets"
    log.mkdir()
    (log / "0").write_text('v1\n{"conf": {"spark.sql.shuffle.partitions": "1"}}\n{}')
    with pytest.raises(SpreadError, match=r"1 partition.*no committed microbatch.*Set autoscaler\.cores=1"):
        spread_state(spark, tmp_path, 4, SETTING)
    assert kept_partitions(tmp_path) == 1
    (log / "1").write_text("v1\n{")  # a damaged one is the query's to refuse
    assert kept_partitions(tmp_path) is None and spread_state(spark, tmp_path, 4, SETTING) == []


def test_on_a_cluster_each_job_is_decided_on_by_an_executor(broker, tmp_path):
    own = {"bootstrap": broker.bootstrap, "prefix": "spread."}
    jobs = [f"{JOB}_{number}" for number in range(4)]
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    for job in jobs:
        (contracts / f"{job}.yaml").write_text(f"job: {job}\n")
    settings = load(var=tmp_path / "var", contracts=contracts, kafka=own)
    with Stack(settings, {"spark"}) as stack:
        create_topics(stack.settings.kafka)
        where = {"TIDECAST_AUTOSCALER__MASTER": stack.settings.spark.master, "TIDECAST_AUTOSCALER__CORES": "2"}
        argv = [sys.executable, "-m", "tidecast", "autoscale", "--checkpoint", str(tmp_path / "query")]
        query = stack.spawn("autoscaler", argv, where)
        publisher, answers = Publisher(stack.settings.kafka), Follower(stack.settings.kafka, ["decisions"])
        decided = set()

        def all_decided():
            assert query.running(), query.last_lines()
            now = time.time()
            for job in jobs:
                sample = MetricSample(job, "interval", now - 1, now, arrival_rps=20.0, executors=1, task_ceiling=8)
                publisher.send("metrics", job, sample)
            decided.update(json.loads(record.value)["job"] for record in answers.poll(0.5))
            return decided == set(jobs)

        wait_until(all_decided, "a decision for each job", PATIENCE_S, every_s=0.1)
        backends = [
            process for process in psutil.process_iter(["cmdline"])
            if "CoarseGrainedExecutorBackend" in " ".join(process.info["cmdline"] or [])
            and process.environ().get("TIDECAST_STACK") == stack.id
        ]  # fmt: skip
        assert len(backends) == 2
        assert kept_partitions(tmp_path / "query") == 2
        publisher.close()
        answers.close()
