"""The follower's edges: what it reads of topics, contracts, lake and Airflow, and what a scrape gets."""

import json
import math
import os
import threading
import time
import urllib.request
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from configs.sections import Kafka
from configs.settings import load
from models.alerts.knowledge import Ingested, Knowledge, LakeSeen
from models.alerts.metric import METRICS, Sample
from models.alerts.samples import samples_of
from models.alerts.standing import holding
from models.pool.state import PoolState
from pipelines.airflow import rest
from pipelines.alerts import follower, rounds
from pipelines.alerts.clock import SteadyClock
from pipelines.alerts.contracts import FolderOfContracts
from pipelines.alerts.exposition import EndpointError, Exposition, open_endpoint
from pipelines.alerts.follower import CAUSES, Alerting, Reports
from pipelines.alerts.rounds import Rounds, newest_drifts
from pipelines.alerts.topics import FollowedTopics
from pipelines.bench.team.alerts.made_up_job import BEGAN, CONTRACT, JOB, MadeUpJob
from pipelines.kafka.broker import Record
from pipelines.kafka.connection import BrokerError, TopicError
from pipelines.lake.folder import lake_folder
from pipelines.lake.size import LONGEST_S, day_growth, table_size
from pipelines.watched import GONE_S
from tests.fakes.drifts import DRIFTED
from tests.fakes.unlisted import unlisted
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
    topics = FollowedTopics(Kafka(), lambda: {JOB: CONTRACT}, Reports())
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
    topics = FollowedTopics(Kafka(), dict, Reports())
    state = PoolState("shared", NOW, "divided", cores=8, usable=8.0)
    first, gone = replace(state, wall_time=NOW + 50, cores=4), replace(state, wall_time=NOW + 1, state="gone")
    topics.add([record("pools", "shared", one) for one in (first, state, b"{")] + [record("pools", "other", state)])
    assert topics.pools == {"shared": state}, "the autoscaler's clock was set back"
    topics.add([record("pools", "shared", gone)])
    assert topics.pools == {}


def test_a_value_that_breaks_one_job_leaves_the_others(monkeypatch):
    def breaks(job, message, contract, fresh):
        if message.job == "bad":
            raise OverflowError
        return replace(job, sample=message)

    monkeypatch.setattr("pipelines.alerts.topics.take", breaks)
    topics = FollowedTopics(Kafka(), lambda: {"bad": CONTRACT, JOB: CONTRACT}, Reports())
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
    FollowedTopics(Kafka(), dict, Reports()).run(stop)
    assert len(tried) == 3 and capsys.readouterr().err == "metrics: topics: away, for the 1. time\n"


def kept_records():
    """A decision and late batches as topics have kept them, and what came newest."""
    now = time.time()
    decision = Decision(
        "d", JOB, now - 50, now - 50, 1.0, "act", "mpc", 2, "r", ["up"], {"promise": {"late_s": 7.0}}, {}
    )
    late = [
        MetricSample(JOB, "batch", now - at, now - at, batch_rows=9, batch_s=2.0, latency_max_s=60.0)
        for at in range(190, 0, -10)
    ]
    return {"decisions": [decision], "metrics": [*late, replace(SAMPLE, wall_time=now)]}


class KeptTopics:
    """Stands in for a broker whose topics hold these messages; `lost` after so many polls of metrics, once."""

    def __init__(self, kept, stop, polls=6, lost=None, forbidden=()):
        self.kept, self.stop, self.polls, self.lost = kept, stop, polls, lost
        self.forbidden, self.read, self.seeks, self.polled = {*forbidden}, [], [], 0

    def __call__(self, kafka, topics):
        return KeptFollower(self, *topics)

    def poll_metrics(self):
        self.polled += 1
        if self.polled == self.lost:
            raise BrokerError("lost")
        if self.polled >= self.polls:
            self.stop.set()


class KeptFollower:
    def __init__(self, broker, topic):
        self.broker, self.topic, self.at = broker, topic, 0
        self.messages = broker.kept.get(topic, [])
        self.refuse()

    def refuse(self):
        if self.topic in self.broker.forbidden:
            raise TopicError(f"no rights on {self.topic}")

    def ends(self):
        return {(self.topic, 0): len(self.messages)}

    def positions(self):
        return {(self.topic, 0): self.at}

    def seek_to_time(self, at):
        self.broker.seeks.append((self.topic, round(time.time() - at)))

    def seek(self, offsets):
        self.at = offsets.get((self.topic, 0), self.at)

    def poll(self, wait_s):
        self.refuse()
        if self.topic == "metrics":
            self.broker.poll_metrics()
        found = [
            replace(record(self.topic, JOB, one), offset=self.at + n)
            for n, one in enumerate(self.messages[self.at :][:4])
        ]
        self.at += len(found)
        self.broker.read += [(self.topic, one.offset) for one in found]
        return found

    def close(self):
        pass


