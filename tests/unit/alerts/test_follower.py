"""The follower's edges: what it reads of topics, contracts, lake and Airflow, and what a scrape gets."""

import json
import threading
import time
import urllib.request
from dataclasses import replace

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from configs.sections import Kafka
from configs.settings import load
from models.alerts.metric import METRICS, Sample
from models.alerts.samples import samples_of
from models.alerts.standing import holding
from models.pool.state import PoolState
from pipelines.alerts import rounds
from pipelines.alerts.contracts import FolderOfContracts
from pipelines.alerts.exposition import EndpointError, Exposition, open_endpoint
from pipelines.alerts.follower import Reports
from pipelines.alerts.rounds import Rounds, newest_drifts
from pipelines.alerts.topics import FollowedTopics
from pipelines.bench.team.alerts.made_up_job import BEGAN, CONTRACT, JOB, MadeUpJob
from pipelines.kafka.broker import BrokerError, Record
from pipelines.lake.folder import lake_folder
from pipelines.lake.size import day_growth, table_size
from tidecast.messages import Decision, MetricSample, Reject, encode

NOW, OPENMETRICS = 1.7e9, "application/openmetrics-text; version=1.0.0"
SAMPLE = MetricSample(JOB, "interval", NOW, NOW, arrival_rps=4.0, lag_records=3, executors=2)


@pytest.fixture(scope="module")
def endpoint():
    exposition = Exposition()
    port, close = open_endpoint(exposition, "127.0.0.1", 0)
    yield exposition, port
    close()


def scraped(port, accept="text/plain"):
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(asked, timeout=5) as answer:
        return answer.read().decode(), answer.headers["Content-Type"]


def test_a_scrape_gets_every_sample_in_both_formats(endpoint):
    exposition, port = endpoint
    exposition.samples = samples_of(MadeUpJob().look(BEGAN), BEGAN, pytest.fail)
    wanted = {(name, *sorted(one.labels.items())): one.value for name, of in exposition.samples.items() for one in of}
    for accept, parse in (
        ("text/plain", parse_text),
        ("application/openmetrics-text; version=1.0.0", parse_openmetrics),
    ):
        text, kind = scraped(port, accept)
        assert kind.startswith(accept.split(";")[0])
        found = {(s.name, *sorted(s.labels.items())): s.value for family in parse(text) for s in family.samples}
        assert found == wanted


def test_every_metric_is_declared_even_without_a_sample(endpoint):
    endpoint[0].samples = {}
    text, _ = scraped(endpoint[1])
    assert all(f"# TYPE {metric.name} " in text for metric in METRICS)


@pytest.mark.parametrize("name", ['a"b', "a\nb", "a\\b", "\ud800", "é" * 40])
def test_a_strange_name_is_escaped_and_the_others_stay(endpoint, name):
    exposition, port = endpoint
    of = "tidecast_job_contract_valid"
    exposition.samples = {of: [Sample(of, {"job": name}, 0.0), Sample(of, {"job": "orders"}, 1.0)]}
    (family,) = [one for one in parse_text(scraped(port)[0]) if one.name == of]
    assert [sample.labels["job"] for sample in family.samples] == [name.replace("\ud800", "?"), "orders"]


def test_an_address_that_is_taken_is_told_with_the_remedy(endpoint):
    with pytest.raises(EndpointError, match="--port"):
        open_endpoint(Exposition(), "127.0.0.1", endpoint[1])


def record(topic, key, message):
    value = message if isinstance(message, bytes) else encode(message)
    return Record(topic, 0, 0, key, value, NOW)


