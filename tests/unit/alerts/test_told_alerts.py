"""Which alerts are told, and when: planted troubles, quiet days, and what holds for any course of conditions."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.alerts.standing import GAP_S, LAST_TRY_S, Key, StandingAlert, advance, due, next_try_s, told
from models.alerts.table import ALERTS, BY_NAME, KEEP_S
from pipelines.bench.team.alerts.measure import SINCE, plant, quiet_tellings
from pipelines.bench.team.alerts.troubles import TROUBLES

SPENT, FILES = Key("TidecastBudgetSpent", (("job", "orders"),)), Key("TidecastLakeNotMaintained", (("table", "m"),))


def test_hours_without_trouble_are_quiet():
    assert quiet_tellings(8.0) == []


@pytest.mark.parametrize("name", TROUBLES)
def test_a_planted_trouble_is_told_within_its_window_once_and_nothing_else(name):
    trouble = TROUBLES[name]
    found = plant(name, trouble)
    assert [(one.kind, one.alert) for one in found] == [("new", trouble.alert)]
    assert 0 <= found[0].at - SINCE <= trouble.within_s


def test_every_alert_is_planted_once():
    assert sorted(one.alert for one in TROUBLES.values()) == sorted(BY_NAME) and len(ALERTS) >= 12


def test_it_is_told_again_after_twice_as_long_each_time_and_once_when_over():
    state, found = {}, []
    for now in range(0, 9000, 10):
        state = advance(state, {SPENT: -0.1} if now < 8000 else {}, now)
        notices = due(state, now, 600)
        found += [(now, one.kind) for one in notices]
        state = told(state, notices, now)
    repeated = [(600, "repeated"), (1800, "repeated"), (4200, "repeated")]
    assert found == [(0, "new"), *repeated, (7990 + KEEP_S, "over")] and state == {}


def test_what_was_not_taken_is_due_until_it_is_and_nothing_is_over_that_was_never_told():
    state = advance({}, {SPENT: -0.1}, 0)
    assert [one.kind for one in due(advance(state, {SPENT: -0.2}, 50), 50, 600)] == ["new"]
    assert advance(state, {}, 50) == {}


def test_what_holds_for_less_than_its_time_is_not_told_and_its_time_begins_anew():
    state = advance({}, {FILES: 600}, 0)
    state = advance(advance(state, {FILES: 600}, 590), {}, 595)
    state = advance(state, {FILES: 601}, 600)
    assert due(state, 610, 600) == [] and [one.kind for one in due(advance(state, {FILES: 602}, 1200), 1200, 600)]


def test_pages_come_before_tickets_and_a_flicker_is_no_end():
    burns = Key("TidecastBudgetBurnsFast", (("job", "z"),))
    state = advance({}, {SPENT: 0.0, burns: 7.0}, 0)
    notices = due(state, 0, 600)
    assert [one.key.alert for one in notices] == ["TidecastBudgetBurnsFast", "TidecastBudgetSpent"]
    state = advance(told(state, notices, 0), {}, KEEP_S - 1)
    assert due(state, KEEP_S - 1, 600) == [] and len(due(state, KEEP_S, 600)) == 2


def test_alerts_of_another_release_are_forgotten():
    state = {Key("TidecastOfBefore", ()): StandingAlert(0, 0, 1.0, told_at=0, times=1)}
    assert advance(state, {}, 1) == {}


@given(st.lists(st.tuples(st.integers(1, 200), st.booleans(), st.booleans()), max_size=80))
def test_what_is_told_alternates_and_follows_the_condition(course):
    """Whatever the course, and whichever messages are not taken: new, any number of repeats, over, and anew."""
    state, now, kinds, held_at = {}, 0.0, [], -math.inf
    for passed, holds, taken in course:
        now += passed
        held_at = now if holds else held_at
        state = advance(state, {SPENT: 0.0} if holds else {}, now)
        notices = due(state, now, 60)
        assert all(one.kind != "over" or now - held_at >= KEEP_S for one in notices)
        assert all(one.kind != "new" or holds for one in notices)
        if taken and notices:
            kinds += [one.kind for one in notices]
            state = told(state, notices, now)
    for before, after in zip(["over", *kinds], kinds, strict=False):
        assert after == "new" if before == "over" else after in ("repeated", "over")


@given(st.integers(0, 10_000))
def test_a_webhook_that_refuses_is_tried_ever_more_seldom(failures):
    assert 10 <= next_try_s(failures + 1) <= next_try_s(failures + 2) <= LAST_TRY_S
    assert next_try_s(0) == GAP_S
