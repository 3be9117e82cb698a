import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from kafka.errors import TopicAuthorizationFailedError

from configs.sections import Kafka
from pipelines.deployment import deployment_name
from pipelines.kafka import claim
from pipelines.kafka.broker import Record
from pipelines.kafka.connection import TopicError
from pipelines.kafka.signing import Signer
from tests.fakes.clock import clock_with
from tidecast.connection.signing import HEADER
from tidecast.messages import Control, encode

KAFKA = Kafka(bootstrap="broker:9092")


class Topic:
    """`control` of one broker: what was claimed, and who still follows."""

    def __init__(self):
        self.records, self.signer = [], Signer()

    def send(self, topic, key, message):
        value = encode(message)
        signature = self.signer.sign(topic, key, value, message.job)
        return self.send_bytes(topic, key.encode(), value, {} if signature is None else {HEADER: signature})

    def send_bytes(self, topic, key, value, headers=None):
        self.records.append(Record(topic, 0, len(self.records), key.decode(), value, time.time(), headers or {}))
        return SimpleNamespace(get=lambda timeout: None)


class Reader:
    """Reads each record once, and a topic that has fewer than it has read from the first."""

    def __init__(self, topic):
        self.topic, self.at = topic, 0

    def poll(self, wait):
        first = self.at if self.at <= len(self.topic.records) else 0
        self.at = len(self.topic.records)
        return self.topic.records[first:]


@pytest.fixture
def broker(monkeypatch):
    topic = Topic()
    monkeypatch.setattr(claim, "read_records", lambda kafka, name: topic.records)
    monkeypatch.setattr(claim, "Follower", lambda kafka, names: Reader(topic))
    return topic


def claimed(broker, wall):
    broker.send_bytes("control", claim.claim_key(claim.SERVING).encode(), encode(Control("serving", wall)))


def test_an_epoch_counts_for_more_than_those_before_also_on_a_new_broker(broker, monkeypatch):
    for wall in range(5):
        claimed(broker, 1_000.0 + wall)
    old = claim.Claim(KAFKA, broker, claim.SERVING)
    new = Topic()
    monkeypatch.setattr(claim, "read_records", lambda kafka, name: new.records)
    later = time.time() + 1
    monkeypatch.setattr(claim, "time", clock_with(time=lambda: later))
    assert claim.Claim(KAFKA, new, claim.SERVING).epoch > old.epoch and new.records[0].offset == 0


def test_of_two_servers_with_different_clocks_the_later_claim_is_the_higher(broker):
    ahead = time.time() + 200
    claimed(broker, ahead)
    first = claim.Claim(KAFKA, broker, claim.SERVING)
    assert first.epoch > (ahead - 1) * 1000 and not first.superseded()
    second = claim.Claim(KAFKA, broker, claim.SERVING)
    assert second.epoch > first.epoch and first.superseded() and not second.superseded()


def test_a_claim_on_a_topic_that_was_made_anew_is_a_later_one(broker):
    for wall in range(3):
        claimed(broker, 1_000.0 + wall)
    mine = claim.Claim(KAFKA, broker, claim.SERVING)
    assert not mine.superseded()
    broker.records.clear()
    assert not mine.superseded()
    claimed(broker, time.time() + 1)
    assert mine.superseded()


def test_a_claim_after_the_clock_was_set_back_is_a_later_one(broker, monkeypatch):
    ahead = time.time() + 900
    monkeypatch.setattr(claim, "time", clock_with(time=lambda: ahead))
    mine = claim.Claim(KAFKA, broker, claim.SERVING)
    monkeypatch.setattr(claim, "time", clock_with(time=lambda: ahead - 900))
    assert not mine.superseded()
    later = claim.Claim(KAFKA, broker, claim.SERVING)
    assert later.epoch < mine.epoch and mine.superseded() and not later.superseded()


