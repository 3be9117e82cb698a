"""A table's replay is published once the live query has said that the windows of its range are final."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from tidecast.backfill import into
from tidecast.backfill.spec import BackfillError
from tidecast.orders import ReplayOrder

HOUR = 3_600_000


class Live:
    """A query of which only its newest report is asked."""

    def __init__(self):
        self.recentProgress = []

    def says(self, watermark):
        told = {"durationMs": {"addBatch": 5}, "eventTime": {"watermark": watermark}}
        self.recentProgress = [SimpleNamespace(json=json.dumps(told))]


@pytest.fixture
def world(monkeypatch):
    """Replays whose backfill is written, and whether it was settled."""
    live, settled = Live(), []
    form = SimpleNamespace(query="of live", plan="1")
    monkeypatch.setattr(into, "_finish_first_round", lambda backfill: backfill)
    monkeypatch.setattr(into, "read_form", lambda spark, table: form)
    monkeypatch.setattr(into, "live_query", lambda spark, query: live if query == "of live" else None)
    monkeypatch.setattr(into, "settle", lambda backfill, recompute, tolerance: settled.append(backfill))
    of = into.TableReplays(
        None, Path("/lake/t"), None, None, {}, "1", "update", "1 second", 0.0, lambda order: "", lambda order: None
    )
    backfill = SimpleNamespace(form=form, spec=SimpleNamespace(end=2 * HOUR), close=lambda: None)
    return SimpleNamespace(of=of, live=live, settled=settled, backfill=backfill, form=form)


def order(**fields):
    offsets = {"starts": {"e": {"0": 0}}, "ends": {"e": {"0": 9}}}
    return ReplayOrder("fix", "orders", 1.0, "run", **offsets, begin_ms=HOUR, end_ms=2 * HOUR, **fields)


def test_after_a_restart_it_waits_until_live_has_told_its_watermark(world):
    world.of.open["fix"] = world.backfill
    assert "watermark is not known yet" in world.of.publish(order())
    world.live.says("1970-01-01T01:59:59.999Z")
    assert "is at 1970-01-01 01:59:59.999" in world.of.publish(order())
    assert world.settled == []
    world.live.says("1970-01-01T02:00:00.000Z")
    assert world.of.publish(order()) == "" and world.settled == [world.backfill]


@pytest.mark.parametrize("fields", [{}, {"then": "compare"}])
def test_an_open_range_is_refused_before_anything_is_written(world, fields):
    world.live.says("1970-01-01T01:00:00.000Z")
    with pytest.raises(BackfillError, match=r"replay fix: live records may still change windows .*\(--resume\) then"):
        world.of.start(order(**fields))


def test_a_gap_and_a_query_of_another_application_ask_no_watermark(world):
    world.of.open["fix"] = world.backfill
    assert world.of.publish(order(holds=7)) == ""
    world.form.query = "of another"
    world.of.open["fix"] = world.backfill
    assert world.of.publish(order()) == "" and len(world.settled) == 2


@pytest.mark.parametrize("ends", [False, True])
def test_an_agent_that_ends_lets_go_of_a_comparison_once_that_is_over(world, monkeypatch, ends):
    closed, seen = [], []
    world.backfill.close = lambda: closed.append("lease")

    def compare(backfill, tolerance):
        if ends:
            world.of.close()
        seen.append(list(closed))
        return SimpleNamespace(text=lambda: "9 of 50")

    monkeypatch.setattr(into, "compare", compare)
    world.of.open["fix"] = world.backfill
    assert world.of.compare(order(then="compare")) == "9 of 50"
    assert seen == [[]], "another agent would write the same shadow table"
    assert (closed, list(world.of.open)) == ((["lease"], []) if ends else ([], ["fix"]))


@pytest.mark.parametrize("holds", [None, 7])
def test_a_gap_whose_publication_failed_is_published_again_without_a_start(world, monkeypatch, holds):
    closed, answers = [], [OSError("no space left on device"), ""]

    def settle(backfill, recompute, tolerance):
        if answer := answers.pop(0):
            raise answer
        world.settled.append(backfill)

    world.backfill.close = lambda: closed.append("lease")
    world.live.says("1970-01-01T02:00:00.000Z")
    monkeypatch.setattr(into, "settle", settle)
    world.of.open["fix"] = world.backfill
    with pytest.raises(OSError, match="no space left"):
        world.of.publish(order(holds=holds))
    assert (closed, list(world.of.open)) == ((["lease"], []) if holds is None else ([], ["fix"]))
    if holds is not None:
        assert world.of.publish(order(holds=holds)) == ""
        assert world.settled == [world.backfill] and closed == ["lease"] and not world.of.open