def followed(monkeypatch, broker, again_s=0.0):
    monkeypatch.setattr("pipelines.alerts.topics.Follower", broker)
    monkeypatch.setattr("pipelines.alerts.topics.AGAIN_S", again_s)
    monkeypatch.setattr("pipelines.alerts.topics.TOPIC_AGAIN_S", 0.0)
    monkeypatch.setattr("pipelines.alerts.topics.POLL_S", 0.0)
    topics = FollowedTopics(Kafka(), lambda: {JOB: CONTRACT}, Reports())
    topics.run(broker.stop)
    return topics


def test_each_cause_of_a_trouble_is_said_once_and_that_it_is_over(capsys):
    reports = Reports()
    for what in ("away for 3 s", "away for 8 s", "no rights", "away for 9 s", "no rights", "", "", "no rights"):
        reports("topics", what)
    said = ["away for 3 s", "no rights", "well again", "no rights"]
    assert capsys.readouterr().err.splitlines() == [f"metrics: topics: {what}" for what in said]
    for letter in "abcdefghijklmnop":
        reports("airflow", letter)
    assert len(capsys.readouterr().err.splitlines()) == CAUSES


def test_a_contract_that_cannot_be_read_is_said_once_with_what_helps_and_never_its_webhook(capsys, tmp_path):
    settings, reports, file = load(var=tmp_path, contracts=tmp_path), Reports(), tmp_path / f"{JOB}.yaml"
    topics, rounds = FollowedTopics(Kafka(), lambda: {}, reports), Rounds(settings, reports)
    clock = SimpleNamespace(s=0.0, passed_s=0.0, now=lambda: clock.s)
    parts = FolderOfContracts(tmp_path), rounds, topics, Alerting(settings, reports, 0.0), Exposition(), reports
    right = f"job: {JOB}\nalerts: {{webhook: 'https://hooks.example/T0PSECRET'}}\n"
    for text in (f"{right}executors: none\n", None, f"{right}executors: none\n", right):
        file.unlink() if text is None else file.write_text(text)
        for _ in range(2):
            clock.s += 1
            follower._tick(clock, *parts)
    about, said = f"metrics: contract {JOB!r}: ", capsys.readouterr().err
    first, last = said.splitlines()
    assert first.startswith(f"{about}{JOB}.yaml, line 3: executors='none': ") and last == f"{about}well again"
    assert "T0PSECRET" not in said


def test_a_job_that_is_left_out_is_said_again_after_it_was_well(monkeypatch, capsys, tmp_path):
    settings, strange = load(var=tmp_path, contracts=tmp_path), iter([True, True, False, True])
    (tmp_path / f"{JOB}.yaml").write_text(f"job: {JOB}\n")

    def told(known, now, report):
        if next(strange):
            report(JOB, OverflowError("too much"))
        return {}

    monkeypatch.setattr(follower, "samples_of", told)
    reports = Reports()
    topics, rounds = FollowedTopics(Kafka(), lambda: {JOB: CONTRACT}, reports), Rounds(settings, reports)
    parts = FolderOfContracts(tmp_path), rounds, topics, Alerting(settings, reports, 0.0), Exposition(), reports
    for _ in range(4):
        follower._tick(SteadyClock(), *parts)
    left_out = f"metrics: job {JOB!r}: left out: OverflowError('too much')"
    assert capsys.readouterr().err.splitlines() == [left_out, f"metrics: job {JOB!r}: well again", left_out]


