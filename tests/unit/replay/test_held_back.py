"""The read limits of a live query while its records are held back, with a query that takes notes."""

import logging
import math
import time
from types import SimpleNamespace

import pytest

from tests.fakes import driver
from tidecast.metrics import MetricSample
from tidecast.replay import held_back
from tidecast.replay.held_back import HeldBack, rows_by_source
from tidecast.spark import admission
from tidecast.spark.admission import Admission, AdmissionError

EVENTS, REPLIES = "KafkaV2[Subscribe[events]]", "KafkaV2[Subscribe[replies, notes]]"


@pytest.fixture
def query(monkeypatch):
    """What the query's read limits are set to; a release is None."""
    made = SimpleNamespace(limits={EVENTS: 500}, calls=[], checked=0, refusal=None)

    class Noted:
        def __init__(self, query):
            assert query is made

        def check(self):
            made.checked += 1
            if made.refusal:
                raise AdmissionError(made.refusal)
            return bool(made.limits)

        def limits(self):
            return made.limits

        def admit_each(self, rows):
            made.calls.append(rows if len(rows) > 1 else rows[EVENTS])

        def release(self):
            made.calls.append(None)

    monkeypatch.setattr(held_back, "Admission", Noted)
    return made


@pytest.fixture
def job():
    made = driver.job()
    made.mode, made.period_s, made.ends = "act", 2.0, {("events", part): 1_000 for part in range(4)}
    made.committed = dict.fromkeys(made.ends, 0)
    made.heard_at, made.admitted_by = time.monotonic(), "d1, contract 0123"
    return made


def test_nothing_is_touched_while_nothing_is_decided(job, query):
    held = HeldBack(job, query)
    held.poll()
    held.close()
    assert query.calls == []


def test_a_rate_is_kept_as_records_of_a_batch_until_none_is_decided_any_more(job, query, caplog):
    caplog.set_level(logging.INFO, "tidecast")
    held = HeldBack(job, query)
    for job.admission_rps in (100.0, 100.0, 120.0, None, None, 90.0):
        held.poll()
    job.period_s = 3.0
    held.poll()
    assert query.calls == [200, 240, None, 180, 270]
    assert "held back to 100/s by d1, contract 0123" in caplog.text and "no longer held back" in caplog.text


def test_no_more_is_read_than_the_query_was_written_to_and_a_record_of_each_partition_is(job, query):
    held = HeldBack(job, query)
    for job.admission_rps in (1e6, 0.1):
        held.poll()
    assert query.calls == [500, 4]


@pytest.mark.parametrize(
    ("waiting", "own", "parts"),
    [
        ((4_000, 30, 0), (None, None), (170, 30)),  # who has little gets all of it
        ((4_000, 30, 400), (None, None), (100, 100)),
        ((10, 30, 0), (None, None), (90, 110)),  # all that waits, and the rest is for what comes
        ((0, 0, 0), (None, None), (100, 100)),
        ((4_000, 30, 400), (60, None), (60, 100)),  # its own limit holds
    ],
)
def test_two_sources_share_by_what_waits_for_each(job, waiting, own, parts):
    job.ends = {("events", 0): waiting[0], ("replies", 0): waiting[1] + 7, ("notes", 3): waiting[2]}
    job.committed = {("replies", 0): 7}
    assert tuple(rows_by_source(200, dict(zip((EVENTS, REPLIES), own, strict=True)), job).values()) == parts


def test_a_source_of_which_nothing_is_known_has_a_fair_part(job):
    job.ends, job.committed = {("events", 0): 50}, {("events", 0): 0}
    found = rows_by_source(200, {EVENTS: None, "KafkaV2[SubscribePattern[e.*]]": None}, job)
    assert [*found.values()] == [50, 150]
    job.committed = None
    assert [*rows_by_source(200, {EVENTS: None, REPLIES: None}, job).values()] == [100, 100]


def test_the_parts_follow_what_waits(job, query):
    query.limits = {EVENTS: None, REPLIES: None}
    held = HeldBack(job, query)
    job.admission_rps = 100.0
    held.poll()
    held.poll()
    job.committed = dict.fromkeys(job.ends, 970)
    job.ends["replies", 0], job.committed["replies", 0] = 60, 0
    held.poll()
    assert query.calls == [{EVENTS: 200, REPLIES: 1}, {EVENTS: 130, REPLIES: 70}]


@pytest.mark.parametrize("ends", [{"mode": "freeze"}, {"mode": "observe"}, {"heard_at": -math.inf}])
def test_it_ends_with_the_one_who_decides(job, query, ends):
    held = HeldBack(job, query)
    job.admission_rps = 100.0
    held.poll()
    for name, value in ends.items():
        setattr(job, name, value)
    held.poll()
    held.poll()
    assert query.calls == [200, None]


