"""The page of backfills: how far each is, whether its deadline is kept, and which ones need a person."""

import json

import pytest

from pipelines.bench.team.console.records import NOW, interval, order, progress, record
from pipelines.console.backfills import MOST_OVER, backfill_row, backfill_rows
from pipelines.console.read.fold import ReadModel, fold
from pipelines.console.read.replay import KEPT


def row(*records, after=1.0):
    job = fold(ReadModel(), records, NOW + 60).jobs["orders"]
    ((name, replay),) = job.replays.items()
    return backfill_row(job, name, replay, NOW + after)


@pytest.mark.parametrize("state", ["waiting", "paused", "running"])
def test_one_whose_deadline_has_passed_is_in_trouble_whatever_it_does(state):
    known = [interval("orders", NOW), order("orders", "fix", NOW - 9, by=NOW + 3.0, sure=0.9)]
    said = progress("orders", "fix", NOW + 2, 250, rps=0.0, state=state)
    assert row(*known, said, after=1)["trouble"] == ""
    assert row(*known, said, after=4)["trouble"] == "its deadline has passed"


def test_a_running_one_is_done_by_its_rate_and_late_if_that_is_after_its_deadline():
    known = [interval("orders", NOW), order("orders", "fix", NOW - 9, by=NOW + 100.0, sure=0.9)]
    shown = row(*known, progress("orders", "fix", NOW, 250, rps=10.0, admitted_rps=12.0), after=0)
    assert (shown["done_at"], shown["by"]) == (NOW + 75, NOW + 99)  # [NOW, NOW + 1) was measured at NOW
    assert (shown["over"], shown["trouble"], shown["sure"]) == (False, "", 0.9)
    shown = row(*known, progress("orders", "fix", NOW, 0, rps=10.0), after=0)
    assert (shown["done_at"], shown["trouble"]) == (NOW + 100, "late at its present rate")


def test_when_its_plan_has_it_done_is_shown_in_wall_time():
    finish = [[0.1, NOW + 40.0], [0.9, NOW + 90.0]]
    shown = row(interval("orders", NOW), order("orders", "fix", NOW, by=NOW + 100.0, finish=finish))
    assert shown["planned"] == [[0.1, NOW + 39], [0.9, NOW + 89]]  # [NOW, NOW + 1) was measured at NOW
    assert row(order("orders", "fix", NOW, finish=finish))["planned"] == []  # no clock of the job is known
    assert row(interval("orders", NOW), order("orders", "fix", NOW))["planned"] == []


def test_a_deadline_of_a_replayed_load_is_in_wall_time():
    fast = json.loads(interval("orders", NOW).value) | {"time": 5000.0, "span_s": 200.0, "time_scale": 200.0}
    shown = row(record("metrics", "orders", json.dumps(fast).encode()), order("orders", "fix", NOW, by=7200.0))
    assert shown["by"] == NOW + 10


@pytest.mark.parametrize(
    ("state", "over", "trouble"),
    [
        ("paused", False, ""),
        ("compared", False, "waits until somebody publishes it"),
        ("done", True, ""),
        ("failed", True, ""),
        ("cancelled", True, ""),
    ],
)
def test_what_is_over_and_what_waits_for_a_person(state, over, trouble):
    shown = row(order("orders", "fix", NOW, then="compare"), progress("orders", "fix", NOW, state=state))
    assert (shown["over"], shown["trouble"]) == (over, trouble)


def test_a_gap_that_fails_again_and_again_needs_a_person_and_is_over_once_it_is_cancelled():
    """Its agent tries again by itself, and nobody had ordered it; whatever else failed is over."""
    known = [
        order("orders", "gap-1", NOW, holds=5),
        progress("orders", "gap-1", NOW + 1, state="failed", tried_again=True),
    ]
    shown = row(*known)
    assert (shown["state"], shown["over"], shown["trouble"]) == ("failed", False, "fails again and again")
    assert row(*known, after=32)["trouble"] == "nothing is heard of the job's agent"
    model = fold(ReadModel(), [*known, progress("clicks", "fix", NOW + 2)], NOW + 60)
    assert [one["job"] for one in backfill_rows(model, NOW + 3)] == ["orders", "clicks"]
    ended = row(*known, order("orders", "gap-1", NOW + 2, holds=5, wanted="done"))
    assert (ended["over"], ended["trouble"]) == (True, "")