def test_records_of_jobs_with_a_contract_are_taken_and_bad_ones_left_out():
    topics = FollowedTopics(Kafka(), lambda: {JOB: CONTRACT}, 0.0, Reports())
    topics.add([
        record("metrics", JOB, b"{"), record("metrics", None, SAMPLE), record("metrics", "other", SAMPLE),
        record("metrics", JOB, replace(SAMPLE, job="other")), record("decisions", JOB, SAMPLE),
        record("metrics", JOB, SAMPLE),
        *(record("rejects", "metrics", Reject("metrics", 0, 1, by, "r", "v", NOW)) for by in (
            "serving", "agent of orders", "agent of b", "autoscaler", "job x",
        )),
    ])  # fmt: skip
    jobs, refused = topics.known([JOB])
    assert [*jobs] == [JOB] and jobs[JOB].sample == SAMPLE and jobs[JOB].decision is None
    assert refused == {"serving": 1, "agent": 2, "autoscaler": 1, "other": 1}
    assert topics.known([])[0] == {} == topics.known([JOB])[0], "a contract that is gone takes all with it"


def test_pools_are_followed_until_they_are_gone():
    topics = FollowedTopics(Kafka(), dict, 0.0, Reports())
    state = PoolState("shared", NOW, "divided", cores=8, usable=8.0)
    older, gone = replace(state, wall_time=NOW - 5, cores=4), replace(state, wall_time=NOW + 1, state="gone")
    topics.add([record("pools", "shared", one) for one in (state, older, b"{")] + [record("pools", "other", state)])
    assert topics.pools == {"shared": state}
    topics.add([record("pools", "shared", gone)])
    assert topics.pools == {}


def test_a_value_that_breaks_one_job_leaves_the_others(monkeypatch):
    def breaks(job, message, contract, began):
        if message.job == "bad":
            raise OverflowError
        return replace(job, sample=message)

    monkeypatch.setattr("pipelines.alerts.topics.take", breaks)
    topics = FollowedTopics(Kafka(), lambda: {"bad": CONTRACT, JOB: CONTRACT}, 0.0, Reports())
    topics.add([record("metrics", "bad", replace(SAMPLE, job="bad")), record("metrics", JOB, SAMPLE)])
    assert topics.known(["bad", JOB])[0].keys() == {JOB}


def test_a_broker_that_is_away_is_said_once_and_tried_again(monkeypatch, capsys):
    tried, stop = [], threading.Event()

    def connect(kafka, topics):
        tried.append(topics)
        if len(tried) == 3:
            stop.set()
        raise BrokerError(f"away, for the {len(tried)}. time")

    monkeypatch.setattr("pipelines.alerts.topics.Follower", connect)
    monkeypatch.setattr("pipelines.alerts.topics.AGAIN_S", 0.0)
    FollowedTopics(Kafka(), dict, 0.0, Reports()).run(stop)
    assert len(tried) == 3 and capsys.readouterr().err == "metrics: topics: away, for the 1. time\n"


class KeptTopics:
    """Stands in for followers of a broker that is lost once, after everything was read."""

    def __init__(self, stop):
        self.stop, self.seeks, self.rounds = stop, [], 0
        now = time.time()
        decision = Decision(
            "d", JOB, now - 50, now - 50, 1.0, "act", "mpc", 2, "r", ["up"], {"promise": {"late_s": 7.0}}, {}
        )
        late = [
            MetricSample(JOB, "batch", now - at, now - at, batch_rows=9, batch_s=2.0, latency_max_s=60.0)
            for at in range(190, 0, -10)
        ]
        self.kept = {
            "decisions": [[record("decisions", JOB, decision)]],
            "metrics": [
                [record("metrics", JOB, one) for one in late],
                [record("metrics", JOB, replace(SAMPLE, wall_time=now))],
            ],
        }  # fmt: skip

    def __call__(self, kafka, topics):
        return KeptFollower(self, topics)


class KeptFollower:
    def __init__(self, kept, topics):
        self.kept, self.topics = kept, topics

    def seek_to_time(self, at):
        self.kept.seeks.append((self.topics[0], round(time.time() - at)))

    def poll(self, wait_s):
        left = self.kept.kept.get(self.topics[0], [])
        if left:
            return left.pop(0)
        if self.topics[0] == "metrics":
            self.kept.rounds += 1
            if self.kept.rounds == 3:
                raise BrokerError("lost")
            if self.kept.rounds == 6:
                self.kept.stop.set()
        return []

    def close(self):
        pass


