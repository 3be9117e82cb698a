"""The account of a promise: what is late, what is left, how fast it goes."""

import dataclasses
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.bounds import DAY_S
from models.policy.core.budget import LONG, PARTS, Account, Promise

PROMISE = Promise(target_s=5.0, budget=0.05, window_days=1.0)


def after(batches, promise=PROMISE, scale=1.0):
    account = Account()
    for committed, latency in batches:
        account = account.add_batch(promise, committed, latency, scale)
    return account


def test_late_seconds_are_counted_as_by_hand():
    # Production from 0 on. Committed at 8.5: all that was produced up to 6; late is what came before 8.5 - 5 = 3.5, in
    # the seconds 0 to 3. Committed at 12: production from 6 to 11; late is what came before 7.
    account = after([(8.5, 8.5), (12.0, 6.0), (13.0, 2.0)])
    assert (account.seconds, account.late_s) == (11.0, 5.0)
    assert account.newest == (13.0, 11.0)
    # The second 6 is late in part by the one batch, in part by the next, and counts once.
    assert after([(11.4, 11.4), (12.0, 5.6), (13.0, 2.0)]).late_s == 7.0


def test_a_batch_in_time_and_a_pause_without_load_spend_nothing():
    account = after([(2.0, 2.0), (4.0, 3.0), (1000.0, 1.0), (1002.0, 2.0)])
    assert account.late_s == 0 and account.seconds == 1 + 3 + 1


def test_a_clock_that_was_set_back_ends_no_count():
    before = [(8.5 + 3600, 8.5), (12.0 + 3600, 6.0), (13.0 + 3600, 2.0)]
    account = after([*before, (8.5, 8.5), (12.0, 6.0), (13.0, 2.0)])
    assert (account.seconds, account.late_s) == (22.0, 10.0), "what the seconds had come to by the clock before"
    assert account.newest == (13.0, 11.0)
    # Two computers' clocks differ by less: a batch that seems to be from before adds nothing, and what follows counts.
    assert after([*before, (3590.0, 1.0), (3614.0, 2.0)]).late_s == 5.0


def test_late_seconds_of_a_clock_that_was_set_back_leave_the_window_by_the_new_time():
    month = 30 * DAY_S
    account = after([(1000.5 + month, 8.5), (1004.0 + month, 6.0), (1005.0 + month, 2.0)])
    assert account.late_s == 5.0
    for second in range(0, 2 * int(DAY_S), 600):
        account = account.add_batch(PROMISE, 1000.5 + second, 1.0, 1.0)
    assert account.late_s == 0.0 and account.late_since is None
    assert len(account.parts) <= PARTS + 1


def test_it_counts_what_each_second_of_a_simulated_job_took():
    chance, clock, newest, batches, produced = np.random.default_rng(2), 0.0, 0.0, [], []
    for _ in range(400):
        begins = max(clock, newest + 0.2)
        clock = begins + float(chance.gamma(2.0, 2.5))
        batches.append((clock, clock - newest))
        produced.append((newest, begins, clock))
        newest = begins
    grid = np.arange(0.0, produced[-2][1], 0.05)
    done = np.array([next(end for low, high, end in produced if low <= at < high) for at in grid])
    account = after(batches)
    assert account.late_s == pytest.approx(len(set(np.floor(grid[done - grid > 5]))), rel=0.01)
    assert account.seconds == pytest.approx(grid[-1], rel=0.01)


def test_budget_and_burn_as_by_hand():
    account = Account(parts=((0.0, 8640.0, 432.0),), long=(100.0, 10.0), short=(10.0, 0.0))
    assert account.standing(PROMISE, 1.0) == {
        "late_s": 432.0, "seconds": 8640.0, "budget_left": 0.9, "burn_long": 2.0, "burn_short": 0.0,
    }  # fmt: skip
    # 720 times as fast a day is 120 s, of which 6 may be late: the budget is spent long ago.
    assert account.standing(PROMISE, 720.0)["budget_left"] == -71
    assert Account().standing(PROMISE, 1.0)["burn_long"] is None
    nothing = account.standing(dataclasses.replace(PROMISE, budget=0.0), 1.0)
    assert nothing["budget_left"] is None and nothing["burn_long"] is None