@pytest.mark.parametrize(
    ("caught_up", "broker_up", "behind_s", "told"),
    [(True, True, 0, True), (False, False, 9, True), (False, True, 9, False), (False, True, 130, True)],
)
def test_topics_that_may_not_be_read_keep_back_no_alert_of_lake_and_ingest(
    monkeypatch, tmp_path, caught_up, broker_up, behind_s, told
):
    settings, reports, looks = load(var=tmp_path, contracts=tmp_path), Reports(), []
    topics, rounds = FollowedTopics(Kafka(), lambda: {}, reports), Rounds(settings, reports)
    topics.caught_up, rounds.broker_up = caught_up, broker_up
    topics._behind_at -= behind_s
    watching = SimpleNamespace(failed={}, look=lambda *given: looks.append(given[5]))
    clock = SimpleNamespace(passed_s=300.0, ahead_s=0.0, now=lambda: 300.0)
    follower._tick(clock, FolderOfContracts(tmp_path), rounds, topics, watching, Exposition(), reports)
    assert looks == [caught_up] * told, "whether the topics were read is said"


def test_what_was_counted_stays_while_that_is_read_which_came_while_the_broker_was_away(tmp_path):
    """Prometheus takes a fall for a reset, and all that was counted before for what came since."""
    (tmp_path / f"{JOB}.yaml").write_text(f"job: {JOB}\n")
    settings, reports, exposition = load(var=tmp_path, contracts=tmp_path), Reports(), Exposition()
    topics, rounds = FollowedTopics(Kafka(), lambda: {JOB: CONTRACT}, reports), Rounds(settings, reports)
    parts = FolderOfContracts(tmp_path), rounds, topics, Alerting(settings, reports, 0.0), exposition, reports
    topics.add([record("decisions", JOB, one) for one in kept_records()["decisions"]])
    for topics.caught_up in (True, False):
        follower._tick(SteadyClock(), *parts)
        assert [one.value for one in exposition.samples["tidecast_job_decisions_total"]] == [1.0]
        assert ("tidecast_job_target_executors" in exposition.samples) == topics.caught_up


def test_decisions_are_read_first_and_a_lost_broker_is_gone_on_with_where_it_was(monkeypatch, capsys):
    broker = KeptTopics(kept_records(), threading.Event(), polls=12, lost=3)
    topics = followed(monkeypatch, broker)
    assert ("decisions", 86_400) in broker.seeks and ("metrics", 3600) in broker.seeks
    assert broker.read[0] == ("decisions", 0) and len(broker.read) == len({*broker.read}) == 21
    job = topics.known([JOB])[0][JOB]
    assert job.decision.id == "d" and job.sample.executors == 2
    assert job.account.unread[1] > 0, "what came before the decision is in what it says"
    assert (job.decisions, job.late_s) == (0, 0), "it was written before the process began"
    assert capsys.readouterr().err == "metrics: topics: lost\nmetrics: topics: well again\n"


def test_what_comes_after_the_start_counts_whatever_its_clock_says(monkeypatch):
    kept = kept_records()
    broker = KeptTopics(kept, threading.Event(), polls=20)
    poll = broker.poll_metrics

    def poll_and_decide():
        if broker.polled == 9:
            kept["decisions"].append(replace(kept["decisions"][0], id="d2", time=NOW, wall_time=NOW))
        poll()

    broker.poll_metrics = poll_and_decide
    assert followed(monkeypatch, broker).known([JOB])[0][JOB].decisions == 1


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(monkeypatch):
    kept = kept_records()
    broker = KeptTopics(kept, threading.Event(), polls=12, lost=7)
    poll = broker.poll_metrics

    def lose():
        if broker.polled == 6:
            kept["metrics"] = kept["metrics"][-1:]
            broker.read.clear()
        poll()

    broker.poll_metrics = lose
    followed(monkeypatch, broker)
    assert ("metrics", 0) in broker.read


@pytest.mark.parametrize("polls", [3, 12])
def test_what_was_kept_is_read_once_its_end_is_reached(monkeypatch, polls):
    topics = followed(monkeypatch, KeptTopics(kept_records(), threading.Event(), polls))
    assert topics.caught_up == (polls == 12)


def test_a_topic_that_cannot_be_read_leaves_the_others_and_is_said_with_the_remedy(monkeypatch, capsys):
    broker = KeptTopics(kept_records(), threading.Event(), polls=12, forbidden={"pools", "outcomes"})
    poll = broker.poll_metrics

    def poll_and_grant():
        if broker.polled == 6:
            broker.forbidden = {"heartbeats", "pools"}
        poll()

    broker.poll_metrics = poll_and_grant
    topics = followed(monkeypatch, broker)
    assert topics.caught_up and topics.unread == {"heartbeats", "pools"}
    assert topics.known([JOB])[0][JOB].sample.executors == 2
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(" What it tells")[0] for line in said] == [
        "metrics: topic outcomes: no rights on outcomes", "metrics: topic pools: no rights on pools",
        "metrics: topic outcomes: well again", "metrics: topic heartbeats: no rights on heartbeats",
    ]  # fmt: skip