def test_decisions_are_read_before_metrics_and_a_lost_broker_is_gone_on_with_where_it_was(monkeypatch, capsys):
    stop = threading.Event()
    kept = KeptTopics(stop)
    monkeypatch.setattr("pipelines.alerts.topics.Follower", kept)
    monkeypatch.setattr("pipelines.alerts.topics.AGAIN_S", 0.0)
    topics = FollowedTopics(Kafka(), lambda: {JOB: CONTRACT}, 0.0, Reports())
    topics.run(stop)
    assert kept.seeks == [
        ("decisions", 86_400), ("metrics", 3600), ("outcomes", 0), ("decisions", 0), ("metrics", 0), ("outcomes", 0),
    ]  # fmt: skip
    job = topics.known([JOB])[0][JOB]
    assert job.decisions == 1 and job.sample.executors == 2
    assert job.late_s > job.account.unread[1] > 0, "what came before the decision is in what it says"
    assert capsys.readouterr().err == "metrics: topics: lost\nmetrics: topics: well again\n"
    assert not topics.caught_up, "records may still come"


@pytest.mark.parametrize(("quiet_s", "stamped", "caught_up"), [(0.0, 0.0, True), (9.0, 0.0, False), (9.0, 4e9, True)])
def test_what_was_kept_is_read_once_a_new_record_comes_or_none_does(monkeypatch, quiet_s, stamped, caught_up):
    stop = threading.Event()
    kept = KeptTopics(stop)
    kept.kept, kept.rounds = {"metrics": [[replace(record("metrics", JOB, SAMPLE), timestamp=stamped)]]}, 3
    monkeypatch.setattr("pipelines.alerts.topics.Follower", kept)
    monkeypatch.setattr("pipelines.alerts.topics.QUIET_S", quiet_s)
    topics = FollowedTopics(Kafka(), lambda: {JOB: CONTRACT}, 0.0, Reports())
    topics.run(stop)
    assert topics.caught_up == caught_up


def test_a_contract_that_becomes_wrong_stays_as_it_was_and_is_said_to_be_wrong(tmp_path):
    folder = FolderOfContracts(tmp_path)
    for name, text in (("orders", "job: orders"), ("a b", "job: a b"), ("bad", "job: bad\nexecutors: 3")):
        (tmp_path / f"{name}.yaml").write_text(text)
    folder.look()
    assert [*folder.contracts] == ["orders"] and folder.wrong == {"a b", "bad"}
    (tmp_path / "orders.yaml").write_text("job: orders\nlatency_target_s: -1")
    folder.look()
    assert [*folder.contracts] == ["orders"] and folder.wrong == {"a b", "bad", "orders"}
    for file in tmp_path.iterdir():
        file.unlink()
    folder.look()
    assert not folder.contracts and not folder.wrong
    tmp_path.rmdir()
    folder.look()


def commit(root, table, version, *actions):
    log = root / table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020d}.json").write_text("\n".join(map(json.dumps, actions)))


def origin(partition, judged_at, end):
    said = {
        "topic": "metrics", "topic_id": "t", "partition": partition, "start": {"0": 0}, "end": {"0": end},
        "judged_at": judged_at, "stored": 90, "quarantined": 10,
    }  # fmt: skip
    return {"commitInfo": {"userMetadata": json.dumps({"origin": said})}}


