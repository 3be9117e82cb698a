"""What a stateful operator keeps of sessions gives what the reference gives, and is forgotten when it may be."""

from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row
from pyspark.sql.types import LongType, StructField, StructType

from models.relation.records import relation
from models.relation.sessions import SessionWindow
from tidecast.signed.sessions.members import ends_of, moves, spans_of, with_record
from tidecast.signed.sessions.processor import SessionPlan, SessionProcessor

GAP = 10
changes = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 1), st.sampled_from([1, 1, -1])), max_size=20)


class Driven:
    """A session operator on a state and a timer that are plain values."""

    def __init__(self, key="k"):
        self.state, self.timers, self.held = None, set(), Counter()
        schema = StructType([StructField(name, LongType()) for name in (key, "v")])
        self.processor = SessionProcessor(SessionPlan((key,), ("v",), GAP, schema))
        self.processor._handle = SimpleNamespace(registerTimer=self.timers.add, deleteTimer=self.timers.remove)
        self.processor._state = SimpleNamespace(get=lambda: self.state, update=self.keep, clear=lambda: self.keep(None))

    def keep(self, state):
        self.state = state

    def take(self, *records, watermark=-1, derived=False):
        rows = [Row(v=v, _t_e=t_e, _t_i=t_e, _mult=mult, _origin="live", _derived=derived) for t_e, v, mult in records]
        now = SimpleNamespace(getCurrentWatermarkInMs=lambda: watermark)
        told = list(self.processor.handleInputRows(("a",), rows, now))
        for timer in sorted(timer for timer in self.timers if timer <= watermark):
            self.timers.discard(timer)
            told += self.processor.handleExpiredTimer(("a",), now, None)
        for row in told:
            if not row._note:
                self.held[(row._window_start, row._window_end), row.v, row._t_e] += row._mult
        return Counter({row._note: row._mult for row in told if row._note})


@given(changes, st.integers(0, 20))
def test_however_records_are_cut_the_sessions_are_the_references(found, cut):
    driven = Driven()
    driven.take(*found[:cut])
    driven.take(*found[cut:])
    facts = relation((("a", v, t_e), mult) for t_e, v, mult in found)
    wanted = SessionWindow(GAP).apply(facts)
    assert {held: net for held, net in driven.held.items() if net} == {
        (tuple(k.window), v, t_e): net for (k, v, t_e), net in wanted.items()
    }
    assert bool(driven.timers) == bool(driven.state) == bool(facts)


def test_what_leaves_is_told_before_what_comes_and_what_stays_is_not_told():
    members = {}
    for t_e in (0, 8, 15, 40):
        with_record(members, (t_e, ("x",)), 1, t_e, True)
    after = dict(members)
    with_record(after, (8, ("x",)), -1, 50, False)
    assert [(move.fact[0], move.span, move.copies) for move in moves(members, after, GAP)] == [
        (0, (0, 25), -1), (8, (0, 25), -1), (15, (0, 25), -1), (0, (0, 10), 1), (15, (15, 25), 1),
    ]  # fmt: skip
    assert spans_of(after, GAP)[40, ("x",)] == (40, 50)


def test_a_member_lasts_as_long_as_its_session_and_a_retraction_alone_as_its_own_time():
    members = {}
    for t_e, mult in ((0, 1), (9, 1), (12, -1)):
        with_record(members, (t_e, ()), mult, t_e, True)
    assert ends_of(members, GAP) == {(0, ()): 19, (9, ()): 19, (12, ()): 13}


def test_late_records_and_lonely_retractions_are_counted_and_sessions_end_with_the_watermark():
    driven = Driven()
    assert driven.take((5, 1, 1), (30, 1, 1), (20, 1, -1), watermark=4) == {}
    assert driven.timers == {14}
    assert driven.take((10, 2, 1), watermark=10) == {"late": 1}
    assert driven.take((10, 2, 1), watermark=10, derived=True) == {}
    assert driven.held[(5, 20), 1, 5] == driven.held[(5, 20), 2, 10] == 1
    assert driven.timers == {19}
    assert driven.take(watermark=25) == {"negative": 1}
    assert driven.timers == {39} and len(driven.state[0]) == 1
    assert driven.take(watermark=39) == {} and driven.state is None and not driven.timers


def test_a_sessions_key_may_be_named_as_an_argument_of_row_is():
    driven = Driven("cls")
    assert driven.take((5, 1, 1), (1, 1, 1), watermark=4) == {"late": 1}
    assert driven.held == {((5, 15), 1, 5): 1}


def test_what_does_not_equal_itself_is_refused():
    with pytest.raises(ValueError, match="NaN among the values"):
        with_record({}, (0, (float("nan"),)), 1, 0, True)
