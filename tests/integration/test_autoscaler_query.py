"""The autoscaler query on a real broker: agents swapped under it, then another policy and more cores on its state."""

import json
import time
from contextlib import contextmanager

import pytest

from configs.settings import load
from models.policy.live.recomputed import parse_contracts, recompute_decision
from pipelines.kafka import spark as source
from pipelines.kafka.broker import Follower, read_records
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.signing import Signer
from pipelines.scale import autoscaler
from pipelines.scale.artifact_sync import ArtifactSync, SyncedArtifacts
from pipelines.scale.autoscaler import start_query
from pipelines.scale.contracts import AcceptedContracts, accepted_file, make_contract_watch
from pipelines.scale.learned import Learned
from pipelines.scale.pool.grants import Grants, JobGrant, KeptGrants, grants_file
from pipelines.spark.query_session import SpreadError, kept_partitions, spread_state
from tests.fakes.agents import Versions, read
from tests.fakes.waiting import wait_until
from tidecast.messages import MetricSample

pytestmark = pytest.mark.spark
JOB, CORES, EVERY = "word_count", "autoscaler.cores", {"trigger": "2 seconds"}


class Job:
    """Says every half a second how it is, and does at once what was decided."""

    def __init__(self, kafka):
        self.publisher, self.decisions = Publisher(kafka), Follower(kafka, ["decisions"])
        self.executors = 1

    def until(self, wanted, seconds=240):
        """The first decision that is as wanted, with what came before it."""
        heard, deadline = [], time.monotonic() + seconds
        while time.monotonic() < deadline:
            now = time.time()
            sample = MetricSample(
                JOB,
                "interval",
                now - 1,
                now,
                arrival_rps=20.0,
                lag_records=5,
                executors=self.executors,
                task_ceiling=8,
            )
            self.publisher.send("metrics", JOB, sample)
            for record in self.decisions.poll(0.5):
                heard.append(json.loads(record.value))
                self.executors = heard[-1]["executors"]
                if wanted(heard[-1]):
                    return heard
        pytest.fail(f"not within {seconds} s; the last of {len(heard)} decisions: {heard[-1:]}")

    def close(self):
        self.publisher.close()
        self.decisions.close()


@contextmanager
def running(spark, settings, checkpoint, agents=None):
    make_contract_watch(settings, AcceptedContracts(accepted_file(checkpoint))).update()
    query = start_query(spark, settings, checkpoint, Learned(agents))
    try:
        yield query
    finally:
        query.stop()


def signed(kafka, folder):
    """The same broker, with a key for the job."""
    (folder / "keys.yaml").write_text(f"{JOB}: 0123456789abcdef0123456789abcdef")
    return kafka.model_copy(update={"signing_keys": folder / "keys.yaml"})


def changed_at(decision):
    """When the target had changed last; eleven days before the decision, where nothing is known of it."""
    return decision["wall_time"] - decision["inputs"]["since_change_s"]


