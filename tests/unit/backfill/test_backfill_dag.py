"""What the DAG's tasks do: ask where it is dear, order what was allowed, and cancel their own order when ended."""

import os
import signal
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from models.backfill.given import BackfillPlanError
from pipelines.backfill import dag
from pipelines.backfill.follow import FollowedOrder
from pipelines.backfill.ordering import CheapestOrder, read_due
from pipelines.backfill.orders import OrderError
from tests.fakes.planned_job import NOW, order, progress

FORM = {"job": "orders", "begin": "2026-03-01", "end": "2026-03-02", "topic": "sales", "by": "07:00", "sure": 0.9,
        "most_hours": 2.0}  # fmt: skip
RUN = "manual__2026-03-02T06:00:00+00:00"
CHEAP = {"hours": 1.0, "ask": False}
"""A plan about which nobody is asked."""


@pytest.fixture
def world(monkeypatch):
    """Plans that cost what is set, made when it is `now` by the job's clock, and orders that are noted."""
    found = SimpleNamespace(hours=1.0, now=NOW, sent=[], asked=[], changed=[], news=[], begun=[], known=order())

    def planned(settings, made, by, sure):
        due, _ = read_due(made, by, sure, settings.replay.timezone, found.now)
        return CheapestOrder(due, "so it is", found.hours)

    monkeypatch.setattr(dag, "make_order", lambda settings, asked: found.asked.append(asked) or order())
    monkeypatch.setattr(dag, "plan_by", planned)
    monkeypatch.setattr(dag, "give_order", lambda settings, one: found.sent.append(one))
    monkeypatch.setattr(dag, "read_orders", lambda kafka, job: {found.known.id: found.known})
    monkeypatch.setattr(dag, "cancel_order", lambda settings, *what: found.changed.append((*what, "cancel")))
    monkeypatch.setattr(dag, "start_application", lambda settings, one: found.begun.append(one.id))
    monkeypatch.setattr(dag, "follow_order", lambda settings, one: iter(found.news))
    return found


def test_a_person_is_asked_where_it_costs_more_than_the_form_allows(world):
    due = "2023-11-15T07:00:00+00:00"
    assert dag.plan(FORM) == {"sentence": "so it is", "hours": 1.0, "ask": False, "by": due}
    world.hours = 2.5
    assert dag.plan(FORM)["ask"] and not dag.plan({**FORM, "most_hours": None})["ask"]
    assert world.asked[0].job == "orders" and world.asked[0].topics == ("sales",) and not world.sent
    for topics in ("sales, refunds", None):
        dag.plan({**FORM, "topic": topics})
    assert [one.topics for one in world.asked[-2:]] == [("sales, refunds",), ()]  # which `make_order` takes apart
    dag.plan({**FORM, "weight": 2.0})
    assert [one.weight for one in (world.asked[0], world.asked[-1])] == [None, 2.0]


def test_a_table_how_late_records_are_and_a_comparison_are_asked_for_as_by_the_command(world):
    dag.plan(FORM)
    dag.plan({**FORM, "table": "/lake/orders", "late_s": 30.0, "compare": True})
    asked = [(one.table, one.late_s, one.compare) for one in world.asked]
    assert asked == [(None, None, False), (Path("/lake/orders"), 30.0, True)]
    world.news = [FollowedOrder(progress(state="compared", done=400_000, reason="9 of 50 windows differ"))]
    assert dag.follow("orders", "fix") == {"state": "compared", "records": 400_000}


