"""The file of signing keys: what is wrong in it is named and never shown, and what is signed with it."""

import time

import pytest

from configs.errors import SettingsError
from configs.sections import Kafka
from configs.settings import load
from pipelines.kafka import publisher, signing
from pipelines.kafka.broker import Record
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.signing import Signer
from tidecast.connection.signing import HEADER, SigningKeys
from tidecast.messages import Control, Heartbeat, MessageError, MetricSample

SECRET, OTHER = "0123456789abcdef0123456789abcdef", "11111111111111111111111111111111"


def record(headers):
    return Record("decisions", 0, 0, "orders", b"{}", 0.0, headers)


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "keys.yaml"
    made.write_text(f"orders: {SECRET}\npayments: {OTHER}\n")
    return made


WRONG = {
    "no such file": (None, "No such file"),
    "no YAML": (f"orders: {SECRET}\n  payments: '{OTHER}", "line 2"),
    "twice": (f"orders: {SECRET}\norders: {OTHER}", "stands twice"),
    "a list": (f"- {SECRET}", "not a key per job"),
    "nothing": ("", "not a key per job"),
    "nested": (f"orders: {{new: {SECRET}}}", "not a key per job"),
    "short": (f"orders: {SECRET[:20]}", "orders: a signing key of 20 characters"),
    "no job": (f"a b: {SECRET}", "a b: "),
    "no text": (b"orders: \xff", "UnicodeDecodeError"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_file_is_named_and_its_secrets_are_not(tmp_path, wrong):
    content, words = WRONG[wrong]
    file = tmp_path / "keys.yaml"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    signer = Signer(file)
    for call in (signer.check_file, lambda: signer.keys_of("orders")):
        with pytest.raises(SettingsError, match=words) as refused:
            call()
        assert str(file) in str(refused.value)
        assert SECRET[:20] not in str(refused.value) and OTHER[:20] not in str(refused.value)


def test_digits_alone_are_a_key_and_no_number(file):
    assert Signer(file).keys_of("payments") == OTHER


def test_a_changed_file_counts_and_a_broken_one_changes_nothing(file):
    signer = Signer(file)
    assert signer.keys_of("orders") == SECRET
    file.write_text(f"orders: {OTHER},{SECRET}")
    assert signer.keys_of("orders") == f"{OTHER},{SECRET}" and signer.keys_of("payments") is None
    file.write_text("orders: x")
    assert signer.keys_of("orders") == f"{OTHER},{SECRET}"
    with pytest.raises(SettingsError):
        signer.check_file()
    file.unlink()
    assert signer.sign("decisions", "orders", b"{}", "orders") is not None


def test_an_unreadable_file_stops_no_decision_and_makes_none_pass(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(signing, "_valid", {})
    signer = Signer(tmp_path / "gone.yaml")
    assert signer.sign("decisions", "orders", b"{}", "orders") is None
    with pytest.raises(MessageError, match=r"gone\.yaml"):
        signer.check_record(record({}), "orders")
    assert "gone.yaml" in capsys.readouterr().err


def test_a_job_without_a_key_is_neither_signed_nor_checked(file):
    for signer in (Signer(file), Signer()):
        assert signer.sign("decisions", "rides", b"{}", "rides") is None
        signer.check_record(record({}), "rides")


def test_what_is_signed_for_one_deployment_is_refused_by_another(file):
    ours, theirs = Signer(file, "acme."), Signer(file, "beta.")
    headers = {HEADER: ours.sign("decisions", "orders", b"{}", "orders")}
    ours.check_record(record(headers), "orders")
    with pytest.raises(MessageError, match="not of this job's key"):
        theirs.check_record(record(headers), "orders")


class Producer:
    """Keeps what is sent."""

    def __init__(self):
        self.sent = []

    def send(self, topic, **record):
        self.sent.append((topic, record))
        return self

    def add_errback(self, failed):
        pass


def test_a_publisher_signs_what_agents_obey(file, monkeypatch):
    producer, now = Producer(), time.time()
    monkeypatch.setattr(publisher, "producer", lambda *where, **how: producer)
    sender = Publisher(Kafka(bootstrap="127.0.0.1:9", prefix="acme.", signing_keys=file))
    sender.send("control", "orders:mode", Control("orders", now, mode="freeze"))
    sender.send("heartbeats", "rides", Heartbeat("rides", "autoscaler", now, now, 1.0))
    sender.send("metrics", "orders", MetricSample("orders", "interval", now, now))
    (topic, signed), (_, of_no_key), (_, told) = producer.sent
    SigningKeys.read(SECRET).check(topic, "orders:mode", signed["value"], dict(signed["headers"]))
    assert of_no_key["headers"] == told["headers"] == []


def test_a_publisher_refuses_a_wrong_file_before_it_connects(tmp_path):
    with pytest.raises(SettingsError, match="No such file"):
        Publisher(Kafka(bootstrap="127.0.0.1:9", signing_keys=tmp_path / "gone.yaml"))


def test_the_settings_want_an_absolute_path():
    with pytest.raises(SettingsError, match=r"signing_keys.*absolute"):
        load(kafka={"signing_keys": "keys.yaml"})
