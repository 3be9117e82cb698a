"""The queries of the managed jobs, as batch frames without Kafka."""

import json
from datetime import UTC, datetime

import pytest

from configs.errors import SettingsError
from pipelines.jobs import key_window, word_count
from pipelines.jobs.events import LoadEvent, encode_event
from pipelines.jobs.restarts.configured import ChosenConfiguration, set_configuration
from pipelines.jobs.service import service_stage
from tests.fakes.bad_events import BAD_EVENTS, NOW
from tidecast.messages import Reject, decode

pytestmark = pytest.mark.spark

KAFKA = "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP"


def records(spark, *values, at=NOW):
    stamp = datetime.fromtimestamp(at, UTC)
    rows = [
        (b"k", bytearray(value) if value is not None else None, "events", 2, i, stamp) for i, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, KAFKA)


def event(seq, key, time=5.0):
    return encode_event(LoadEvent(seq, time, key))


def test_word_count_counts_per_key_and_window(spark):
    source = records(spark, event(1, "a"), event(2, "b"), event(3, "a", 4.0), event(4, "a", 600.0))
    rows = {row.key: row for row in word_count.counts(source, service_stage(0.0, {}, "word_count"), 0).collect()}
    first = {"begin": 0, "end": 600_000}
    assert {key: json.loads(row.value) for key, row in rows.items()} == {
        "word_count:a@0-600000": {"key": "a", **first, "n": 2, "seq_sum": 4},
        "word_count:b@0-600000": {"key": "b", **first, "n": 1, "seq_sum": 2},
        "word_count:a@600000-1200000": {"key": "a", "begin": 600_000, "end": 1_200_000, "n": 1, "seq_sum": 4},
    }
    assert {row.topic for row in rows.values()} == {"results"}


def test_a_replay_of_a_range_serves_its_own_valid_events_alone(spark):
    bad = (raw for raw, _ in BAD_EVENTS.values())
    times = (599.998, 599.999, 600.0, 1199.999, 1200.0, 1200.001)
    source = records(spark, *(event(n, "a", time) for n, time in enumerate(times)), *bad)
    kept = word_count.events_of(source, 600_000, 1_200_000)
    assert kept.columns == source.columns
    assert [row.offset for row in kept.collect()] == [1, 2, 3, 4]  # what lies next to it is left to the windows


def test_key_window_refuses_what_the_reader_refuses(spark):
    values = [raw for raw, _ in BAD_EVENTS.values()]
    rows = key_window.validate_events(records(spark, event(1, "a"), *values)).collect()
    assert rows[0].key == "a" and rows[0].rejected is None
    accepted = [name for name, row in zip(BAD_EVENTS, rows[1:], strict=True) if row.rejected is None]
    assert accepted == []
    rejects = [decode(Reject, row.rejected) for row in rows[1:]]
    assert [(r.topic, r.partition, r.offset, r.by) for r in rejects] == [
        ("events", 2, i + 1, "key_window") for i in range(len(values))
    ]


def test_key_window_counts_per_key_and_window_and_sends_rejects_aside(spark):
    early = records(spark, event(1, "a"), event(2, "a"), event(3, "b"), b"bad", at=1_700_000_001.0)
    later = records(spark, event(4, "a"), at=1_700_000_011.0)
    rows = key_window.count_per_window(early.union(later)).collect()
    found = {row.key: json.loads(row.value) for row in rows if row.topic == "windows"}
    assert {key: value["n"] for key, value in found.items()} == {
        "a@1700000000": 2,
        "b@1700000000": 1,
        "a@1700000010": 1,
    }
    assert found["b@1700000000"] == {"key": "b", "begin": 1_700_000_000, "n": 1}
    assert [(row.topic, row.key) for row in rows if row.topic != "windows"] == [("rejects", "events")]


def test_a_stamp_from_the_future_is_bounded_by_the_batch(spark):
    [row] = key_window.validate_events(records(spark, event(1, "a"), at=4_000_000_000.0)).collect()
    assert row.at.timestamp() < 4_000_000_000.0
    assert row.key == "a"


def test_a_configuration_that_no_session_can_set_is_refused_by_name(spark):
    key = "spark.sql.warehouse.dir"
    with pytest.raises(SettingsError, match=rf"configurations\.moved: Spark takes no {key}=/tmp/x now: CANNOT_"):
        set_configuration(spark, ChosenConfiguration("moved", {key: "/tmp/x"}, ""))