def test_what_was_allowed_or_approved_is_ordered_and_nothing_dearer(world):
    assert dag.order(FORM, CHEAP, RUN) == "fix" and len(world.sent) == 1
    world.hours = 2.6
    assert dag.order(FORM, {"hours": 2.5, "ask": True}, RUN) == "fix" and len(world.sent) == 2
    with pytest.raises(dag.BackfillRunError, match=r"costs 2.6 executor-hours now, 2.5 were allowed"):
        dag.order(FORM, {"hours": 2.3, "ask": True}, RUN)
    world.hours = 2.1  # a tenth more than was planned, which nobody was asked about
    with pytest.raises(dag.BackfillRunError, match=r"costs 2.1 executor-hours now, 2 were allowed"):
        dag.order(FORM, {"hours": 1.95, "ask": False}, RUN)
    assert len(world.sent) == 2
    dag.order({**FORM, "most_hours": None}, {"hours": 1.0, "ask": False}, RUN)
    assert len(world.sent) == 3


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_deadline_is_the_one_that_was_planned_however_late_it_is_ordered(world, monkeypatch, zone):
    monkeypatch.setenv("TIDECAST_REPLAY__TIMEZONE", zone)
    planned = dag.plan(FORM)
    due = datetime.fromisoformat(planned["by"])
    assert (due.hour, due.minute) == (7, 0) and due.utcoffset() is not None
    world.now = due.timestamp() - 60  # as after a night's approval
    dag.order(FORM, planned, RUN)
    assert [one.by for one in world.sent] == [due.timestamp()]
    world.now = due.timestamp() + 60
    with pytest.raises(BackfillPlanError, match=r"--by '2023-11-15T07:00:00\+0\d:00' is .*, which is past; now is"):
        dag.order(FORM, planned, RUN)
    del planned["by"]  # of a run that an older release has planned
    dag.order(FORM, planned, RUN)
    assert [one.by for one in world.sent] == [due.timestamp(), due.timestamp() + 86_400]


def test_the_deadline_is_told_in_the_zone_of_the_jobs_contract(world, monkeypatch, tmp_path):
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    (tmp_path / "orders.yaml").write_text("job: orders\ntimezone: Asia/Tokyo\n")
    assert dag.plan(FORM)["by"] == "2023-11-15T16:00:00+09:00"  # nine hours later than in UTC


def test_it_is_followed_to_its_end_and_a_failure_is_the_tasks(world, capsys):
    world.news = [
        FollowedOrder(progress(done=10), "done at 23:01"),
        FollowedOrder(progress(state="done", done=400_000)),
    ]
    assert dag.follow("orders", "fix") == {"state": "done", "records": 400_000}
    assert "done at 23:01" in capsys.readouterr().out
    world.news = [FollowedOrder(progress(state="failed", reason="its source is gone"))]
    with pytest.raises(dag.BackfillRunError, match="is failed: its source is gone"):
        dag.follow("orders", "fix")
    assert not world.changed


def test_an_order_that_is_on_the_topic_no_more_is_named_with_what_to_do(world, monkeypatch):
    monkeypatch.setattr(dag, "read_orders", lambda kafka, job: {})
    with pytest.raises(dag.BackfillRunError, match=r"backfill fix of job orders is not among.*: order its range again"):
        dag.follow("orders", "fix")
    assert not world.changed


def test_a_task_that_is_ended_cancels_its_own_order_and_gives_the_signal_back(world):
    before = signal.getsignal(signal.SIGTERM)

    def ended():
        yield FollowedOrder(progress(done=10))
        os.kill(os.getpid(), signal.SIGTERM)
        yield FollowedOrder(progress(done=20))

    world.news = ended()
    with pytest.raises(dag.BackfillRunError, match="is cancelled, because its task was ended"):
        dag.follow("orders", "fix")
    assert world.changed == [("orders", "fix", "cancel")] and signal.getsignal(signal.SIGTERM) == before


def test_an_order_that_is_ended_while_it_is_given_is_cancelled_if_it_came(world, monkeypatch):
    def sent(kafka, one):
        world.sent.append(one)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(dag, "give_order", sent)
    with pytest.raises(dag.BackfillRunError, match="is cancelled, because its task was ended"):
        dag.order(FORM, CHEAP, RUN)
    assert world.changed == [("orders", "fix", "cancel")]

    def not_there(kafka, *what):
        raise OrderError("no such replay")

    monkeypatch.setattr(dag, "cancel_order", not_there)
    with pytest.raises(dag.BackfillRunError):
        dag.order(FORM, CHEAP, RUN)