def test_what_was_added_counts_as_growth_and_what_was_merged_does_not(tmp_path):
    commit(tmp_path, "metrics", 0, {"add": {"size": 700, "dataChange": True}}, origin("a", NOW, 100))
    commit(tmp_path, "metrics", 1, {"add": {"size": 900, "dataChange": False}}, {"remove": {"size": 7}})
    (tmp_path / "metrics" / "part-0.parquet").write_bytes(b"x" * 1000)
    (tmp_path / "metrics" / "_delta_log" / "9.checkpoint.parquet").write_bytes(b"x" * 50)
    size, files = table_size(tmp_path, "metrics")
    assert files == 1 and size > 1050
    assert day_growth(tmp_path, "metrics", time.time()) == 700
    assert day_growth(tmp_path, "metrics", time.time() + 86_401) == 0
    assert table_size(tmp_path, "none") == (0, 0)


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """Rounds over a lake whose newest ingest took offsets up to 100; the topic ends at 130."""
    settings = load(var=tmp_path)
    commit(lake_folder(settings), "metrics", 0, origin("b", NOW, 100))
    commit(lake_folder(settings), "metrics", 1, origin("a", NOW - 3600, 60))  # an older partition, repeated
    monkeypatch.setattr(rounds, "topic_offsets", lambda kafka, topic: {0: (0, 130), 1: (0, 5)})
    monkeypatch.setattr(rounds, "ROUND_S", 0.0)
    return settings


def gone_round(settings, times=1):
    told, stop, found = [], threading.Event(), None

    def report(about, what):
        told.append((about, what))
        if len([one for one, _ in told if one == "lake"]) == times:
            stop.set()

    found = Rounds(settings, report)
    found.run(stop)
    return found, told


def test_a_round_tells_what_the_last_ingest_did_and_what_waits(lake):
    found, told = gone_round(lake)
    known = found.ingests["metrics"]
    assert (known.began, known.stored, known.quarantined, known.waiting) == (NOW, 90, 10, 35)
    assert found.broker_up and found.lake.size_bytes["metrics"] > 0 and found.lake.free_bytes > 0
    assert told == [("broker", ""), ("lake", "")]


def test_without_a_broker_what_waits_is_not_known(lake, monkeypatch):
    def away(kafka, topic):
        raise BrokerError("away")

    monkeypatch.setattr(rounds, "topic_offsets", away)
    found, told = gone_round(lake, times=2)
    assert found.broker_up is False and found.ingests["metrics"].waiting is None and ("broker", "away") in told


def test_a_lake_that_is_damaged_is_said_and_ends_nothing(lake):
    (lake_folder(lake) / "metrics" / "_delta_log" / f"{2:020d}.json").write_text('{"commitInfo": no')
    _, told = gone_round(lake, times=2)
    assert told[1][0] == "lake" and told[1][1].startswith("cannot be looked at: JSONDecodeError")


def test_no_lake_is_no_trouble(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "topic_offsets", lambda kafka, topic: {})
    found, told = gone_round(load(var=tmp_path))
    assert found.lake is None and found.ingests == {} and told[-1] == ("lake", "")


def test_the_newest_drift_of_each_job_is_taken_from_the_asset_events():
    def event(job, timestamp, name="drift", **more):
        return {"name": name, "timestamp": timestamp, "extra": {"job": job, "factor": 1.3, **more}}

    found = newest_drifts([
        event("a", "2027-01-15T08:00:00Z"), event("a", "2027-01-14T08:00:00Z", factor=9),
        event("b", "2027-01-15T08:00:00.5+00:00", factor=0.7), {"name": "drift", "extra": None}, {},
        event("c", "yesterday"), event("d", "2027-01-15T08:00:00Z", name="metrics"),
    ])  # fmt: skip
    assert {job: (one.reported, one.factor) for job, one in found.items()} == {
        "a": (1.8e9, 1.3), "b": (1.8e9 + 0.5, 0.7),
    }  # fmt: skip


def test_a_thousand_jobs_are_looked_at_within_a_second():
    job = MadeUpJob()
    known = job.look(BEGAN)
    jobs = {f"job-{n}": known.jobs[JOB] for n in range(1000)}
    many = replace(known, jobs=jobs, contracts=dict.fromkeys(jobs, CONTRACT), drifts={})
    began = time.process_time()
    assert holding(samples_of(many, BEGAN, pytest.fail), BEGAN) == {}
    assert time.process_time() - began < 1
