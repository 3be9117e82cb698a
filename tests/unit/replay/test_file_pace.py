"""A range of a table at a rate: files are read whole, so a limit is a number of them, and a pause pays for the rest."""

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tidecast.orders import ReplayOrder
from tidecast.replay.pace import Balance, Pace, Reached, rows_per_batch
from tidecast.replay.pauses import LONGEST_S, Patience
from tidecast.replay.query import READING, ReplayQuery
from tidecast.replay.staged import LEAST_ROWS, MOST_FILES, rows_at_once
from tidecast.spark.admission import Admission, AdmissionError


def order(records):
    return ReplayOrder("fix", "orders", 1.0, "run", {"a": {"0": 0}}, {"a": {"0": records}}, table="/lake/a")


def test_a_file_is_small_and_a_range_has_not_too_many():
    assert rows_at_once(order(0)) == rows_at_once(order(1_000)) == LEAST_ROWS
    assert rows_at_once(order(41_200_001)) == 20_601 and MOST_FILES >= 41_200_001 / 20_601


def limited(kind, rows, per_file=None):
    admission = Admission.__new__(Admission)
    admission._limits = SimpleNamespace(maxRows=lambda n: ("rows", n), maxFiles=lambda n: ("files", n))
    source = SimpleNamespace(
        getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind), toString=lambda: f"{kind}[/lake/a]"
    )
    return admission._limit(source, rows, per_file)


def test_a_limit_in_records_is_one_in_files_where_files_are_read():
    assert limited("KafkaMicroBatchStream", 500) == limited("KafkaMicroBatchStream", 500, 200) == ("rows", 500)
    assert [limited("FileStreamSource", rows, 200) for rows in (0, 199, 200, 650)] == [
        ("files", 0), ("files", 0), ("files", 1), ("files", 3),
    ]  # fmt: skip
    for kind in ("FileStreamSource", "DeltaSource"):
        with pytest.raises(AdmissionError, match=rf"{kind}\[/lake/a\] reads whole files .*or read a topic instead"):
            limited(kind, 500)