@pytest.mark.parametrize("wanted", ["run", "pause", "cancel", "done"])
def test_an_order_that_nobody_follows_is_cancelled_where_it_stands_and_the_run_fails(world, wanted):
    world.known, skipped = order(wanted=wanted), {"follow": "skipped", "order": "success"}
    cancels = wanted in ("run", "pause")
    with pytest.raises(
        dag.BackfillRunError, match="cancelled, because its run was ended" if cancels else "not come to"
    ):
        dag.end_run("orders", "fix", skipped, None, failed=False, run=RUN)
    assert world.changed == [("orders", "fix", "cancel")] * cancels
    for name, states, failed in (
        ("other", skipped, False),
        (None, skipped, False),
        ("fix", {"follow": "failed"}, True),
    ):
        with pytest.raises(dag.BackfillRunError, match="not come to its end"):
            dag.end_run("orders", name, states, None, failed, RUN)
    dag.end_run("orders", "fix", {"follow": "success"}, {"state": "done"}, failed=False, run=RUN)
    rejected = {"approve": "success", "order": "skipped", "follow": "skipped"}
    dag.end_run("orders", None, rejected, None, failed=False, run=RUN)
    assert len(world.changed) == cancels


@pytest.mark.parametrize(("wanted", "said"), [("run", "its run was ended"), ("cancel", "not come to its end")])
def test_a_run_whose_follower_a_person_sets_to_success_cancels_its_order_and_fails(world, wanted, said):
    """Airflow ends that task, which may have cancelled the order by then."""
    world.known = order(wanted=wanted)
    with pytest.raises(dag.BackfillRunError, match=said):
        dag.end_run("orders", "fix", {"follow": "success", "order": "success"}, None, failed=False, run=RUN)
    assert world.changed == [("orders", "fix", "cancel")] * (wanted == "run")


def test_a_task_that_is_tried_again_after_its_end_says_how_it_ended(world, monkeypatch):
    world.known = order(wanted="done")
    for state, ends in (("done", True), ("cancelled", False)):
        monkeypatch.setattr(dag, "newest_progress", lambda kafka, job, state=state: {"fix": progress(state=state)})
        if ends:
            assert dag.follow("orders", "fix")["state"] == "done"
        else:
            with pytest.raises(dag.BackfillRunError, match="is over, and not done"):
                dag.follow("orders", "fix")


@pytest.mark.parametrize(("wanted", "apart"), [("run", None), ("run", 2), ("pause", 2)])
def test_a_try_after_the_order_was_sent_goes_on_with_that_and_gives_no_second_one(world, capsys, wanted, apart):
    """As where its process was killed before it could return the name."""
    name = f"20260301T000000-20260302T000000-{dag.mark_of(RUN)}"
    world.known, world.hours = order(name, wanted=wanted, apart=apart), 99.0  # which nobody would allow
    assert dag.order(FORM, CHEAP, RUN) == name and not world.sent and not world.asked
    assert world.begun == [name] * (apart is not None and wanted == "run")  # it died maybe before that was started
    assert "was ordered by this run before" in capsys.readouterr().out


@pytest.mark.parametrize(("state", "again"), [("done", False), ("cancelled", True), (None, True)])
def test_what_is_done_is_not_ordered_again_by_its_run_and_what_was_cancelled_is(world, monkeypatch, state, again):
    world.known = order(f"days-{dag.mark_of(RUN)}", wanted="done")
    said = {} if state is None else {world.known.id: progress(world.known.id, state=state)}
    monkeypatch.setattr(dag, "newest_progress", lambda kafka, job: said)
    assert (dag.order(FORM, CHEAP, RUN) == "fix") == bool(world.sent) == again
    assert [one.mark for one in world.asked] == [dag.mark_of(RUN)] * again


def test_another_runs_order_is_not_its_own(world):
    world.known = order(f"days-{dag.mark_of('another run')}")
    assert dag.order(FORM, CHEAP, RUN) == "fix" and len(world.sent) == 1
    with pytest.raises(dag.BackfillRunError, match="not come to its end"):
        dag.end_run("orders", None, {"order": "failed"}, None, failed=False, run=RUN)
    assert not world.changed


def test_the_order_of_a_task_that_died_is_cancelled_with_its_run(world):
    world.known = order(name := f"days-{dag.mark_of(RUN)}")
    with pytest.raises(dag.BackfillRunError, match=f"{name} of job orders is cancelled"):
        states = {"order": "failed", "follow": "upstream_failed"}
        dag.end_run("orders", None, states, None, failed=False, run=RUN)
    assert world.changed == [("orders", name, "cancel")]
