"""What raises took in the twin, told as a job's agent tells it."""

import numpy as np
import pytest

from models.policy.live.learned_lead import read_start
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import TwinJob, stack
from models.twin.sim.raises import Agents
from models.twin.sim.run import advance, observe, set_targets
from models.twin.sim.state import begin

EVERY = 5


def told(targets, startup_s=(12.0,), until=100):
    """Outcomes, by run, of targets {second: (runs,)}: 100 records/s, batches of about a second."""
    runs = len(next(iter(targets.values())))
    jobs = stack([TwinJob(overhead_s=0.5, per_record_s=0.005, most=10, startup_s=startup_s)] * runs)
    load = Load(100.0 * np.arange(until + 1)[None], np.zeros(runs, np.int64))
    state, agents = begin(jobs, np.full(runs, 2.0), np.arange(runs)), Agents(runs)
    found = [[] for _ in range(runs)]
    for now in range(0, until, EVERY):
        set_targets(state, jobs, np.array(targets.get(now, state.x["target"]), float), now)
        for run, outcome in agents.hear(state, now, now + EVERY, np.full(runs, 0.25)):
            found[run].append(outcome)
        advance(state, jobs, load, now, now + EVERY)
    return found


def test_a_raise_takes_until_a_batch_has_used_what_came():
    ((one,), none) = told({20: [5, 2]})
    start = read_start(one)
    assert none == [] and (start.executors, start.busy, start.censored) == (3, 0.25, False)
    assert one["confirmed_at"] == 32.0 and 32.0 < one["useful_at"] <= 34.0  # the batch in flight, or the next one
    assert start.seconds == pytest.approx(one["useful_at"] - 20.0)


def test_the_last_of_several_counts():
    ((one,),) = told({20: [6]}, startup_s=(8.0, 21.0, 34.0))
    assert one["useful_at"] < one["confirmed_at"] == read_start(one).seconds + 20  # the first was of use before
    assert 41.0 < one["confirmed_at"] < 54.0


def test_one_that_is_called_off_took_longer_than_it_was_waited_for():
    ((off, again),) = told({20: [5], 30: [3]})
    assert read_start(off).censored and read_start(off).seconds == 10.0 and read_start(off).executors == 3
    assert read_start(again) is None  # the third had been on its way, as a live agent sees it


def test_one_that_takes_longer_than_any_before_is_told_of_twice():
    ((late, came),) = told({20: [3]}, startup_s=(70.0,), until=120)
    assert late["decision_id"] == came["decision_id"] and read_start(late).censored and read_start(late).seconds >= 60
    assert not read_start(came).censored and 70 < read_start(came).seconds < 73


def test_raises_that_follow_each_other_are_each_told_of():
    found = told({10: [3], 20: [4], 30: [6], 70: [2], 80: [4]})[0]
    ups = [start for one in found if (start := read_start(one)) is not None]
    assert [start.executors for start in ups] == [1, 2, 3, 2]  # beyond those that run by then, as live
    assert all(12.0 <= start.seconds <= 15.0 for start in ups)


def test_a_policy_is_told_since_when_the_target_last_rose_and_since_when_it_last_changed():
    jobs, load = stack([TwinJob(0.5, 0.005, most=10)] * 2), Load(100.0 * np.arange(61)[None], np.zeros(2, np.int64))
    state = begin(jobs, np.full(2, 2.0), np.arange(2))
    for now, targets in {10: (4, 2), 20: (3, 1)}.items():
        set_targets(state, jobs, np.array(targets, float), now)
    seen = observe(state, jobs, load, Looks(), 30, None)
    assert seen.since_change_s.tolist() == [10, 10] and seen.since_raise_s.tolist() == [20, 1e6]