def test_what_is_no_claim_takes_nothing_over(broker):
    mine = claim.Claim(KAFKA, broker, claim.SERVING)
    for value in (b"", b"{", encode(Control("serving", time.time() + 1e6)), None):
        broker.send_bytes("control", claim.claim_key(claim.SERVING).encode(), value)
    assert not mine.superseded()
    assert claim.Claim(KAFKA, broker, claim.SERVING, kept=mine.epoch).epoch == mine.epoch


def test_an_old_claim_that_is_sent_again_takes_nothing_over(broker):
    claim.Claim(KAFKA, broker, claim.SERVING, "there-2")
    mine = claim.Claim(KAFKA, broker, claim.SERVING, "here-1")
    for old in list(broker.records):
        broker.send_bytes(old.topic, old.key.encode(), old.value, old.headers)
    assert not mine.superseded() and claim.last_claim(KAFKA, claim.SERVING) == "here-1"
    assert claim.Claim(KAFKA, broker, claim.SERVING, kept=mine.epoch).epoch == mine.epoch
    assert claim.Claim(KAFKA, broker, claim.SERVING).epoch > mine.epoch and mine.superseded()


def test_where_its_role_has_a_key_only_a_signed_claim_takes_over(broker, tmp_path):
    file = tmp_path / "keys.yaml"
    file.write_text("serving: 0123456789abcdef0123456789abcdef\n")
    kafka, later = Kafka(bootstrap="broker:9092", signing_keys=file), time.time() + 100
    broker.signer = Signer.of(kafka)
    server, autoscaler = (claim.Claim(kafka, broker, role, "here-1") for role in (claim.SERVING, claim.AUTOSCALER))
    for role in (claim.SERVING, claim.AUTOSCALER):
        signature = broker.records[0].headers
        value = encode(Control(role, later, by="there-2"))
        broker.send_bytes("control", claim.claim_key(role).encode(), value)
        broker.send_bytes("control", claim.claim_key(role).encode(), value, signature)
    assert not server.superseded() and claim.last_claim(kafka, claim.SERVING) == "here-1"
    assert autoscaler.superseded() and claim.last_claim(kafka, claim.AUTOSCALER) == "there-2"  # it has no key
    successor = claim.Claim(kafka, broker, claim.SERVING)
    assert server.superseded() and successor.epoch < later * 1000


def test_a_server_and_an_autoscaler_take_nothing_from_each_other(broker):
    server, autoscaler = (claim.Claim(KAFKA, broker, role) for role in (claim.SERVING, claim.AUTOSCALER))
    assert not server.superseded() and not autoscaler.superseded()
    claim.Claim(KAFKA, broker, claim.AUTOSCALER)
    assert autoscaler.superseded() and not server.superseded()


def test_a_claim_says_which_deployment_made_it_and_the_last_one_counts(broker):
    assert claim.last_claim(KAFKA, claim.SERVING) is None
    claim.Claim(KAFKA, broker, claim.SERVING, "here-1")
    claim.Claim(KAFKA, broker, claim.AUTOSCALER, "there-2")
    broker.send_bytes("control", claim.claim_key(claim.SERVING).encode(), b"{")
    assert claim.last_claim(KAFKA, claim.SERVING) == "here-1"
    claimed(broker, time.time() + 1)  # of an earlier release, which said no name
    assert claim.last_claim(KAFKA, claim.SERVING) is None


def test_all_processes_of_a_deployment_have_one_name_and_two_deployments_two(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(deployment_name, [tmp_path / "a"] * 8 + [tmp_path / "b"] * 8))
    assert len(names) == 2 == len({name.rpartition("-")[2] for name in names})
    assert (tmp_path / "a" / "deployment").read_text() == deployment_name(tmp_path / "a") in names


def test_a_claim_that_the_broker_forbids_is_named_with_the_rights(broker):
    def forbid(timeout):
        raise TopicAuthorizationFailedError("control")

    broker.send = lambda *_: SimpleNamespace(get=forbid)
    with pytest.raises(TopicError, match=r"broker:9092 forbids it: .*control.*which rights"):
        claim.Claim(KAFKA, broker, claim.AUTOSCALER)
