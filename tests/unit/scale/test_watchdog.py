"""When a job is called without records, and that its one timer is changed as seldom as can be."""

import dataclasses
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.streaming.tws_tester import TwsTester

from models.policy.live.memory import fresh
from pipelines.scale.contracts import AcceptedContracts
from pipelines.scale.processor import UNKNOWN_S
from pipelines.scale.stateful import WATCHDOG_MS, make_stateful_processor, next_timer
from tests.unit.policy.test_processor import CONTRACT, metric, row

KEPT = dataclasses.asdict(fresh(CONTRACT))


@pytest.mark.parametrize(
    ("stood_ms", "timer_ms"), [(None, 3000), (1500, 1500), (3000, 3000), (1000, 3000), (900, 3000), (3001, 3000)]
)
def test_a_timer_that_comes_in_time_is_left(stood_ms, timer_ms):
    assert next_timer(stood_ms, 1000, 2000) == timer_ms


class Query:
    """The processor on Spark's own stand-in for state and timers, whose changes are counted."""

    def __init__(self, tmp_path, contracts=(CONTRACT,)):
        self.file = tmp_path / "contracts.json"
        self.accept(*contracts)
        processor = make_stateful_processor(AcceptedContracts(self.file), "mpc", "act")
        self.tester, self.changes = TwsTester(processor, timeMode="ProcessingTime"), []
        self.handle = self.tester.handle
        self._count("registerTimer")
        self._count("deleteTimer")

    def accept(self, *contracts):
        self.file.write_text(json.dumps({one.job: one.model_dump(mode="json") for one in contracts}))

    def _count(self, name):
        change = getattr(self.handle, name)

        def counted(at_ms):
            self.changes.append(name)
            change(at_ms)

        setattr(self.handle, name, counted)

    def batch(self, at_ms, *rows):
        """Run a micro-batch that is planned at `at_ms`: as in Spark, records first, then the timers that are due."""
        self.tester._currentProcessingTimeMs = at_ms
        told = self.tester.test("orders", [Row(**one) for one in rows]) if rows else []
        self.tester._handleExpiredTimers()
        return [one.topic for one in told]

    def timers(self):
        self.handle.setGroupingKey("orders")
        return list(self.handle.listTimers())


def metrics():
    return row("metrics", metric(wall_time=time.time()).encode())


def test_records_every_tenth_of_a_second_move_the_timer_once_in_two_seconds(tmp_path):
    query = Query(tmp_path)
    told = query.batch(1000, metrics())
    assert told == ["decisions", "heartbeats"] and query.timers() == [1000 + WATCHDOG_MS]
    for at_ms in range(1100, 3000, 100):
        query.batch(at_ms, metrics())
    assert query.timers() == [3000] and query.changes == ["registerTimer"]
    query.batch(3100, metrics())  # it comes due; two seconds from then on is the next
    assert query.timers() == [5100]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 5000), st.booleans()), min_size=1, max_size=30))
def test_a_known_job_has_one_timer_within_two_seconds(tmp_path_factory, batches):
    query, now_ms = Query(tmp_path_factory.mktemp("query")), 1000
    query.batch(now_ms, metrics())
    for gap_ms, has_rows in batches:
        now_ms += gap_ms
        query.batch(now_ms, *([metrics()] if has_rows else []))
        (timer_ms,) = query.timers()
        assert now_ms < timer_ms <= now_ms + WATCHDOG_MS


def test_a_job_without_a_contract_is_looked_at_after_ten_minutes_and_forgotten(tmp_path):
    query = Query(tmp_path, ())
    assert query.batch(1000, metrics()) == ["rejects"]
    assert query.timers() == [1000 + 1000 * UNKNOWN_S]
    query.accept(CONTRACT)
    query.batch(2000, metrics())  # it has one now, and ten minutes are too long
    assert query.timers() == [2000 + WATCHDOG_MS]


def test_a_job_that_is_forgotten_has_no_timer(tmp_path):
    query = Query(tmp_path, ())
    kept = {**KEPT, "unknown_at": 0.0, "timer_ms": 9000}
    query.tester.updateValueState("memory", "orders", (json.dumps(kept),))
    query.handle.setGroupingKey("orders")
    query.handle.registerTimer(9000)
    query.batch(9000)
    assert query.timers() == [] and query.tester.peekValueState("memory", "orders") is None


@pytest.mark.parametrize("kept", [json.dumps(KEPT), "{"])
def test_timers_of_an_earlier_release_or_beside_a_damaged_state_go(tmp_path, kept):
    query = Query(tmp_path)
    query.tester.updateValueState("memory", "orders", (kept,))
    query.handle.setGroupingKey("orders")
    for old in (1500, 1700, 700_000):
        query.handle.registerTimer(old)
    query.batch(1200, metrics())
    assert query.timers() == [1200 + WATCHDOG_MS]
