"""An order that is followed: its plan is looked at again, a new schedule goes out, and what cannot be is told once."""

from dataclasses import replace

import pytest

from configs.settings import load
from models.backfill.live.ordered import plan_order, with_plan
from pipelines.backfill import follow
from pipelines.backfill.text import describe_followed
from tests.fakes.planned_job import NOW, memory, moment, order, progress
from tidecast.orders import LATER_S, standing_order


class Watch:
    """A watch that knows what it is told."""

    def __init__(self, now):
        self.moment = now

    def now(self):
        return self.moment


@pytest.fixture
def sent(monkeypatch):
    found = []
    monkeypatch.setattr(follow, "send_order", lambda kafka, order: found.append(order))
    monkeypatch.setattr(follow, "LEAST_LOOK_S", 0.0)
    monkeypatch.setattr(follow, "MOST_LOOK_S", 0.0)
    return found


@pytest.fixture(scope="module")
def standing():
    first, asked = moment(), order(by=NOW + 3600, sure=0.9, records=900_000)
    return with_plan(asked, plan_order(asked, first), first)


def _later(standing, seconds, done, **fields):
    extra = standing.executors_at(NOW + seconds)
    return moment(now_s=NOW + seconds, orders=[standing], progress=[progress(done=done)], executors=3 + extra, **fields)


def test_a_plan_that_falls_behind_is_sent_anew_and_the_finish_is_told(sent, standing):
    looks = follow.PlanLooks(load(), standing)
    assert looks.look(Watch(_later(standing, 60, 10_000))) is None and not sent
    assert looks.finish.startswith("done between ") and " by 23:13 with " in looks.finish
    slower = replace(memory().model, per_record_s=0.016)
    note = looks.look(Watch(_later(standing, 1500, 30_000, model=slower)))
    (newer,) = sent
    assert note.startswith("planned anew, as its deadline would be kept with ")
    assert f"{newer.schedule[0][1]} executors more" in note
    assert newer.wall_time == standing.wall_time + LATER_S and newer.by == standing.by
    # The watch has not heard of the new order yet: it is not forgotten, and not sent twice.
    assert looks.look(Watch(_later(standing, 1502, 30_000, model=slower))) is None and len(sent) == 1


def test_a_plan_that_is_ahead_is_sent_anew_with_less(sent, standing):
    note = follow.PlanLooks(load(), standing).look(Watch(_later(standing, 1500, 800_000)))
    assert note.startswith("planned anew with less, as its deadline would be kept with 100 %: ") and len(sent) == 1


def test_the_finish_is_told_in_the_zone_of_the_jobs_contract(sent, standing):
    looks, now = follow.PlanLooks(load(), standing), _later(standing, 60, 10_000)
    known = replace(now.known, contract=now.known.contract.model_copy(update={"timezone": "Asia/Tokyo"}))
    assert looks.look(Watch(now._replace(known=known))) is None
    assert " by 08:13 with " in looks.finish  # nine hours later than in UTC


def test_a_schedule_that_is_made_anew_takes_no_word_back_that_the_follower_has_not_heard_of(sent, standing):
    slower = replace(memory().model, per_record_s=0.016)
    follow.PlanLooks(load(), standing).look(Watch(_later(standing, 1500, 30_000, model=slower)))
    (newer,) = sent
    for wanted in ("cancel", "done"):  # of a person, or of the job's agent
        meanwhile = replace(standing, wanted=wanted, wall_time=NOW + 1499)
        assert standing_order(meanwhile, newer) == standing_order(newer, meanwhile) == meanwhile


def test_of_two_followers_who_plan_anew_at_once_both_go_on_from_the_order_that_stands(sent, standing):
    looks = follow.PlanLooks(load(), standing)
    slower = replace(memory().model, per_record_s=0.016)
    looks.look(Watch(_later(standing, 1500, 30_000, model=slower)))
    first = replace(sent[0], schedule=[[NOW + 1500, 0]])  # of the other one, and read before this one's
    looks.look(Watch(_later(first, 1502, 30_000, model=slower)))
    assert len(sent) == 2 and sent[1].wall_time > first.wall_time


def test_a_paused_replay_is_left_alone(sent, standing):
    looks = follow.PlanLooks(load(), standing)
    paused = replace(standing, wanted="pause", wall_time=NOW + 10)
    assert looks.look(Watch(_later(paused, 1500, 30_000))) is None
    assert looks.look(Watch(_later(paused, 3700, 30_000))) is None and not sent


def test_once_its_deadline_has_passed_no_end_is_told_any_more_and_that_is_said_once(sent, standing):
    looks, said = follow.PlanLooks(load(), standing), progress(done=800_000, records=900_000, rps=100.0)
    assert looks.look(Watch(_later(standing, 60, 10_000))) is None and looks.finish
    for seconds in (3580, 3590):  # what is read now is not published by then
        assert looks.look(Watch(_later(standing, seconds, 800_000))) is None and looks.finish == ""
    assert looks.look(Watch(_later(standing, 3610, 800_000))) == "the schedule stays as it is: its deadline has passed"
    assert looks.look(Watch(_later(standing, 3620, 800_000))) is None and not sent
    assert "17 min left" in describe_followed(follow.FollowedOrder(said, looks.finish))


def test_what_cannot_be_looked_at_is_told_once_and_the_schedule_stays(sent, standing):
    looks, now = follow.PlanLooks(load(), standing), _later(standing, 60, 10_000)
    blind = Watch(now._replace(known=replace(now.known, issued=None)))
    assert "the schedule stays as it is: there is no forecast" in looks.look(blind)
    assert looks.look(blind) is None and not sent


def test_beside_an_agent_that_is_frozen_nothing_is_planned_anew_or_promised_and_it_is_told_why(sent, standing):
    looks = follow.PlanLooks(load(), standing)
    slower = replace(memory().model, per_record_s=0.016)
    assert looks.look(Watch(_later(standing, 60, 10_000))) is None and looks.finish
    note = looks.look(Watch(_later(standing, 1500, 30_000, model=slower, mode="freeze")))
    assert "the schedule stays as it is: the agent of job 'orders' is in mode freeze" in note
    assert not sent and looks.finish == ""
    assert "planned anew" in looks.look(Watch(_later(standing, 1502, 30_000, model=slower)))


def test_what_is_new_is_a_line():
    said = progress(done=100_000, rps=95.4, admitted_rps=100.0, executors=2)
    assert describe_followed(follow.FollowedOrder(said, "done between 23:01 and 23:09, by 23:13 with 97 %")) == (
        "[######..................]  25% running, 100,000 of 400,000, 95 of 100 records/s, 2 executors more, "
        "done between 23:01 and 23:09, by 23:13 with 97 %"
    )
    assert "5 min" not in describe_followed(follow.FollowedOrder(said)) and "left" in describe_followed(
        follow.FollowedOrder(said)
    )
    compared = progress(done=400_000, state="compared", reason="9 of 50 windows differ")
    assert describe_followed(follow.FollowedOrder(compared)).endswith(
        "waits for `tidecast backfill orders --publish fix`, 9 of 50 windows differ"
    )
    assert describe_followed(follow.FollowedOrder(None, note="planned anew")) == "planned anew"
    assert "nothing is heard" in describe_followed(follow.FollowedOrder(None, silent=True))