def told_of(known, now):
    return {key.alert for key in holding(samples_of(known, now, pytest.fail), now)}


@pytest.fixture(scope="module")
def burning():
    """What is known of a job whose records have been late for half an hour, at 1790 s."""
    job = MadeUpJob(trouble="late", since=BEGAN + 60)
    return [job.look(BEGAN + now) for now in range(0, 1800, 10)][-1]


def test_of_a_topic_that_cannot_be_read_nothing_old_is_told_of_a_job(burning):
    for unread in ("", "metrics", "heartbeats"):
        known = replace(burning, unread=frozenset({unread}))
        assert ("TidecastBudgetBurnsFast" in told_of(known, BEGAN + 1800)) == (unread != "metrics")
        left = told_of(known, BEGAN + 4000)
        assert ("TidecastJobSilent" in left) == (unread != "metrics")
        assert not left & {"TidecastJobNotDecided", "TidecastJobNotForecast"}


def test_a_budget_burns_only_while_the_job_is_measured_and_a_broker_answers(burning):
    assert "TidecastBudgetBurnsFast" in told_of(burning, BEGAN + 1800)
    assert "TidecastBudgetBurnsFast" not in told_of(replace(burning, broker_up=False), BEGAN + 1800)
    assert told_of(burning, BEGAN + 1900) == {"TidecastJobSilent"}, "its driver has died"


def test_a_contract_that_becomes_wrong_stays_as_it_was_and_is_said_to_be_wrong(tmp_path):
    folder = FolderOfContracts(tmp_path)
    for name, text in (("orders", "job: orders"), ("a b", "job: a b"), ("bad", "job: bad\nexecutors: 3")):
        (tmp_path / f"{name}.yaml").write_text(text)
    folder.look(0.0)
    assert [*folder.contracts] == ["orders"] and {*folder.wrong} == {"a b", "bad"}
    (tmp_path / "orders.yaml").write_text("job: orders\nlatency_target_s: -1")
    folder.look(1.0)
    assert [*folder.contracts] == ["orders"] and {*folder.wrong} == {"a b", "bad", "orders"}
    for file in tmp_path.iterdir():
        file.unlink()
    folder.look(2.0)
    folder.look(2.0 + GONE_S)
    assert not folder.contracts and not folder.wrong
    tmp_path.rmdir()
    folder.look(20.0)


def test_a_contract_whose_file_is_away_for_a_moment_stays_and_one_that_is_wrong_stays_wrong(tmp_path):
    folder = FolderOfContracts(tmp_path / "contracts")
    files = {tmp_path / "contracts" / f"{job}.yaml": f"job: {job}\n" for job in ("a", "b")}

    def write():
        (tmp_path / "contracts").mkdir(exist_ok=True)
        for file, text in files.items():
            file.write_text(text + ("executors: 3" if file.stem == "b" else ""))

    write()
    folder.look(0.0)
    for file in files:
        file.unlink()
    for now in (1.0, GONE_S - 0.1):
        folder.look(now)
        assert [*folder.contracts] == ["a"] and {*folder.wrong} == {"b"}
    (tmp_path / "contracts").rmdir()
    folder.look(99.0)
    (tmp_path / "contracts").mkdir()
    folder.look(100.0)
    assert [*folder.contracts] == ["a"] and {*folder.wrong} == {"b"}, "a mount that is gone says nothing"
    folder.look(99.0 + GONE_S)
    assert not folder.contracts and not folder.wrong
    write()
    folder.look(200.0)
    assert [*folder.contracts] == ["a"] and {*folder.wrong} == {"b"}


def test_a_folder_of_contracts_that_may_not_be_listed_is_said_and_all_stays(monkeypatch, capsys, tmp_path):
    (tmp_path / "a.yaml").write_text("job: a\n")
    settings, reports, folder = load(var=tmp_path, contracts=tmp_path), Reports(), FolderOfContracts(tmp_path)
    topics, rounds = FollowedTopics(Kafka(), lambda: {}, reports), Rounds(settings, reports)
    clock, exposition = SimpleNamespace(s=0.0, passed_s=0.0, now=lambda: clock.s), Exposition()
    parts = clock, folder, rounds, topics, Alerting(settings, reports, 0.0), exposition, reports
    follower._tick(*parts)
    with unlisted(monkeypatch, tmp_path):
        for _ in range(3):
            clock.s += GONE_S
            follower._tick(*parts)
            assert [*folder.contracts] == ["a"]
            assert [one.labels["job"] for one in exposition.samples["tidecast_job_contract_valid"]] == ["a"]
    follower._tick(*parts)
    said = f"{tmp_path} cannot be listed: Permission denied; contracts stay as they were read last"
    assert capsys.readouterr().err.splitlines() == [f"metrics: contracts: {said}", "metrics: contracts: well again"]


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
    assert table_size(tmp_path, "none") == (0, 0)