def test_an_order_of_which_nothing_is_heard():
    assert row(order("orders", "fix", NOW), after=29)["trouble"] == ""
    shown = row(order("orders", "fix", NOW), after=31)
    assert (shown["state"], shown["records"], shown["done"]) == ("ordered", 1000, 0)
    assert shown["trouble"] == "nothing is heard of the job's agent"
    own = row(order("orders", "fix", NOW, apart=3), after=31)
    assert (shown["apart"], own["apart"], own["trouble"]) == (None, 3, "nothing is heard of its application")


def test_a_paused_one_is_in_trouble_where_its_agent_is_silent_and_not_where_its_application_has_ended_by_that():
    paused = progress("orders", "fix", NOW, state="paused")
    own = [order("orders", "fix", NOW, wanted="pause", apart=3), paused]
    assert row(order("orders", "fix", NOW, wanted="pause"), paused, after=31)["trouble"] != ""
    assert row(*own, after=31)["trouble"] == ""
    resumed = order("orders", "fix", NOW + 1, apart=3)
    assert row(*own, resumed, after=32)["trouble"] == "nothing is heard of its application"


@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
def test_one_that_is_ordered_again_is_not_over_and_waits_for_its_agent(state):
    known = [order("orders", "fix", NOW - 60), progress("orders", "fix", NOW - 50, 700, state=state)]
    again = order("orders", "fix", NOW)
    shown = row(*known, again)
    assert (shown["state"], shown["over"], shown["done"], shown["trouble"]) == ("ordered", False, 0, "")
    assert row(*known, again, after=31)["trouble"] == "nothing is heard of the job's agent"
    assert row(*known, again, progress("orders", "fix", NOW + 1, 5))["state"] == "running"
    over = row(*known, order("orders", "fix", NOW, wanted="done"))
    assert (over["state"], over["over"], over["done"]) == (state, True, 700)


def test_a_newer_order_of_one_that_goes_on_leaves_what_was_said():
    shown = row(progress("orders", "fix", NOW - 5, 700), order("orders", "fix", NOW))
    assert (shown["state"], shown["done"]) == ("running", 700)


def test_a_difference_that_is_to_be_published_waits_for_nobody_but_the_agent():
    known = [order("orders", "fix", NOW - 60, then="compare"), progress("orders", "fix", NOW - 50, state="compared")]
    assert row(*known)["trouble"] == "waits until somebody publishes it"
    known.append(order("orders", "fix", NOW))
    assert row(*known)["trouble"] == ""
    assert row(*known, after=31)["trouble"] == "nothing is heard of the job's agent"


def test_one_that_is_over_and_of_which_nothing_was_read_has_no_share():
    shown = row(order("orders", "fix", NOW, wanted="done"), after=31)
    assert (shown["state"], shown["over"], shown["records"], shown["done"]) == ("over", True, 1000, None)
    assert shown["trouble"] == ""


def test_the_newest_word_and_order_hold():
    shown = row(
        order("orders", "fix", NOW), order("orders", "fix", NOW - 5, wanted="cancel"),
        progress("orders", "fix", NOW, 500), progress("orders", "fix", NOW - 5, 900),
    )  # fmt: skip
    assert (shown["wanted"], shown["done"]) == ("run", 500)


def test_trouble_first_then_what_goes_on_then_the_newest_that_are_over():
    jobs = [("rides", "running", 0), ("clicks", "compared", 0), ("orders", "done", 9), ("orders2", "done", 20)]
    records = [progress(job, "fix", NOW + at, state=state) for job, state, at in jobs]
    rows = backfill_rows(fold(ReadModel(), records, NOW + 60), NOW + 20)
    assert [one["job"] for one in rows] == ["clicks", "rides", "orders2", "orders"]


def test_memory_and_page_are_bounded():
    records = [progress(f"job-{i % 8}", f"fix-{i}", NOW + i / 100, state="done") for i in range(8 * (KEPT + 5))]
    model = fold(ReadModel(), records, NOW + 60)
    assert all(len(job.replays) == KEPT for job in model.jobs.values())
    assert "fix-0" not in model.jobs["job-0"].replays
    assert len(backfill_rows(model, NOW)) == MOST_OVER


def test_an_order_under_another_key_is_refused_and_clocks_are_nothing():
    moved = record("control", "rides:replay:fix", order("orders", "fix", NOW).value)
    assert fold(ReadModel(), [moved, record("control", "orders:clock", b"{}")], NOW) == ReadModel(refused=1)
