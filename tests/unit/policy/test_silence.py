"""A load that has ended: nothing is raised for it, nothing burns, and what comes back is served as before."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.contract import Contract, Executors, Planning
from models.policy.catalogue import build_steered
from models.policy.core.budget import LONG, SHORT, Account, Promise
from models.policy.core.policy import decide
from models.policy.core.view import LoadAhead
from models.policy.live.evaluation import evaluate
from models.policy.live.held_forecast import with_forecast
from models.policy.live.memory import Memory, fresh, with_interval
from models.policy.received.silence import is_refuted
from tests.fakes.views import a_view, driven

# An executor does 0.8 / 0.08 = 10 records/s. A step of half an hour lasts 9 s on the wall.
CONTRACT = Contract(
    job="j", executors=Executors(min=2, max=6), latency_target_s=5.0, error_budget=0.05,
    planning=Planning(lead_s=10.0, overhead_s=0.4, per_record_s=0.08, batch_s=2.0),
)  # fmt: skip
SCALE, STEP_S = 200.0, 9
POLICY = build_steered("mpc", CONTRACT)
MORNING = (8, 8, 8, 8, 14, 22, 38, 50, 55, 55, 55, 55)


@pytest.mark.parametrize(
    ("before", "least", "came", "refuted"),
    [
        (False, 6.2, 0.27, True),  # 56 records were sure to come, and came until the load stopped within the step
        (False, 6.2, 0.7, False),  # fallen, not gone
        (False, 1.2, 0.0, True),  # 10.8 records
        (False, 0.9, 0.0, False),  # 8.1 records: that may be chance
        (True, 0.9, 0.0, True),  # but not of a forecaster that has just been refuted
        (True, 0.1, 0.0, False),  # a step that is silent as forecast
        (True, 0.0, 0.0, False),
        (True, 6.2, 3.0, False),
        (True, 6.2, math.nan, False),
    ],
)
def test_records_that_were_sure_to_come_and_did_not_refute_a_forecast(before, least, came, refuted):
    assert is_refuted(before, least, came, float(STEP_S)) is refuted


def issued(step, rates, last):
    """A forecast made when a step begins, sure to a fifth; the last rate holds."""
    ahead = [*rates[step:], *[rates[-1]] * 12][:12]
    return {
        "wall_time": float(step * STEP_S), "time": step * STEP_S * SCALE, "step_s": STEP_S * SCALE, "epoch": 1,
        "levels": [0.05, 0.5, 0.95], "quantiles": [[0.8 * rate, rate, 1.2 * rate] for rate in ahead],
        "model": "m", "version": "1", "kind": "network", "last_rps": last,
    }  # fmt: skip


def lived(rates, arrivals, told=True):
    """What is observed and decided in every second of a load that a forecaster takes for another one.

    With `told` a forecast says what the step before it came to, as every forecaster does.
    """
    memory, found = fresh(CONTRACT), []
    for second, rps in enumerate(arrivals, 1):
        if second % STEP_S == 0:
            came = float(np.mean(arrivals[second - STEP_S : second]))
            memory = with_forecast(memory, issued(second // STEP_S, rates, came if told else None))
        memory = with_interval(memory, {
            "arrival_rps": float(rps), "lag_records": int(2 * rps), "executors": memory.target or 2, "task_ceiling": 12,
            "wall_time": float(second), "time": (second - 1) * SCALE, "span_s": SCALE, "time_scale": SCALE,
        })  # fmt: skip
        after, seen, made = evaluate(memory, float(second), CONTRACT, POLICY)
        found.append((memory, seen, made))
        memory = after
    return found


def test_a_source_that_has_stopped_gets_no_executors_for_a_morning_that_does_not_come():
    stopped = [8.0] * 20 + [0.0] * 50
    found = lived(MORNING, stopped)
    asked = [made.executors for _, _, made in found]
    # It stops in the third step, of which 57.6 records were sure and 16 came; in the fourth none of 57.6 does.
    known = 4 * STEP_S
    assert not any(memory.refuted for memory, _, _ in found[: known - 1])
    assert all(memory.refuted and seen.ahead is None for memory, seen, _ in found[known - 1 :])
    assert asked[known - 1 :] == sorted(asked[known - 1 :], reverse=True) and asked[-1] == 2
    assert "no forecast counts while nothing comes of it" in found[-1][2].reason and "no_forecast" in found[-1][2].codes
    believed = [made.executors for _, _, made in lived(MORNING, stopped, told=False)]
    assert max(believed[known:]) == 6  # what the forecaster alone would have had


def test_a_load_that_comes_back_is_served_at_once_as_if_it_had_never_been_away():
    found = lived(MORNING, [8.0] * 20 + [0.0] * 40 + [40.0])
    memory, seen, made = found[-1]
    assert found[-2][1].ahead is None and memory.refuted
    _, same, as_before = evaluate(replace(memory, refuted=False), 61.0, CONTRACT, POLICY)
    assert seen.ahead is not None and seen == same and made == as_before and made.executors == 6


def test_a_night_that_was_forecast_refutes_nothing_and_its_morning_is_prepared():
    rates = (8, 8, 0, 0, 0, 0, 30, 55, 55, 55, 55, 55)
    found = lived(rates, np.repeat(rates, STEP_S)[: 6 * STEP_S - 1])
    assert not any(memory.refuted for memory, _, _ in found)
    _, seen, made = found[-1]
    assert seen.arrival_rps == 0 and seen.lag_records == 0 and made.executors > 2 and made.needed_forecast > 2


def test_where_nothing_arrives_and_nothing_waits_no_budget_burns():
    burning = Account(long=(400.0, 200.0), short=(30.0, 30.0))
    memory = replace(fresh(CONTRACT), account=burning)

    def second(memory, at, rps, lag):
        known = with_interval(memory, {
            "arrival_rps": rps, "lag_records": lag, "executors": 2, "task_ceiling": 12, "wall_time": at,
            "time": at, "span_s": 1.0, "time_scale": 1.0,
        })  # fmt: skip
        return evaluate(known, at, CONTRACT, POLICY)

    memory, seen, made = second(memory, 1.0, 0.0, 0)
    assert seen.burn is None and "burn" not in made.codes and "budget" not in made.reason
    _, waiting, made = second(memory, 2.0, 0.0, 300)
    assert min(waiting.burn) == pytest.approx(10.0) and "burn" in made.codes
    _, again, made = second(memory, 2.0, 12.0, 0)
    assert min(again.burn) == pytest.approx(10.0) and "burn" in made.codes  # a second's pause forgets nothing
    memory, _, _ = second(memory, 3601.0, 0.0, 0)
    _, later, made = second(memory, 3602.0, 12.0, 0)
    assert later.burn is None and "burn" not in made.codes  # an hour is: the short window is five minutes


def test_what_burned_fades_in_a_pause_as_by_hand():
    promise = Promise(5.0, 0.05, 7.0)
    account = Account(parts=((0.0, 400.0, 200.0),), long=(400.0, 200.0), short=(8.0, 4.0))
    half_s = math.log(2) * 7 * 86_400 / LONG  # of the long window, an hour
    rested = account.rest(promise, half_s, 1.0)
    assert rested.long == (pytest.approx(200.0), pytest.approx(100.0))
    assert rested.short == (pytest.approx(8.0 / 2**SHORT), pytest.approx(4.0 / 2**SHORT))
    told = rested.standing(promise, 1.0)
    assert told["burn_long"] == 10.0 and told["burn_short"] is None and rested.burn(promise.budget) is None
    assert (told["late_s"], told["seconds"]) == (200.0, 400.0)  # the promise forgets nothing
    assert account.rest(promise, half_s / SHORT, 1.0).burn(promise.budget) == (10.0, 10.0)
    assert account.rest(promise, -5.0, 1.0) == account == account.rest(promise, 0.0, 1.0)


def test_a_floor_that_the_promise_holds_is_not_raised_in_silence_but_stays():
    policy = build_steered("mpc", CONTRACT)
    seen = {"executors": 3.0, "least": 2.0, "most": 6.0}
    overspent = policy.fresh(1) | {"rung": np.array([11.0])}
    silent = a_view(arrival_rps=0.0, lag_records=0.0, **seen)
    assert decide(policy, overspent, silent)[1].target[0] == 3
    for changed in ({"arrival_rps": 1.0, "lag_records": 0.0}, {"arrival_rps": 0.0, "lag_records": 1.0}):
        assert decide(policy, overspent, a_view(**seen | changed))[1].target[0] == 6


ZEROS = LoadAhead(np.array([5.0, 10.0, 16.0]), (0.05, 0.5, 0.95), np.zeros((1, 3, 3)))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["reactive", "forecast", "mpc"]), st.floats(0, 11), st.integers(2, 6), st.integers(2, 6),
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1, max_size=8),
    st.sampled_from([0.0, 0.5, 1.0]), st.booleans(),
)  # fmt: skip
def test_without_load_backlog_and_forecast_no_decision_rises_whatever_the_account_says(
    name, rung, executors, target, looks, growth, forecast
):
    policy = build_steered(name, CONTRACT.planned_for(10.0, growth))
    begun = replace(policy, start=rung)
    views = [
        a_view(
            now_s=15.0 * number, arrival_rps=0.0, lag_records=0.0, executors=executors, target=target, least=2.0,
            most=6.0, late_s=late, counted_s=counted, since_change_s=1e6, ahead=ZEROS if forecast else None,
        )
        for number, (late, counted) in enumerate(looks)
    ]  # fmt: skip
    asked = [float(target), *driven(begun, views)[:, 0]]
    assert asked == sorted(asked, reverse=True)


def test_its_memory_survives_as_json():
    memory = replace(fresh(CONTRACT), refuted=True)
    assert Memory.from_json(memory.to_json()) == memory