def test_growth_stays_what_it_was_where_nothing_is_added_any_more_for_two_weeks(tmp_path):
    added = {"add": {"size": 700, "dataChange": True}}
    for version, (hours, action) in enumerate([(-30, added), (-20, added), (0, added), (40, {"remove": {}})]):
        commit(tmp_path, "metrics", version, action)
        at = NOW + 3600 * hours
        os.utime(tmp_path / "metrics" / "_delta_log" / f"{version:020d}.json", (at, at))
    for now, growth in ((NOW, 1400), (NOW + 48 * 3600, 1400), (NOW + LONGEST_S - 1, 1400), (NOW + LONGEST_S, 0)):
        assert day_growth(tmp_path, "metrics", now) == growth


@pytest.mark.parametrize(("free", "growth", "full"), [(0, 0, True), (1, 0, False), (700, 50, True), (701, 50, False)])
def test_a_disk_that_is_full_is_told_whatever_the_lake_grew(free, growth, full):
    known = Knowledge(lake=LakeSeen({"metrics": 9}, {"metrics": 1}, growth, free))
    held = {key.alert for key in holding(samples_of(known, NOW, pytest.fail), NOW)}
    assert ("TidecastLakeFillsDisk" in held) is full


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
    assert told == [("broker", ""), ("ingest", ""), ("lake", "")]


def test_an_ingest_whose_clock_was_ahead_is_not_the_newest_for_ever(lake):
    commit(lake_folder(lake), "metrics", 2, origin("c", NOW + 86_400, 110))
    commit(lake_folder(lake), "metrics", 3, origin("d", NOW + 3600, 125))
    known = gone_round(lake)[0].ingests["metrics"]
    assert (known.began, known.waiting) == (NOW + 3600, 10)


@pytest.mark.parametrize(
    ("first", "end", "waiting"), [(0, 100, 0), (0, 99, 99), (20, 60, 40), (0, 0, 0), (110, 130, 20), (110, 110, 0)]
)
def test_of_a_topic_that_was_made_anew_or_lost_its_end_all_waits(lake, monkeypatch, first, end, waiting):
    monkeypatch.setattr(rounds, "topic_offsets", lambda kafka, topic: {0: (first, end)})
    assert gone_round(lake)[0].ingests["metrics"].waiting == waiting


def test_without_a_broker_what_waits_is_not_known(lake, monkeypatch):
    def away(kafka, topic):
        raise BrokerError("away")

    monkeypatch.setattr(rounds, "topic_offsets", away)
    found, told = gone_round(lake, times=2)
    assert found.broker_up is False and found.ingests["metrics"].waiting is None and ("broker", "away") in told


def test_a_topic_that_cannot_be_read_is_said_and_is_no_broker_that_is_away(lake, monkeypatch):
    def forbidden(kafka, topic):
        if topic == "contracts":
            raise TopicError("no rights on contracts")
        return {0: (0, 130)}

    monkeypatch.setattr(rounds, "topic_offsets", forbidden)
    found, told = gone_round(lake, times=2)
    assert found.broker_up is True and found.ingests["metrics"].waiting == 30
    assert ("ingest", "what waits for it is not known of every topic: no rights on contracts") in told


def test_a_lake_that_is_damaged_is_said_and_ends_nothing(lake):
    (lake_folder(lake) / "metrics" / "_delta_log" / f"{2:020d}.json").write_text('{"commitInfo": no')
    commit(lake_folder(lake), "decisions", 0, {"add": {"size": 700, "dataChange": True}}, origin("b", NOW, 100))
    found, told = gone_round(lake, times=2)
    (_, said), *_ = [one for one in told if one[0] == "lake"]
    assert said.startswith("cannot be looked at: table metrics: JSONDecodeError") and "decisions" not in said
    assert set(found.ingests) == {"decisions"} and found.lake.growth_bytes == 700
    assert set(found.lake.size_bytes) == {"decisions", "metrics"}


