"""The autoscaler's query on executors of a cluster of its own."""

import json
import sys
import time

from configs.settings import load
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.signing import Signer
from pipelines.kafka.topics import create_topics
from pipelines.spark.query_session import kept_partitions
from pipelines.stack.executors import find_executors
from pipelines.stack.stack import Stack
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.messages import MetricSample

JOBS = [f"word_count_{number}" for number in range(4)]


def test_on_a_cluster_each_job_is_decided_on_by_an_executor(broker, tmp_path):
    keys = tmp_path / "keys.yaml"
    keys.write_text("".join(f"{job}: 0123456789abcdef0123456789abcdef\n" for job in JOBS))
    own = {"bootstrap": broker.bootstrap, "prefix": "spread.", "signing_keys": keys}
    contracts = tmp_path / "contracts"
    contracts.mkdir()
    for job in JOBS:
        (contracts / f"{job}.yaml").write_text(f"job: {job}\n")
    settings = load(var=tmp_path / "var", contracts=contracts, kafka=own)
    with Stack(settings, {"spark"}) as stack:
        create_topics(stack.settings.kafka)
        where = {"TIDECAST_AUTOSCALER__MASTER": stack.settings.spark.master, "TIDECAST_AUTOSCALER__CORES": "2"}
        argv = [sys.executable, "-m", "tidecast", "autoscale", "--checkpoint", str(tmp_path / "query")]
        here_alone = {**where, "TIDECAST_KAFKA__SIGNING_KEYS": "/proc/self/fd/7"}
        opened = ["bash", "-c", 'exec 7<"$0" && exec "$@"', str(keys), *argv]
        refused = stack.spawn("refused", opened, here_alone)
        assert refused.wait(PATIENCE_S) == 2
        assert "executors cannot read the file of signing keys" in refused.last_lines()
        query = stack.spawn("autoscaler", argv, where)
        publisher, answers = Publisher(stack.settings.kafka), Follower(stack.settings.kafka, ["decisions"])
        decided, signer = set(), Signer.of(stack.settings.kafka)

        def all_decided():
            assert query.running(), query.last_lines()
            now = time.time()
            for job in JOBS:
                sample = MetricSample(job, "interval", now - 1, now, arrival_rps=20.0, executors=1, task_ceiling=8)
                publisher.send("metrics", job, sample)
            for record in answers.poll(0.5):
                job = json.loads(record.value)["job"]
                signer.check_record(record, job)  # executors sign, with keys that they read themselves
                decided.add(job)
            return decided == set(JOBS)

        wait_until(all_decided, "a decision for each job", PATIENCE_S, every_s=0.1)
        assert len(find_executors(stack.id)) == 2
        assert kept_partitions(tmp_path / "query") == 2
        publisher.close()
        answers.close()