class Batches:
    """A query whose batches are told by hand, and what it was admitted."""

    def __init__(self, monkeypatch):
        self.now, self.admitted = 100.0, []
        clock = SimpleNamespace(monotonic=lambda: self.now, time=lambda: self.now)
        monkeypatch.setattr("tidecast.replay.query.time", clock)
        self.query = ReplayQuery.__new__(ReplayQuery)
        self.query.__dict__.update(
            _order=order(10_000), _staged=SimpleNamespace(files=lambda: (0, 50)),
            _unit=200, _rps=0.0, _balance=Balance(), _allowed_at=100.0, _pace=None,
            _admitted=None, _began=None, _worth=200, _next_at=0.0, _due_since=None, _paused_at=None, _reached=Reached(),
            _patience=Patience(), _in_vain=False, _live_s=0.0, _reading=False, _grows=False, _reading_since=80.0,
            _admission=SimpleNamespace(sources=lambda: ["files"], admit=self.admit),
        )  # fmt: skip

    def admit(self, rows, per_file):
        self.admitted.append(rows // per_file)

    def reads(self, rows, batch_s=0.5):
        self.now += batch_s
        self.query._owe(SimpleNamespace(rows=rows, batch_s=batch_s))


def test_what_a_small_batch_took_is_left_to_live_records_before_the_next_one(monkeypatch):
    told = Batches(monkeypatch)
    told.reads(200, batch_s=2.0)
    for after_s, files in ((0.0, 0), (1.9, 0), (0.2, 1)):
        told.now += after_s
        told.query.admit(1e4)
        assert told.admitted[-1] == files


def test_one_that_is_paused_while_another_is_started_keeps_its_rate_and_what_live_batches_take(monkeypatch):
    """Ten seconds of 100 records/s, and the eight that it waited, are nine files."""
    told = Batches(monkeypatch)
    told.query._pace = Pace(4_000, 0.1, fixed_s=0.1)
    told.query.admit(100.0, may_begin=False, live_s=3.0)
    told.now += 1.0
    told.query.pause()
    assert told.admitted[-1] == 0 and (told.query._live_s, told.query._rps) == (3.0, 100.0)
    told.now += 7.0
    told.query.admit(100.0)
    assert told.admitted[-1] == 9


def test_what_the_start_of_others_takes_is_no_vain_wait_for_a_pause_and_no_time_of_its_own(monkeypatch):
    """Due since 104, it has waited for three seconds at 113, as two others were started from 105 to 111."""
    told = Batches(monkeypatch)
    told.query._pace, told.query._began = Pace(2_000, 0.1, fixed_s=0.1), 100.0
    told.query.admit(100.0)
    told.reads(200, batch_s=2.0)  # and rests until 104
    told.now = 104.0
    told.query.admit(100.0, may_begin=False)
    for at in (105.0, 109.0):
        told.now = at
        told.query.pause()
    for at, begins in ((111.0, False), (113.0, False), (115.0, False), (115.5, True)):
        told.now = at
        told.query.admit(100.0, may_begin=False)
        assert bool(told.admitted[-1]) is begins
    batch = SimpleNamespace(rows=480, batch_s=1.5)
    assert told.query._rate(batch, began=115.5) == 320.0, "its own, as after a pause"
    told.reads(batch.rows, batch.batch_s)
    # Its rate allowed 300 from 102 to 105, and 600 from 111 to 117; until 110 it had its slow start.
    assert told.query._reached.share == pytest.approx(480 / 900)


def test_batches_that_still_grow_as_fast_as_they_may_tell_nothing_of_what_it_comes_to(monkeypatch):
    """The first one might have had 400 records: the last file of a part of a table is not full."""
    told = Batches(monkeypatch)
    told.now = told.query._allowed_at = 110.0
    told.query._rps = 100.0
    for before, rows, batch_s, share in (
        (100, 300, 4.0, None), (300, 800, 10.0, 800 / 1000), (100, 400, 4.0, (560 + 400) / (700 + 400)),
    ):  # fmt: skip
        told.query._pace = Pace(before, 0.1)
        told.query._next_rows(100.0)
        told.reads(rows, batch_s)
        assert told.query._reached.share == (share if share is None else pytest.approx(share))


@pytest.mark.parametrize(("first", "share"), [(True, None), (False, 0.25)])
def test_a_batch_that_does_not_grow_though_it_may_tells_what_it_comes_to_unless_it_follows_a_cold_one(
    monkeypatch, first, share
):
    """The records that it was let read are not there."""
    told = Batches(monkeypatch)
    told.now = told.query._allowed_at = 110.0
    told.query._rps, told.query._pace = 100.0, Pace(100, 0.1, first=first)
    told.query._next_rows(100.0)
    told.reads(100, 4.0)
    assert told.query._reached.share == share


def test_one_that_cannot_be_paused_ends_no_other_that_is_started(monkeypatch, caplog):
    told = Batches(monkeypatch)

    def refuses(rows, per_file):
        raise AdmissionError("its source is gone")

    told.query._admission.admit = refuses
    told.query.pause()
    assert "replay fix cannot be paused: its source is gone" in caplog.text


def test_a_file_that_is_more_than_the_rate_allows_is_followed_by_a_pause(monkeypatch):
    told = Batches(monkeypatch)
    told.query.admit(50.0)
    told.reads(200)  # four seconds' records in half a second
    for at, files in ((0.0, 0), (3.0, 0), (3.6, 1)):
        told.now = 100.5 + at
        told.query.admit(50.0)
        assert told.admitted[-1] == files
    told.reads(200)
    told.reads(200)  # a second one before anybody looked: both are paid for
    told.now += 6.8
    told.query.admit(50.0)
    assert told.admitted[-1] == 0
    told.now += 0.2
    told.query.admit(50.0)
    assert told.admitted[-1] == 1


def test_while_a_batch_is_read_the_next_one_is_not_admitted(monkeypatch):
    told = Batches(monkeypatch)
    told.query.admit(1_000.0)
    told.query._reading = True
    told.query.admit(1_000.0)
    told.query._reading = False
    told.query.admit(1_000.0)
    assert told.admitted == [1, 0, 1]


class EndingBatch:
    """A Spark query, and what reads its reports: its batch ends while they are read, which have nothing of it yet."""

    isActive = True

    def __init__(self):
        self.status = {"message": READING}

    def new_batches(self):
        self.status = {"message": "Waiting for next trigger"}
        return []

    def committed(self):
        return {}


def test_beside_a_batch_that_ends_while_it_is_looked_for_no_further_one_is_admitted_before_it_is_counted(monkeypatch):
    told = Batches(monkeypatch)
    ending = EndingBatch()
    told.query.__dict__.update(newest=None, _committed={}, _query=ending, _reader=ending)
    admitted = []
    for _ in range(2):
        assert not told.query.poll()
        told.query.admit(1_000.0)
        admitted.append(told.admitted[-1])
    assert admitted == [0, 1]


@pytest.mark.parametrize(("apart", "files"), [(None, 7), ("batch", 5)])
def test_what_the_rate_allows_while_a_batch_waits_for_a_pause_is_read_by_it(monkeypatch, apart, files):
    """Ten seconds of 100 records/s, and the four that it waited; an application of its own saves nothing."""
    told = Batches(monkeypatch)
    told.query._order = replace(told.query._order, apart=apart)
    told.query._pace = Pace(4_000, 0.1, fixed_s=0.1)
    for pause in (*(False,) * 16, True):
        told.query.admit(100.0, may_begin=pause)
        assert not (told.admitted[-1] and not pause)
        told.now += 0.25
    assert told.admitted[-1] == files


def test_what_a_batch_takes_too_long_and_the_rest_after_it_are_not_saved(monkeypatch):
    told = Batches(monkeypatch)
    told.query._pace = Pace(4_000, 0.1, fixed_s=0.1)
    told.query.admit(100.0)
    told.reads(1_000, batch_s=14.0)
    told.query._in_vain = True
    told.now += 6.0
    told.query.admit(100.0)
    assert told.admitted[-1] == 5


def test_after_a_dry_run_no_batch_is_the_first(monkeypatch):
    told = Batches(monkeypatch)
    stages = [SimpleNamespace(run_s=0.8, tasks=8)]
    told.query._cluster = SimpleNamespace(batch_stages=lambda run, batch: stages)
    for before, first in (([], True), ([math.inf], False)):
        told.query._task_s = before
        pace = told.query._paced(SimpleNamespace(rows=32, run_id="r", batch_id=0, span=0))
        assert pace.first is first
        assert rows_per_batch(1e4, pace, told.query._order.task_s, 8, 8) == (32 if first else 128)


def waits(told, has_pause):
    """Seconds that a batch waits which is due now, where live records' pauses begin at some quarters of a second."""
    due = told.now
    while True:
        in_pause = has_pause(told.now)
        told.query.admit(1e4, may_begin=in_pause)
        if told.admitted[-1] and (not in_pause or has_pause(told.now + 0.25)):  # a pause that Spark falls into
            waited_s = told.now - due
            told.reads(200, batch_s=0.0)
            return waited_s
        told.now += 0.25


def test_where_no_pause_holds_one_a_batch_that_is_due_waits_ever_shorter(monkeypatch):
    """Pauses that come by, and are over before the replay's trigger, do not make it wait anew."""
    told = Batches(monkeypatch)
    waited = [waits(told, lambda now: now % 1.0 == 0.75) for _ in range(6)]
    assert waited[0] > LONGEST_S
    for seconds, expected in zip(waited, (5.0, 2.5, 1.25, 1.0, 1.0, 1.0), strict=True):
        assert expected < seconds <= expected + 0.5


@pytest.mark.parametrize(("pauses", "rest_s"), [(False, 5.0), (True, 0.0)])
def test_after_a_long_batch_beside_live_ones_the_next_waits_as_long_as_one_of_them_takes(monkeypatch, pauses, rest_s):
    told = Batches(monkeypatch)
    while not any(told.admitted):
        told.query.admit(1e4, may_begin=pauses, live_s=5.0)
        told.now += 0.25
    told.reads(200, batch_s=8.0)
    ended = told.now
    told.query.admit(1e4, live_s=5.0)
    while not told.admitted[-1]:
        told.now += 0.25
        told.query.admit(1e4, live_s=5.0)
    assert told.now - ended == rest_s


def test_once_pauses_come_again_it_waits_for_them(monkeypatch):
    told = Batches(monkeypatch)
    for _ in range(5):
        waits(told, lambda now: False)
    until = told.now + 60.0
    while told.now < until:
        waits(told, lambda now: now % 1.0 in (0.5, 0.75))
    assert LONGEST_S < waits(told, lambda now: False) <= LONGEST_S + 0.5


def test_a_query_is_stopped_once():
    """One that waits behind its range is looked at four times a second, and Spark would log that it stops each time."""
    stops, query = [], ReplayQuery.__new__(ReplayQuery)

    def stop():
        query._query.isActive = False
        stops.append(1)

    query._query = SimpleNamespace(isActive=True, stop=stop)
    for _ in range(3):
        query.stop()
    assert len(stops) == 1