def test_no_lake_is_no_trouble(tmp_path, monkeypatch):
    monkeypatch.setattr(rounds, "topic_offsets", lambda kafka, topic: {})
    found, told = gone_round(load(var=tmp_path))
    assert found.lake is None and found.ingests == {} and told[-1] == ("lake", "")


def test_a_lake_that_is_gone_is_said_once_and_its_alerts_go_on(lake, capsys):
    reports, folder, ends = Reports(), lake_folder(lake), {"metrics": {0: (0, 130)}}
    found = Rounds(lake, reports)
    look = partial(found._look, "lake", lambda: found._look_at_lake(ends))
    look()
    size = found.lake
    folder.rename(folder.with_name("away"))
    ends["metrics"] = {0: (0, 150)}
    look()
    folder.mkdir()  # where its disk is mounted otherwise
    look()
    assert found.ingests["metrics"] == Ingested(NOW, 90, 10, waiting=50) and found.lake == size
    (said,) = capsys.readouterr().err.splitlines()
    assert (
        said.startswith(f"metrics: lake: cannot be looked at: {folder} has no metrics any more") and "mounted" in said
    )
    folder.rmdir()
    folder.with_name("away").rename(folder)
    look()
    assert capsys.readouterr().err == "metrics: lake: well again\n"


def test_the_newest_drift_of_each_job_is_taken_from_the_asset_events():
    def event(job, timestamp, name="tidecast.drift", factor=1.3):
        after = math.log(factor) if factor != "much" else 0.0
        extra = {**DRIFTED, "job": job, "after": after, "factor": factor}
        return {"name": name, "timestamp": timestamp, "extra": extra}

    found = newest_drifts([
        event("a", "2027-01-15T08:00:00Z"), event("a", "2027-01-14T08:00:00Z", factor=9),
        event("b", "2027-01-15T08:00:00.5+00:00", factor=0.7), {"name": "tidecast.drift", "extra": None}, {},
        event("c", "yesterday"),
        event("e", "2027-01-15T08:00:00Z", factor="much"), event("d", "2027-01-15T08:00:00Z", name="tidecast.metrics"),
    ])  # fmt: skip
    assert {job: (one.reported, one.factor) for job, one in found.items()} == {
        "a": (1.8e9, 1.3), "b": (1.8e9 + 0.5, 0.7),
    }  # fmt: skip


def test_all_drifts_of_a_day_are_read_however_many_came_at_once(lake, monkeypatch):
    began, asked = time.time(), []
    ages_s = [*range(150), *range(200_000, 200_300)]  # jobs that drift together, and those of days before
    events = [
        {"name": "tidecast.drift", "extra": {**DRIFTED, "job": f"job-{n}"},
         "timestamp": datetime.fromtimestamp(began - age_s, UTC).isoformat()} for n, age_s in enumerate(ages_s)
    ]  # fmt: skip

    def answer(method, url, params=None, **_):
        if url.endswith("/auth/token"):
            return httpx.Response(200, json={"access_token": "t"})
        asked.append(begin := params["offset"])
        return httpx.Response(200, json={"asset_events": events[begin : begin + min(params["limit"], 100)]})

    monkeypatch.setattr(rest.httpx, "request", answer)
    there = lake.model_copy(update={"airflow": load(airflow={"url": "http://127.0.0.1:1"}).airflow})
    found, told = gone_round(there)
    assert {f"job-{n}" for n in range(150)} <= found.drifts.keys() and asked == [0, 100]
    del events[120:]
    assert len(gone_round(there)[0].drifts) == 120 and ("airflow", "") in told
    for moment in ({"timestamp": "yesterday"}, {"timestamp": None}, {}):
        events[99] = {"name": "tidecast.drift", "extra": {}, **moment}
        found, told = gone_round(there)
        assert len(found.drifts) == 119 and ("airflow", "") in told, "one event stops the whole look"


def test_a_thousand_jobs_are_looked_at_within_a_second():
    job = MadeUpJob()
    known = job.look(BEGAN)
    jobs = {f"job-{n}": known.jobs[JOB] for n in range(1000)}
    many = replace(known, jobs=jobs, contracts=dict.fromkeys(jobs, CONTRACT), drifts={})
    began = time.process_time()
    assert holding(samples_of(many, BEGAN, pytest.fail), BEGAN) == {}
    assert time.process_time() - began < 1
