"""What counts as the voice of another autoscaler, which ends the start of this one."""

import time
from types import SimpleNamespace

import pytest

from configs.sections import Kafka
from pipelines.kafka.broker import Record
from pipelines.kafka.signing import Signer
from pipelines.scale.other_autoscaler import LISTEN_S, first_job_heard
from tidecast.connection.signing import HEADER
from tidecast.messages import Heartbeat, encode

KEYS = "orders: 0123456789abcdef0123456789abcdef\n"
OWN = "autoscaler: 11111111111111111111111111111111\n"


@pytest.fixture
def site(tmp_path):
    """Settings with a file of keys, and what is heard of heartbeats with them."""
    file = tmp_path / "keys.yaml"
    file.write_text(KEYS)
    kafka = Kafka(bootstrap="broker:9092", signing_keys=file)

    def heard(job, signed=False, age_s=0.0, by="autoscaler"):
        at = time.time() - age_s
        value = encode(Heartbeat(job, by, at, at, 1.0))
        signature = Signer.of(kafka).sign("heartbeats", job, value, job) if signed else None
        headers = {} if signature is None else {HEADER: signature}
        records = [Record("heartbeats", 0, 0, job, value, time.time(), headers)]
        return first_job_heard(kafka, SimpleNamespace(poll=lambda wait_s: records), 0.0)

    return SimpleNamespace(file=file, heard=heard)


def test_who_signs_for_a_job_with_a_key_is_heard_and_who_does_not_is_not(site):
    assert site.heard("orders", signed=True) == "orders" and site.heard("orders") is None
    assert site.heard("orders", signed=True, by="serving") is None


def test_what_was_said_long_ago_and_is_sent_again_is_not_heard(site):
    assert site.heard("orders", signed=True, age_s=LISTEN_S + 1) is None
    assert site.heard("payments", age_s=LISTEN_S + 1) is None


def test_a_job_without_a_key_counts_unless_the_autoscaler_has_one(site):
    assert site.heard("payments") == "payments"
    site.file.write_text(KEYS + OWN)
    assert site.heard("payments") is None and site.heard("orders", signed=True) == "orders"
