"""Until where a gap's windows are computed again: up to the records that can be of them, by their stamps."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tidecast.merge import MergeSink
from tidecast.orders import ReplayOrder
from tidecast.recovery import restart
from tidecast.recovery.epochs import LiveEpoch
from tidecast.recovery.restart import Recovery
from tidecast.replay import source

GAP = ReplayOrder(
    "gap-1", "orders", 5.0, "run", {"e": {"0": 10, "1": 20}}, {"e": {"0": 50, "1": 60}}, begin_ms=0, end_ms=9_000,
    open_ms=5_000, open_starts={"e": {"0": 40, "1": 55}},
)  # fmt: skip
NEWEST, STAMPED = {("e", 0): 900, ("e", 1): 800}, {("e", 0): 100, ("e", 1): 50}
OPEN = dict.fromkeys(NEWEST, source.LATEST)


class Positions:
    """Partitions with many records that came since."""

    places = tuple(NEWEST)

    def __init__(self, options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ends(self):
        return NEWEST

    def at(self, wall_s, ends):
        assert (wall_s, ends) == (110.0, NEWEST)
        return STAMPED


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A recovery that has come to some offsets, and what it gives to `replay_into`."""
    monkeypatch.setattr(restart, "Positions", Positions)
    monkeypatch.setattr(restart, "replay_into", lambda *given, **named: named)
    committed = SimpleNamespace(offsets={("e", 0): 70, ("e", 1): 60})
    monkeypatch.setattr(restart, "read_committed", lambda checkpoint: committed)

    def of(final_s, stamped_s=110.0):
        epoch = LiveEpoch(1, 5_000, final_s, GAP, stamped_s)
        records = SimpleNamespace(sparkSession=None)
        made = Recovery(records, MergeSink(str(tmp_path / "t"), ["key"]), tmp_path / "live", (epoch,), "", {})
        return made, made.replay_into(None), committed

    return of


def test_windows_are_computed_again_up_to_what_is_stamped_later_than_any_record_of_them(asked):
    made, named, committed = asked(final_s=100.0)
    assert named["ends"](GAP) == OPEN
    assert named["ends"](replace(GAP, id="fix")) is None  # of a range whose windows are final
    assert made.still_open(GAP) == "the live query is to read 30 records first"
    assert named["ends"](GAP) == STAMPED
    committed.offsets = STAMPED
    assert made.still_open(GAP) == "" and named["ends"](GAP) == STAMPED


def test_while_records_may_come_and_where_no_stamp_is_known_all_that_came_is_looked_at(asked):
    made, named, _ = asked(final_s=time.time() + 60)
    assert "may come until" in made.still_open(GAP) and named["ends"](GAP) == OPEN
    made, named, _ = asked(final_s=100.0, stamped_s=0.0)  # as an earlier release noted it
    assert made.still_open(GAP) == "the live query is to read 1,570 records first" and named["ends"](GAP) == NEWEST


@pytest.mark.parametrize(("first_ms", "ends", "read"), [
    (None, None, ('{"e": {"0": 10, "1": 20}}', "latest")),
    (6_000, None, ('{"e": {"0": 40, "1": 55}}', "latest")),
    (6_000, STAMPED, ('{"e": {"0": 40, "1": 55}}', '{"e": {"0": 100, "1": 55}}')),  # none is read from behind its start
    # A partition that was added since is live's from its first record on.
    (None, OPEN | {("e", 2): -1}, ('{"e": {"0": 10, "1": 20, "2": 0}}', '{"e": {"0": -1, "1": -1, "2": -1}}')),
    (6_000, STAMPED | {("e", 2): 7}, ('{"e": {"0": 40, "1": 55, "2": 0}}', '{"e": {"0": 100, "1": 55, "2": 7}}')),
])  # fmt: skip
def test_what_is_read_again_begins_and_ends_by_offsets_in_small_tasks(first_ms, ends, read):
    options = {}

    class Reader:
        def format(self, name):
            return self

        def options(self, **given):
            return self

        def option(self, name, value):
            options[name] = value
            return self

        def load(self):
            return "records"

    assert source.read_again(SimpleNamespace(read=Reader()), GAP, {}, first_ms, ends) == "records"
    assert (options["startingOffsets"], options["endingOffsets"]) == read
    assert json.loads(options["assign"]) == {"e": [0, 1, 2] if ends and ("e", 2) in ends else [0, 1]}
    assert options["maxRecordsPerPartition"] == "200"
