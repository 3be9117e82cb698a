"""Live micro-batches, repeats, stragglers, replays and publishes in any order end in the truth."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.relation.results import NOTHING, ResultRow, changed_since, corrected, difference, publish, told

RANGE = frozenset({0, 1, 2})
WINDOWS = (*RANGE, 3)


def test_a_newer_telling_replaces_and_an_older_or_equal_one_does_not():
    row = told(None, "a", 5)
    assert row == ResultRow("a", 5)
    assert told(row, "b", 6) == ResultRow("b", 6)
    assert told(row, "b", 5) is row and told(row, "b", 4) is row


def test_a_deleted_result_does_not_come_back_with_what_is_older():
    assert told(told(told(None, "a", 4), None, 5), "a", 4) == ResultRow(None, 5)


def test_what_live_knows_a_part_of_is_noted_and_not_shown():
    noted = told(ResultRow("whole", 3), "half", 7, whole=False)
    assert noted == ResultRow("whole", 7, 3) and noted.waits
    assert told(noted, "more", 8, whole=False) == ResultRow("whole", 8, 3)
    assert told(None, "half", 7, whole=False) == ResultRow(None, 7, NOTHING)  # there was no result, so there is none
    assert corrected(noted, "whole again", 6) is noted  # by a replay whose source was cut before
    assert corrected(told(None, "half", 7, whole=False), "all", 7) == ResultRow("all", 7, 7)


def test_what_a_backfill_corrected_keeps_its_value_and_notes_that_live_told_more():
    row = corrected(ResultRow("wrong", 3), "right", 7)
    assert row == ResultRow("right", 7, 7) and not row.waits
    noted = told(row, "wrong too", 8)
    assert noted == ResultRow("right", 8, 7) and noted.waits
    assert corrected(noted, "right", 7) is noted  # by a replay that does not know version 8
    assert corrected(noted, "right", 8) == ResultRow("right", 8, 8)  # by one that does, though the value is the same
    assert told(row, "repeated", 7) is row


@pytest.mark.parametrize(
    ("row", "value", "its"),
    [(None, None, "equal"), (None, 1, "new"), (ResultRow(None, 2), 1, "new"), (ResultRow(1, 2), 1, "equal"),
     (ResultRow(1, 2), 2, "differs"), (ResultRow(1, 2), None, "gone"), (ResultRow(None, 2), None, "equal")],
)  # fmt: skip
def test_what_readers_would_see_change(row, value, its):
    assert difference(row, value) == its
    after = corrected(row, value, 2)
    assert (after is row) == (its == "equal")
    assert after is row or (after.value, after.covers) == (value, 2)


def test_nothing_is_replaced_that_live_changed_after_the_note():
    table = {0: ResultRow(1, 4), 1: ResultRow(1, 5), 3: ResultRow(1, 1)}
    after, again = publish(table, {0: 2, 1: 2, 2: 2, 3: 2}, RANGE, 4)
    assert after == {0: ResultRow(2, 4, 4), 1: ResultRow(1, 5), 2: ResultRow(2, 4, 4), 3: ResultRow(1, 1)}
    assert again == {1}


@dataclass
class World:
    """A source, a live query that has lost records, its table, and at most one backfill."""

    source: list = field(default_factory=list)  # (window, sign)
    lost: set = field(default_factory=set)  # positions that live never took
    taken: int = 0
    batches: list = field(default_factory=list)  # what each tells, and whether live knew all of its windows
    whole: bool = True
    state: dict = field(default_factory=lambda: dict.fromkeys(WINDOWS, 0))
    table: dict = field(default_factory=dict)
    shadow: dict | None = None
    mark: int = -1  # of the shadow as it is written
    noted: tuple | None = None  # mark and windows of the round that is begun

    def truth(self, window, upto=None):
        return sum(sign for w, sign in self.source[:upto] if w == window) or None

    def arrive(self, window, sign):
        self.source.append((window, sign))

    def live(self, many):
        touched = {}
        for at in range(self.taken, min(self.taken + many, len(self.source))):
            window, sign = self.source[at]
            if at not in self.lost:
                self.state[window] += sign
                touched[window] = self.state[window] or None
        self.taken = min(self.taken + many, len(self.source))
        self.batches.append((touched, self.whole))
        self.tell(len(self.batches) - 1)

    def tell(self, batch):
        """Also again, by a driver that was killed before it had noted that it was done."""
        touched, whole = self.batches[batch]
        for window, value in touched.items():
            before, known = self.table.get(window), whole or window not in RANGE
            self.table[window] = told(before, value, batch, known)
            if not known and batch > getattr(before, "version", -1):  # nor what live knows a part of
                assert self.table[window].value == getattr(before, "value", None)
            if before is not None and before.covers is not None:  # a reader never sees what was corrected go back
                assert self.table[window].value == before.value

    def outage(self):
        """Live begins anew at the newest record, and the range is replayed; other windows begin after the outage."""
        if any(window not in RANGE for window, _ in self.source[self.taken :]):
            return
        self.taken, self.whole, self.shadow, self.noted = len(self.source), False, None, None
        self.state |= dict.fromkeys(RANGE, 0)

    def note(self):
        newest = max((row.version for row in self.table.values()), default=-1)
        windows = RANGE
        if self.shadow is not None:
            windows = frozenset(w for w in RANGE if changed_since(self.table.get(w), self.mark))
        self.noted = newest, windows

    def write(self):
        """The source is cut here, at some time after the note."""
        if self.noted is not None:
            self.mark, windows = self.noted
            self.shadow = {**(self.shadow or {}), **{w: self.truth(w) for w in windows}}
            self.noted = None

    def killed(self):
        self.noted = None

    def publish(self):
        if self.shadow is None:
            return None
        before = self.table
        self.table, waiting = publish(before, self.shadow, RANGE, self.mark)
        assert all(self.table.get(w) == before.get(w) for w in WINDOWS if w not in RANGE or w in waiting)
        again, _ = publish(self.table, self.shadow, RANGE, self.mark)
        assert again == self.table  # a repeated publish changes nothing
        return waiting


STEPS = st.one_of(
    st.tuples(st.just("arrive"), st.sampled_from(WINDOWS), st.sampled_from((1, 1, -1))),
    st.tuples(st.just("live"), st.integers(0, 4)),
    st.tuples(st.just("tell"), st.integers(0, 9)),
    *(st.tuples(st.just(name)) for name in ("note", "write", "killed", "publish", "outage")),
)


def world(past, lost, steps):
    """What stands after a past that live has taken with losses, and then these steps."""
    made = World()
    for window in past:
        made.arrive(window, 1)
    made.lost = {at for at in lost if at < len(past)}
    made.live(len(past))
    for name, *given_ in steps:
        if name == "tell":
            given_ = [given_[0] % len(made.batches)]
        getattr(made, name)(*given_)
    return made


PAST = st.lists(st.sampled_from(WINDOWS), max_size=8)


@settings(max_examples=300)
@given(PAST, st.sets(st.integers(0, 7)), st.lists(STEPS, max_size=25))
def test_any_interleaving_ends_in_the_truth(past, lost, steps):
    made = world(past, lost, steps)
    made.live(len(made.source))
    for _ in range(3):
        made.note()
        made.write()
        waiting = made.publish()
    assert waiting == frozenset()
    assert {w: made.table[w].value if w in made.table else None for w in RANGE} == {w: made.truth(w) for w in RANGE}
    assert (made.table[3].value if 3 in made.table else None) == (made.state[3] or None)  # out of range: live's
    assert not any(row.waits for row in made.table.values())


@settings(max_examples=200)
@given(PAST, st.sets(st.integers(0, 7)), st.lists(STEPS, max_size=25))
def test_a_repeated_batch_changes_nothing(past, lost, steps):
    made = world(past, lost, steps)
    before = dict(made.table)
    for batch in range(len(made.batches)):
        made.tell(batch)
    assert made.table == before


def test_a_source_that_is_cut_before_the_note_may_lose_a_record():
    """The order of note and cut is what the proof rests on: turned round, the truth is missed."""
    made = World()
    made.arrive(0, 1)
    cut = made.truth(0)
    made.arrive(0, 1)
    made.live(2)
    made.note()
    made.mark, made.shadow, made.noted = made.noted[0], {0: cut}, None
    assert made.publish() == frozenset()
    assert made.table[0].value == 1 != made.truth(0)