def test_a_steady_burn_is_found_and_the_short_window_forgets_first():
    late = after([(float(at), 6.0 if at % 2 else 5.0) for at in range(7, 1200)])
    standing = late.standing(PROMISE, 1.0)
    assert standing["burn_long"] == pytest.approx(late.late_s / late.seconds / PROMISE.budget, rel=0.1)
    calm = late
    for at in range(1200, 1200 + int(DAY_S / LONG)):
        calm = calm.add_batch(PROMISE, float(at), 1.0, 1.0)
    standing = calm.standing(PROMISE, 1.0)
    assert standing["burn_short"] < 1e-3 < 0.3 * late.standing(PROMISE, 1.0)["burn_long"] < standing["burn_long"] * 1.1


def test_what_is_older_than_the_window_is_forgotten():
    step = DAY_S / PARTS
    account = after([(step * at + 10.0, 10.0) for at in range(3 * PARTS)])
    assert len(account.parts) == PARTS
    assert account.add_batch(PROMISE, 1e9, 1.0, 1.0).late_s <= 5.0  # a week without load later


def test_an_account_goes_on_from_what_it_reported():
    late = after([(float(at), 6.0 if at % 7 < 2 else 4.0) for at in range(7, 9000)])
    resumed = Account.resumed(late.standing(PROMISE, 1.0), PROMISE, 1.0, 8999.0)
    resumed = dataclasses.replace(resumed, newest=late.newest, counted=late.counted)
    for at in range(9000, 9300):
        late, resumed = (each.add_batch(PROMISE, float(at), 6.5, 1.0) for each in (late, resumed))
    ours, theirs = resumed.standing(PROMISE, 1.0), late.standing(PROMISE, 1.0)
    assert (ours["late_s"], ours["seconds"]) == pytest.approx((theirs["late_s"], theirs["seconds"]), abs=1.0)
    assert (ours["burn_long"], ours["burn_short"]) == pytest.approx(
        (theirs["burn_long"], theirs["burn_short"]), rel=0.01
    )
    assert len(resumed.parts) <= PARTS


def test_of_an_account_that_had_nothing_or_no_budget_nothing_is_resumed():
    assert Account.resumed(Account().standing(PROMISE, 1.0), PROMISE, 1.0, 5.0) == Account()
    free = dataclasses.replace(PROMISE, budget=0.0)
    resumed = Account.resumed(Account(parts=((0.0, 50.0, 7.0),)).standing(free, 1.0), free, 1.0, 60.0)
    assert (resumed.late_s, resumed.seconds, resumed.long[1]) == (7.0, 50.0, 0.0)


def test_what_was_resumed_leaves_the_window_little_by_little():
    full = {"late_s": 600.0, "seconds": DAY_S, "budget_left": 0.9, "burn_long": 1.0, "burn_short": 1.0}
    resumed = Account.resumed(full, PROMISE, 1.0, 2 * DAY_S)
    half = dataclasses.replace(resumed, newest=(2 * DAY_S, 2 * DAY_S)).add_batch(PROMISE, 2.5 * DAY_S, 0.0, 1.0)
    assert half.late_s == pytest.approx(300.0, abs=20.0)


TIMES = st.floats(0, 1e10) | st.sampled_from([0.0, 1e-9, 1e300])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TIMES, TIMES), max_size=30), st.sampled_from([1.0, 720.0]))
def test_whatever_comes_late_is_never_more_than_what_passed_and_survives_as_json(batches, scale):
    account = after(batches, scale=scale)
    assert 0 <= account.late_s <= account.seconds + len(batches) and len(account.parts) <= PARTS
    assert all(math.isfinite(part[1]) for part in account.parts)
    assert Account.from_json_values(json.loads(json.dumps(dataclasses.asdict(account)))) == account
