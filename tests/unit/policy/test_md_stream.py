"""Md-Stream's rule on a running job: the oracle table by hand, what must always hold, and a closed loop in the twin."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from configs.contract import Contract, Executors, Planning
from models.policy.catalogue import build
from models.policy.core.choice import Why
from models.policy.core.policy import decide
from models.policy.live.evaluation import evaluate
from models.policy.live.memory import Memory, fresh, with_batch, with_interval
from models.policy.live.plan import explain
from models.policy.received.observation import Observation
from models.policy.rules.md_stream import MdStream
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import TwinJob, stack
from models.twin.sim.run import simulate
from tests.fakes.views import a_view, driven
from tests.unit.policy.test_memory import interval
from tests.unit.policy.test_planner import CALM

MINUTE = 60.0
AT_ONCE = MdStream("md_stream", settled_s=0.0)


def look(now_s, executors, rps, load, late_s=0.0, **more):
    """Executors of 250 records/s each while they are busy."""
    seen = {"arrival_rps": rps, "busy": load, "processed_rps": 250 * executors * load, "lag_records": 0.0, **more}
    return a_view(now_s=now_s, since_s=MINUTE, executors=executors, late_s=late_s, counted_s=MINUTE, **seen)


def after(windows, *seen, policy=AT_ONCE, **more):
    """What is asked for at the end of each window; the first look starts the clock."""
    return driven(policy, [look(number * MINUTE, *seen, **more) for number in range(windows + 1)])[1:, 0].tolist()


@pytest.mark.parametrize(("executors", "rps", "load", "late_s", "asked"), [
    (4, 950, 0.95, 6, [5]), (4, 2000, 1.0, 6, [7]), (7, 2000, 1.0, 6, [10]), (10, 2000, 0.80, 6, [10]),
    (4, 600, 0.60, 0, [4] * 5), (8, 500, 0.25, 0, [8, 8, 4]), (8, 100, 0.05, 0, [8, 8, 4]),
])  # fmt: skip
def test_the_oracle_table_by_hand(executors, rps, load, late_s, asked):
    assert after(len(asked), executors, rps, load, late_s) == asked


def test_a_job_is_slow_where_more_is_late_than_its_promise_allows():
    contract = Contract(job="j", error_budget=0.1)
    policy = replace(build("md_stream", contract), settled_s=0.0)
    assert [after(1, 4, 950, 0.95, late_s, policy=policy) for late_s in (5.9, 6.0, 6.1)] == [[4], [4], [5]]
    assert after(3, 8, 500, 0.25, 6.1, policy=policy) == [8, 8, 8]
    assert after(3, 4, 950, 0.95, math.nan) == [4, 4, 4]  # nobody counts


def test_the_busiest_executor_decides_where_an_agent_has_told_it():
    """At 0.6 in the mean four are enough for 600 of 1,000 records/s; one that is full all the time is not."""
    assert after(1, 4, 600, 0.6, 6, busiest=0.9) == [5] and after(1, 4, 600, 0.6, 6, busiest=0.8) == [4]
    assert after(3, 8, 500, 0.25, busiest=0.31) == [8, 8, 8] and after(3, 8, 500, 0.25, busiest=0.29) == [8, 8, 4]


@pytest.mark.parametrize(("busy", "busiest", "told"), [
    (0.3, 0.95, True), (0.6, 0.95, True), (0.65, 0.95, False), (0.3, 0.8, False), (0.95, math.nan, False),
])  # fmt: skip
def test_one_hot_executor_is_told_apart_from_all_that_are_busy(busy, busiest, told):
    """More executors come all the same; who reads the reasons knows that they alone do not help."""
    memory, choice = AT_ONCE.fresh(1), None
    for number in range(2):
        memory, choice = decide(AT_ONCE, memory, look(number * MINUTE, 4, 900 * busy, busy, 6, busiest=busiest))
    assert bool(choice.why[0] & Why.SKEW) == told
    _, codes = explain(AT_ONCE, choice, Contract(job="j"), CALM)
    assert ("skew" in codes) == told


def test_before_seven_hundred_seconds_nothing_changes_nor_in_two_windows_after_a_change():
    views = [look(number * MINUTE, 4 if number < 13 else 7, 2000, 1.0, 6) for number in range(16)]
    asked = driven(MdStream("md_stream"), views)[1:, 0].tolist()
    assert asked == [4] * 11 + [7, 7, 7, 10]  # the first window that ends after 700 s ends at 720


def test_shares_are_means_of_the_window_and_looks_between_its_ends_keep_the_target():
    memory, asked = AT_ONCE.fresh(1), []
    for number in range(13):
        busy = 0.8 if number % 2 else 1.0
        view = replace(look(5.0 * number, 4, 1000 * busy, busy, 1.0), since_s=5.0, counted_s=np.array([5.0]))
        memory, choice = decide(AT_ONCE, memory, view)
        asked.append(choice.target[0])
    assert asked == [4] * 12 + [5]


def test_while_executors_are_still_to_come_no_more_are_asked_for_and_fewer_go_by_those_that_run():
    """Two ran, the cluster had room for no third one, and 3, 5, 7, 8 were asked for."""

    def asked(executors, rps, load, late_s):
        memory, target = AT_ONCE.fresh(1), 3
        for number in range(12):
            view = look(number * MINUTE, executors, rps, load, late_s, target=target, starting=target - executors)
            memory, choice = decide(AT_ONCE, memory, replace(view, most=np.array([8.0])))
            target = int(choice.target[0])
            yield target
            executors = min(executors, target)

    assert [*asked(2, 600, 1.0, 60)] == [3] * 12
    assert [*asked(3, 600, 1.0, 60)] == [3, 4] + [4] * 10  # the third is there: 600 is 0.8 of what they do
    assert [*asked(2, 100, 0.2, 0)] == [3] * 3 + [1] * 9  # one does 100, and half of those that run stay
    assert [*asked(1, 50, 0.1, 0)] == [3] * 3 + [1] * 9  # the fewest run, and nobody needs those that have not come
    assert [*asked(1, 0, 0.0, 0)] == [3] * 3 + [1] * 9
    assert [*asked(1, 200, 0.25, 0)] == [3] * 12  # it is calm, and yet more comes than one does at the target


def test_what_waits_is_kept_and_the_ceiling_is_told():
    # 149 of 250 records/s and 447 in flight; what waits beyond that comes to 29.8 more a second.
    waits = {"lag_records": 447 + 8_940}
    assert after(3, 3, 149, 0.199, least=1, **waits)[-1] == 2
    memory, choice = AT_ONCE.fresh(1), None
    for number in range(2):
        memory, choice = decide(AT_ONCE, memory, look(number * MINUTE, 4, 2000, 1.0, 6, most=5))
    assert choice.target.tolist() == [5] and choice.why[0] & Why.CEILING


@settings(max_examples=25, deadline=None)
@given(st.floats(1, 5_000), st.integers(1, 20), st.booleans())
def test_a_constant_load_comes_to_rest_within_bounds_and_keeps_what_it_needs(rps, target, slow):
    memory, waits, number = AT_ONCE.fresh(1), 0.0, 0
    for number in range(120):
        waits = max(waits + MINUTE * (rps - 250 * target), 0.0)
        busy = min((rps + waits / MINUTE) / (250 * target), 1.0)
        late_s = MINUTE * (slow or waits > 0)
        memory, choice = decide(AT_ONCE, memory, look(number * MINUTE, target, rps, busy, late_s, lag_records=waits))
        asked = int(choice.target[0])
        assert 1 <= asked <= 20
        assert asked >= target or asked >= min(math.ceil(rps / (0.7 * 250) - 1e-9), 20)
        assert number < 110 or asked == target
        target = asked


def test_a_closed_loop_in_the_twin_follows_the_load_up_and_down():
    """One executor does 50 records/s; 40 keep one at 0.8, 160 need 5 at 0.7, and then 20 are half of one's work."""
    contract = Contract(
        job="j", latency_target_s=10.0, executors=Executors(min=1, max=12), error_budget=0.01,
        planning=Planning(batch_s=2.0),
    )  # fmt: skip
    job = TwinJob(
        overhead_s=0.2, per_record_s=0.02, most=12, startup_s=(8.0,), cold_s=1.0, latency_target_s=10.0, trigger_s=2.0
    )
    rate = [40.0] * 1200 + [160.0] * 3600 + [20.0] * 3600
    load = Load(np.concatenate([[0.0], np.cumsum(rate)])[None], np.zeros(1, np.int64))
    looks = Looks(every_s=5)
    found = simulate(stack([job]), load, build("md_stream", contract), looks, np.array([1]))
    asked = found.targets[:, 0]
    assert (asked[: 1200 // 5] == 1).all()  # busy, and not slow
    high = asked[1200 // 5 : 4800 // 5]
    assert 4 <= high[-1] <= 7 and (high[-1800 // 5 :] == high[-1]).all()
    assert asked[-1] == 1 and (asked[-1800 // 5 :] == 1).all()
    seldom = Looks(every_s=300)  # whoever changes nothing need not look
    stayed = simulate(stack([job]), load, build("static", contract, knob=1.0), seldom, np.array([1]))
    assert found.violation[0] < stayed.violation[0] / 3
    most = simulate(stack([job]), load, build("static", contract, knob=12.0), seldom, np.array([1]))
    assert found.executor_s[0] < most.executor_s[0] / 3


def test_how_busy_the_busiest_executor_was_is_told_by_the_agent_and_survives():
    contract = Contract(job="j", executors=Executors(min=1, max=4, cores=2))
    memory = with_interval(fresh(contract), interval(executors=2))
    batch = {"batch_rows": 100, "batch_s": 1.0, "executors": 2, "wall_time": 101.0}
    memory = with_batch(memory, batch, contract)
    assert memory.busiest is None and evaluate(memory, 101.0, contract, AT_ONCE)[1].busiest is None
    memory = with_batch(memory, {**batch, "wall_time": 105.0, "busiest_s": 6.0}, contract)
    assert memory.busiest == pytest.approx(6 / (2 * 4))  # of the four seconds since the batch before, on two cores
    assert Memory.from_json(memory.to_json()) == memory
    _, seen, _ = evaluate(with_interval(memory, interval(wall=105.0, executors=2)), 105.0, contract, AT_ONCE)
    assert seen.to_view(contract).busiest.tolist() == [0.75]
    older = {name: value for name, value in seen.inputs().items() if name != "busiest"}
    assert np.isnan(Observation.from_inputs(older).to_view(contract).busiest[0])
    calm = with_interval(memory, interval(wall=106.0, arrival=0.0, executors=2, lag=0))
    calm, _, _ = evaluate(calm, 106.0, contract, AT_ONCE)
    assert evaluate(calm, 107.0, contract, AT_ONCE)[1].busiest == 0  # nothing has run since
