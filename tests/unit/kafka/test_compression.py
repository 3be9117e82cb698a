"""The codec of a topic: the cheapest of what every reader can decompress, by its own newest records."""

from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from configs.sections import Kafka
from models.contract.slow.codecs import PLAIN, MeasuredCodec
from pipelines.cli.app import app
from pipelines.kafka import compression
from pipelines.kafka.compression import (
    ChosenCodec,
    batches_of,
    choose_codec,
    chosen_codec,
    measure_codec,
    newest_values,
    readable,
)
from pipelines.kafka.connection import BrokerError

ORACLE = {"none": PLAIN, "lz4": MeasuredCodec(0.5, 5e8, 2e9), "zstd": MeasuredCodec(0.35, 3e8, 9e8)}
"""The plan's worked example: of 100 MB at 125 MB/s, idle, 0.8, 0.65 and 0.7244 s."""
KAFKA = Kafka(bootstrap="b:1")


@pytest.fixture
def measured(monkeypatch):
    """Codecs as they would be measured."""
    known = dict(ORACLE)
    monkeypatch.setattr(compression, "measure_codec", lambda name, batches: known[name])
    return known


def test_the_cheapest_codec_is_taken_by_what_cores_cost(measured):
    idle = choose_codec([b"r"] * 3, "none", 0.0, ORACLE)
    assert idle.name == "lz4"
    assert "by 3 records, cores 0% busy, network taken as idle, 125 MB/s: lz4 0.65 s (0.50), " in idle.why
    assert idle.why.endswith(" zstd 0.72 s (0.35), none 0.80 s (1.00)")
    assert choose_codec([b"r"], "zstd", 1.0, ORACLE).name == "none"


def test_the_usual_one_stays_unless_another_is_cheaper_by_a_tenth(measured):
    assert choose_codec([b"r"], "zstd", 0.0, ORACLE).name == "lz4"  # 0.65 of 0.7244
    measured["lz4"] = MeasuredCodec(0.55, 5e8, 2e9)  # 0.69
    assert choose_codec([b"r"], "zstd", 0.0, ORACLE).name == "zstd"


def test_a_topic_without_records_keeps_the_usual_one(measured):
    assert choose_codec([], "gzip", 0.0, ORACLE) == ChosenCodec(
        "gzip", "the topic has no record to measure codecs on"
    )  # fmt: skip


def test_batches_hold_all_records_in_order_up_to_their_size(monkeypatch):
    monkeypatch.setattr(compression, "BATCH_BYTES", 10)
    records = [bytes([n]) * size for n, size in enumerate((5, 5, 1, 20, 3, 7, 1))]
    assert list(map(len, batches_of(records))) == [10, 1, 20, 10, 1]
    assert b"".join(batches_of(records)) == b"".join(records)
    assert batches_of([]) == []


def test_a_codec_is_measured_as_kafkas_clients_use_it(monkeypatch):
    monkeypatch.setattr(compression, "LEAST_S", 0.0)
    found = measure_codec("gzip", [b"the same again and again, " * 40])
    assert found.ratio < 0.2 and found.encode_bps > 0 and found.decode_bps > 0
    assert measure_codec("none", [b"r"]) == PLAIN


def test_candidates_are_what_kafka_python_can_read(monkeypatch):
    assert {"none", "gzip"} <= set(readable())
    libraries = SimpleNamespace(has_gzip=lambda: True, has_lz4=lambda: True, has_zstd=lambda: False)
    monkeypatch.setattr(compression, "installed", libraries)
    assert readable() == ("none", "gzip", "lz4")


def test_the_newest_records_are_the_sample(monkeypatch):
    values = [*(bytes([n]) * 1000 for n in range(100)), b"", None]
    monkeypatch.setattr(
        compression, "read_records", lambda *_, newest: (SimpleNamespace(value=value) for value in values)
    )
    kept = newest_values(KAFKA, "events")
    assert kept == values[100 - 65 : 100]  # as many as 64 KiB hold


def test_a_broker_that_is_away_keeps_nobody_from_starting(monkeypatch):
    def away(*_, **__):
        raise BrokerError("nobody answers")
        yield

    monkeypatch.setattr(compression, "read_records", away)
    assert chosen_codec(KAFKA, "events", "gzip") == ChosenCodec("gzip", "its records cannot be read: nobody answers")


def test_the_command_says_which_and_why(monkeypatch):
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "b:1")
    monkeypatch.setattr(
        compression, "chosen_codec", lambda kafka, topic, usual: ChosenCodec("gzip", f"{topic} at {kafka.bootstrap}")
    )
    shown = CliRunner().invoke(app, ["codecs", "orders"])
    assert shown.exit_code == 0 and shown.output.endswith("orders: gzip; orders at b:1\n"), shown.output