def test_a_query_that_has_planned_no_batch_is_waited_for(job, query):
    limits, query.limits = query.limits, {}
    held = HeldBack(job, query)
    job.admission_rps = 100.0
    held.poll()
    assert query.calls == []
    query.limits = limits
    held.poll()
    held.close()
    assert query.calls == [200, None]


def test_the_topic_of_the_lowest_weight_is_cut_first(job):
    job.ends, job.committed = {("x.events", 0): 150, ("replies", 0): 4_000}, {}
    own = {"KafkaV2[Subscribe[x.events]]": None, REPLIES: None}
    job.prefix, job.weights = "x.", {"events": 1.0, "replies": 5.0}
    assert [*rows_by_source(200, own, job).values()] == [1, 200]
    job.weights = {"events": 2.0}
    assert [*rows_by_source(200, own, job).values()] == [150, 50]


@pytest.mark.parametrize(("mode", "level"), [("act", logging.WARNING), ("observe", logging.INFO)])
def test_a_query_that_cannot_be_held_back_is_told_of_once_before_it_is_asked_for_and_goes_on(
    job, query, caplog, mode, level
):
    caplog.set_level(logging.INFO, "tidecast")
    job.widest_mode, limits = mode, query.limits
    query.limits, query.refusal = {}, None
    held = HeldBack(job, query)
    held.poll()
    assert caplog.records == [] and job.cannot_hold is None  # it has planned no batch yet
    query.limits, query.refusal = limits, "source Rate takes no limit: read a topic instead"
    for _ in range(3):
        held.poll()
    (told,) = caplog.records
    assert told.levelno == level and query.checked == 2 and query.calls == []
    assert "cannot be held back" in told.message and "source Rate takes no limit: read a topic" in told.message
    job.publish("interval", 0.0, 1.0, 1.0, arrival_rps=5.0)
    (sample,) = job.outbox.of(MetricSample)
    assert sample.cannot_hold == query.refusal


def test_a_query_that_can_be_held_back_is_looked_at_once_and_nothing_is_said(job, query, caplog):
    caplog.set_level(logging.INFO, "tidecast")
    held = HeldBack(job, query)
    for _ in range(3):
        held.poll()
    assert query.checked == 1 and caplog.records == [] and query.calls == [] and job.cannot_hold is None


class Source:
    """A source of Spark's, as its Java object shows itself."""

    def __init__(self, name, *interfaces):
        self.name, self.interfaces = name, [SimpleNamespace(getSimpleName=lambda one=one: one) for one in interfaces]

    def toString(self):
        return f"{self.name}[it]"

    def getClass(self):
        return SimpleNamespace(
            getSimpleName=lambda: self.name, getInterfaces=lambda: self.interfaces, getSuperclass=lambda: None
        )  # fmt: skip


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ([], False),
        ([Source("KafkaMicroBatchStream", "SupportsTriggerAvailableNow")], True),
        (
            [Source("Topic", "SupportsAdmissionControl"), Source("RateStream", "MicroBatchStream")],
            "RateStream.*no limit",
        ),
        ([Source("FileStreamSource", "SupportsAdmissionControl")], "FileStreamSource.*reads whole files"),
        ([Source("DeltaSource", "SupportsAdmissionControl")], "DeltaSource.*reads whole files"),
    ],
)
def test_sources_are_checked_by_what_they_are(monkeypatch, sources, says):
    monkeypatch.setattr(admission.Admission, "__init__", lambda self: None)
    monkeypatch.setattr(admission.Admission, "_pairs", lambda self: [(one, None) for one in sources])
    if isinstance(says, str):
        with pytest.raises(AdmissionError, match=says):
            Admission().check()
    else:
        assert Admission().check() is says


def limit(name, rows=0, parts=()):
    """A read limit of Spark's, as its Java object shows itself."""
    kind = SimpleNamespace(getSimpleName=lambda: name)
    return SimpleNamespace(getClass=lambda: kind, maxRows=lambda: rows, getReadLimits=lambda: parts)


def test_of_a_limit_in_parts_the_strictest_counts(monkeypatch):
    low, high, least = limit("ReadMaxRows", 500), limit("ReadMaxRows", 700), limit("ReadMinRows", 900)
    own = {
        "one": low, "least": least, "both": limit("CompositeReadLimit", parts=[least, high, low]),
        "unbound": limit("CompositeReadLimit", parts=[least]),
    }  # fmt: skip
    monkeypatch.setattr(admission.Admission, "__init__", lambda self: None)
    monkeypatch.setattr(admission.Admission, "_pairs", lambda self: [(Source(name), own[name]) for name in own])
    assert [*Admission().limits().values()] == [500, None, 500, None]