def test_agents_policies_and_cores_change_and_the_state_stays(spark, empty_topics, tmp_path):
    kafka, registry, job = signed(empty_topics, tmp_path), Versions(JOB), Job(empty_topics)
    settings, checkpoint = load(kafka=kafka.model_dump(), autoscaler={"policy": "dqn", **EVERY}), tmp_path / "query"
    accepted = AcceptedContracts(accepted_file(checkpoint))
    sync = ArtifactSync(registry.source(), accepted.all, tmp_path / "agents", 0.1)
    assert kept_partitions(checkpoint) is None and spread_state(spark, checkpoint, 2, CORES) == []
    try:
        with running(spark, settings, checkpoint, SyncedArtifacts(tmp_path / "agents", read)):
            heard = job.until(lambda d: "stand_in" in d["codes"])
            assert heard[-1]["policy"] == "mpc"
            registry.versions["1"] = "2"
            assert sync.sync(1.0) == [f"{JOB}: agent is version 1"]
            first = job.until(lambda d: d["inputs"].get("version") == "1" and d["executors"] == 2)[-1]
            registry.versions["2"] = "3"
            sync.sync(2.0)
            second = job.until(lambda d: d["inputs"].get("version") == "2")[-1]
            assert (first["policy"], second["policy"], second["executors"]) == ("dqn", "dqn", 3)
            assert second["inputs"]["target"] == 2 and second["inputs"]["carried"]["asked"] > 0
            assert second["inputs"]["since_change_s"] < 600
        assert spread_state(spark, checkpoint, 1, CORES) == []
        said = ["what is known of the jobs is spread over 2 partitions; it was 1"]
        assert spread_state(spark, checkpoint, 2, CORES) == said
        assert kept_partitions(checkpoint) == 2
        other = load(kafka=kafka.model_dump(), autoscaler={"policy": "reactive", **EVERY})
        with running(spark, other, checkpoint):
            third = job.until(lambda d: d["policy"] == "reactive" and "needed_observed" in d["inputs"])[-1]
            # A batch that the stop cut off is repeated: nothing it did is known, its change to three executors neither.
            changes = second["wall_time"], changed_at(second)
            assert min(abs(changed_at(third) - at) for at in changes) < 0.1, "a change that nobody made, or none at all"
            assert "asked" not in third["inputs"]["carried"]
            contracts = parse_contracts(json.loads(record.value) for record in read_records(kafka, "contracts"))
            assert recompute_decision(third, contracts) == (third["executors"], third["reason"], third["codes"])
            granted = JobGrant("shared", 2, 0, "pool shared: yields 1 to rides")
            Grants(grants_file(checkpoint)).write(KeptGrants({JOB: granted}, {}))
            # Until the cool-down after the change to three is over, no more than there are is wanted, and none yielded.
            pooled = job.until(lambda d: d["reason"].endswith("; pool shared: yields 1 to rides"))[-1]
            assert (pooled["executors"], pooled["inputs"]["pool"]) == (2, granted._asdict())
            # A batch's records reach their topics one by one: a decision may be read before its want is written.
            wait_until(lambda: list(read_records(kafka, "wants")), "what it wants of its pool", every_s=0.1)
        obeyed = [record for topic in ("decisions", "heartbeats", "wants") for record in read_records(kafka, topic)]
        for record in obeyed:
            Signer.of(kafka).check_record(record, JOB)
        assert {record.topic for record in obeyed} == {"decisions", "heartbeats", "wants"}
    finally:
        job.close()


def test_what_came_while_the_query_was_stopped_is_read_in_batches_that_a_worker_can_hold(
    spark, empty_topics, tmp_path, monkeypatch
):
    monkeypatch.setattr(source, "BATCH_MOST", 10)
    monkeypatch.setattr(autoscaler, "_newest", lambda _: "earliest")
    publisher, now = Publisher(empty_topics), time.time()
    for second in range(35):
        publisher.send("metrics", JOB, MetricSample(JOB, "interval", now + second, now, arrival_rps=20.0, executors=1))
    publisher.close()
    with running(spark, load(kafka=empty_topics.model_dump()), tmp_path / "query") as query:
        wait_until(lambda: sum(batch_rows(query)) >= 35, "all of them read", every_s=0.5)
        assert max(batch_rows(query)) <= 10


def batch_rows(query):
    return [progress["sources"][0]["numInputRows"] for progress in query.recentProgress]


def test_a_checkpoint_that_cannot_be_spread_is_left_and_refused_with_a_remedy(spark, tmp_path):
    log = tmp_path / "offsets"
    log.mkdir()
    (log / "0").write_text('v1\n{"conf": {"spark.sql.shuffle.partitions": "1"}}\n{}')
    with pytest.raises(SpreadError, match=r"1 partition.*no committed microbatch.*Set autoscaler\.cores=1"):
        spread_state(spark, tmp_path, 4, CORES)
    assert kept_partitions(tmp_path) == 1
    (log / "1").write_text("v1\n{")  # a damaged one is the query's to refuse
    assert kept_partitions(tmp_path) is None and spread_state(spark, tmp_path, 4, CORES) == []
