import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from configs.contract import Contract, Executors, Planning
from configs.policies import LEARNED
from configs.policies import POLICIES as ALL
from models.policy.catalogue import build
from models.policy.core.batch_time import MOST_CORRECTION
from models.policy.live.applications import with_application, with_turn
from models.policy.live.evaluation import NEVER_S, RESYNC_S, evaluate, last_raise
from models.policy.live.held_forecast import SILENT_S, with_forecast
from models.policy.live.memory import (
    Memory,
    fresh,
    with_batch,
    with_contract,
    with_interval,
)
from models.policy.live.recomputed import build_policy_at, recompute_decision
from models.policy.live.standing import Standing
from models.policy.planners.planner import Planner
from models.policy.replays.kept import ReplayControl
from models.policy.rules.fixed import Static
from models.pool.live import want_of
from pipelines.scale.written import with_decision
from tidecast.messages import Decision

CONTRACT = Contract(
    job="j",
    executors=Executors(min=1, max=4),
    planning=Planning(
        max_step_up=2, lead_s=8, hold_s=6, quantile=0.9, overhead_s=0.4, per_record_s=0.004, forecast_age_s=12
    ),
)

POLICIES = [name for name in ALL if name not in LEARNED]
UNMOVED = ("flink", "md_stream", "spark_dstream")  # they look at minutes
FORECAST, REACTIVE = (Planner.of(name, CONTRACT) for name in ("forecast", "reactive"))


def interval(wall=100.0, arrival=100.0, executors=1, lag=100, time=0.0, scale=720.0):
    return {
        "arrival_rps": arrival, "lag_records": lag, "executors": executors, "task_ceiling": 8,
        "wall_time": wall, "time": time, "span_s": scale, "time_scale": scale,
    }  # fmt: skip


def forecast(wall=100.0, time=0.0, quantiles=((10, 20), (30, 40), (50, 300), (70, 80)), epoch=1, step=1800.0):
    return {
        "wall_time": wall, "time": time, "step_s": step, "levels": [0.5, 0.9],
        "quantiles": [list(q) for q in quantiles], "epoch": epoch, "model": "m", "version": "2", "kind": "network",
    }  # fmt: skip


def taken(memory, sample):
    """The memory after an interval, as the autoscaler takes it."""
    return with_application(memory, with_interval(memory, sample), sample)


def upper_forecast(memory, now):
    _, seen, _ = evaluate(memory, now, CONTRACT, FORECAST)
    return seen.forecast_rps, seen.forecast_note


def test_a_query_that_was_started_again_has_the_backlog_that_it_left_until_a_batch_tells():
    memory = with_interval(fresh(CONTRACT), interval(lag=20_000, executors=4))
    for second in range(1, 30):
        memory = with_interval(memory, interval(wall=100.0 + second, arrival=0.0, lag=None, executors=4))
        memory, seen, made = evaluate(memory, 100.2 + second, CONTRACT, REACTIVE)
        assert seen.lag_records == 20_000 and made.executors == 4
    assert with_interval(memory, interval(lag=0)).lag_records == 0


def test_an_interval_with_the_slots_of_before_makes_no_other_memory():
    sample = {**interval(), "cores": 1}
    memory = taken(fresh(CONTRACT), sample)
    assert (memory.slots, memory.counted) == (1.0, 1.0)
    later = {**sample, "wall_time": 101.0}
    after = with_interval(memory, later)
    assert with_application(memory, after, later) is after


def test_an_interval_without_end_leaves_a_memory_that_can_be_read_again():
    memory = with_interval(fresh(CONTRACT), {**interval(), "span_s": 1.0, "time_scale": 1e-320})
    assert memory.past.at[-1] == 100.0 and Memory.from_json(memory.to_json()) == memory


def test_survives_as_json():
    memory = with_forecast(with_interval(fresh(CONTRACT), interval()), forecast())
    memory, _, _ = evaluate(memory, 100.2, CONTRACT, FORECAST)
    assert Memory.from_json(memory.to_json()) == memory


def test_numbers_of_numpy_survive_as_pythons():
    memory = replace(fresh(CONTRACT), scatter=np.float64(0.1), arrivals=(np.float64(2.5),))
    assert Memory.from_json(memory.to_json()) == replace(memory, scatter=0.1, arrivals=(2.5,))


def test_the_window_of_a_forecast_is_lead_and_hold_in_job_time():
    # The metric ends at job time 720, a second on the wall after the forecast's; a step lasts 2.5 s there. What arrives
    # is what was foretold, so nothing is corrected. The third step's middle, 5.25 s ahead, is the highest within 14 s.
    memory = with_forecast(with_interval(fresh(CONTRACT), interval(arrival=10.0)), forecast())
    assert upper_forecast(memory, 100.0)[0] == pytest.approx(50 + 250 * math.sqrt(1 - math.exp(-2 * 5.25 / 2.5)), 1e-5)
    # At scale 60 a step lasts 30 s: 14 s ahead is the middle of step 0, and no other is in sight.
    slow = with_forecast(with_interval(fresh(CONTRACT), interval(arrival=10.0, scale=60.0)), forecast())
    assert upper_forecast(slow, 100.0)[0] == pytest.approx(10 + 10 * math.sqrt(1 - math.exp(-2 * 14 / 30)), 1e-5)


def test_a_forecast_is_moved_to_the_rate_of_now_and_less_so_further_ahead():
    flat = forecast(quantiles=((50, 50),) * 8)
    memory = with_forecast(with_interval(fresh(CONTRACT), interval(arrival=90.0)), flat)
    _, seen, _ = evaluate(memory, 100.0, CONTRACT, FORECAST)
    for offset, (median, _) in zip(seen.ahead.offsets_s, seen.ahead.rps, strict=True):
        assert median == pytest.approx(50 + 40 * math.exp(-offset / 2.5), 1e-5)


def test_what_the_last_step_came_to_is_where_the_line_begins():
    # Half a step after the forecast's time the line is half-way from the last step's middle to the first one's.
    memory = with_interval(fresh(CONTRACT), interval(arrival=25.0, time=180.0))
    memory = with_forecast(memory, {**forecast(quantiles=((30, 30),) * 4), "last_rps": 20.0})
    _, seen, _ = evaluate(memory, 100.0, CONTRACT, FORECAST)  # the line is at 28.6, where a second ago it was
    assert seen.job_s == 900.0
    offset = seen.ahead.offsets_s[0]
    assert seen.ahead.rps[0][0] == pytest.approx(30 - 5 * math.exp(-offset / 2.5), 1e-4)


def test_steps_that_are_over_do_not_count():
    # 8.5 s after the forecast's time the line is at 68, and goes up to the last step's 70 and 80.
    memory = with_forecast(with_interval(fresh(CONTRACT), interval(arrival=68.0, time=3 * 1800.0)), forecast())
    assert upper_forecast(memory, 100.0)[0] == pytest.approx(80, abs=0.01)
    memory = with_interval(memory, interval(time=9 * 1800.0))
    value, note = upper_forecast(memory, 100.0)
    assert value is None and "over" in note


@pytest.mark.parametrize(("age", "usable"), [(11, True), (13, False)])
def test_a_late_forecast_is_none(age, usable):
    memory = with_forecast(with_interval(fresh(CONTRACT), interval(wall=100.0 + age)), forecast(wall=100.0))
    value, note = upper_forecast(memory, 100.0 + age)
    assert (value is not None) is usable
    assert note.startswith("late") is not usable


def test_an_older_serving_epoch_is_ignored():
    memory = with_forecast(fresh(CONTRACT), forecast(epoch=5))
    assert with_forecast(memory, forecast(epoch=4, time=9e9)) is memory
    assert with_forecast(memory, forecast(epoch=6, time=0)).forecast["epoch"] == 6


def test_a_later_server_is_heard_after_the_higher_epoch_has_fallen_silent():
    memory = with_forecast(fresh(CONTRACT), forecast(epoch=2**62))
    assert with_forecast(memory, forecast(wall=100.0 + SILENT_S - 1, epoch=5)) is memory
    assert with_forecast(memory, forecast(wall=100.0 + SILENT_S + 1, epoch=5)).forecast["epoch"] == 5


def test_a_forecast_of_a_time_that_the_job_has_not_reached_silences_no_other():
    year = 366 * 86_400.0
    shown = with_interval(fresh(CONTRACT), interval(scale=720.0))
    good = with_forecast(shown, forecast())
    assert good.forecast and with_forecast(good, forecast(epoch=9, time=year)) is good
    early = with_forecast(fresh(CONTRACT), forecast(time=year))  # it came before the job had shown itself
    assert early.forecast["time"] == year
    after = with_forecast(with_interval(early, interval(scale=720.0)), forecast())
    assert after.forecast["time"] == 0.0


def test_nothing_is_decided_before_the_job_shows_itself_or_on_old_metrics():
    memory = fresh(CONTRACT)
    assert evaluate(memory, 0.0, CONTRACT, FORECAST)[1:] == (None, None)
    memory = with_interval(memory, interval(wall=100))
    assert evaluate(memory, 100 + CONTRACT.planning.metrics_age_s + 1, CONTRACT, FORECAST)[1:] == (None, None)


def test_cold_batches_teach_nothing_warm_ones_do():
    memory = with_interval(fresh(CONTRACT), interval())
    batch = {"batch_rows": 500, "batch_s": 4.4, "executors": 1, "wall_time": 100.0}  # 8 ms per record instead of 4
    assert with_batch(memory, batch, CONTRACT).model.per_record_s > memory.model.per_record_s
    quiet = with_batch(memory, {**batch, "batch_rows": 5, "batch_s": 0.9}, CONTRACT).model  # 0.4 s of it guessed fixed
    assert quiet.overhead_s > 1.5 * memory.model.overhead_s
    grown = with_interval(memory, interval(executors=2))
    for at in (101.0, 102.0):
        grown = with_batch(grown, {**batch, "executors": 2, "wall_time": at}, CONTRACT)
        assert grown.model == memory.model
    assert with_batch(grown, {**batch, "executors": 2, "wall_time": 103.0}, CONTRACT).model != memory.model


def test_a_batch_that_is_told_twice_counts_once():
    batch = {"batch_rows": 1000, "batch_s": 0.4, "executors": 1, "wall_time": 100.0}
    once = with_batch(with_interval(fresh(CONTRACT), interval()), batch, CONTRACT)
    assert with_batch(once, batch, CONTRACT) == once
    assert with_batch(once, {**batch, "wall_time": 99.0}, CONTRACT) != once, "of a clock that was set back"


def test_the_batch_in_which_executors_came_teaches_nothing_though_no_interval_has_told():
    """It ran on one for the most part: on two its records would seem to cost twice what they do."""
    before = with_interval(fresh(CONTRACT), interval(executors=1))
    batch = {"batch_rows": 500, "batch_s": 2.4, "executors": 2, "wall_time": 100.0}
    came = with_batch(before, batch, CONTRACT)
    assert came.model == before.model and came.batches != before.batches
    after = with_interval(came, interval(executors=2))
    for at in (101.0, 102.0):
        after = with_batch(after, {**batch, "wall_time": at}, CONTRACT)
        assert after.model == before.model
    assert with_batch(after, {**batch, "wall_time": 103.0}, CONTRACT).model != before.model


@pytest.mark.parametrize(
    ("growth", "asked", "since_s", "more", "teaches"),
    [
        (1.0, 2, 5.0, {}, False),
        (0.0, 2, 5.0, {}, True),  # it starts on a computer of its own
        (1.0, 2, 60.0, {}, True),  # it should have come long ago
        (1.0, 2, -1.0, {}, True),  # the batch was over when it was asked for
        (1.0, 1, 5.0, {}, True),
        (1.0, 2, 5.0, {"no_room": True}, True),
        (1.0, 2, None, {}, True),
    ],
)
def test_a_batch_beside_a_start_that_takes_its_cores_teaches_nothing(growth, asked, since_s, more, teaches):
    """On a slow computer it took twice as long, so that the job seemed slower, and that asked for the next start."""
    contract = CONTRACT.planned_for(8.0, growth)
    standing = Standing("j-1", 100.0, asked, "")
    asked_at = None if since_s is None else 100.0 - since_s
    memory = replace(with_interval(fresh(contract), interval()), standing=standing, asked_at=asked_at, **more)
    batch = {
        "batch_rows": 500, "batch_s": 4.8, "executors": 1, "wall_time": 100.0, "time_scale": 1.0,
        "latency_max_s": 9.0,
    }  # fmt: skip
    after = with_batch(memory, batch, contract)
    assert (after.model != memory.model) == (after.scatter != memory.scatter) == teaches
    assert after.account != memory.account and after.batches != memory.batches


@pytest.mark.parametrize(
    ("was", "mode", "pending", "raised_at"),
    [
        ("freeze", "act", 0, 101.0),
        ("observe", "act", None, 101.0),  # Spark scaled
        ("freeze", "act", 1, 40.0),  # it was asked for before
        ("act", "act", 0, 40.0),  # it is asked for again: the agent, or its cluster, may refuse it for good
        (None, "act", 0, 40.0),
        ("act", "freeze", 0, None),  # nobody asks for it
    ],
)
def test_what_was_decided_while_the_agent_was_frozen_begins_once_it_acts_again(was, mode, pending, raised_at):
    """Else the next executor starts beside it, as if this one had been under way since the raise before."""
    standing = Standing("j-1", 60.0, 3, "")
    memory = with_interval(fresh(IN_TURNS), interval(executors=2))
    memory = replace(memory, standing=standing, mode=was, pending=0, missing_at=60.0, asked_at=40.0, raised_at=40.0)
    told = {**interval(wall=101.0, executors=2), "mode": mode, "pending_executors": pending}
    after = taken(memory, told)
    begins = raised_at == told["wall_time"]
    assert (after.standing.executors, after.raised_at) == (2 if begins else 3, raised_at)
    again = Decision("j-2", "j", 0.0, 101.2, 1.0, "act", "mpc", 3, "hold", ["hold"], {}, {})
    assert with_decision(after, again).asked_at == (101.2 if begins else raised_at)


UNDER_WAY = {"target": 4, "changed_at": 64.0, "raised_at": 64.0, "asked_at": 64.0, "missing_at": 64.0}


@pytest.mark.parametrize(
    ("had", "was", "runs", "begun"),
    [
        (4, "observe", 1, {}),
        (2, "freeze", 2, {}),
        (3, "observe", 1, UNDER_WAY),
        (2, "observe", 2, UNDER_WAY),  # it was started with as many as ran
        (3, "observe", 1, {**UNDER_WAY, "no_room": True}),  # which its executors have left
        (3, "observe", 1, {**UNDER_WAY, "raised_at": 96.0}),  # it was back before the turn of that one was over
        (3, "observe", 1, {"changed_at": 84.0}),  # two would start together: the target may come true for 30 s
    ],
)
def test_a_turn_waits_for_no_raise_that_was_not_decided_while_the_agent_did_not_act(had, was, runs, begun):
    """Beside the backlog of its outage, a driver that began again with one executor waited 15 s for no start."""
    memory = with_interval(fresh(IN_TURNS), interval(arrival=900, executors=had))
    standing = Standing("j-1", 60.0, 4, "")
    memory = replace(memory, standing=standing, mode="act", target=had, changed_at=-3600.0, raised_at=-3600.0)
    memory = replace(memory, **begun)
    for wall, mode in ((103.0, was), (104.0, "act")):
        told = {**interval(wall=wall, arrival=900, executors=runs), "mode": mode}
        memory = taken(memory, told if mode == "observe" else {**told, "pending_executors": 0})
    _, seen, made = evaluate(memory, 104.0, IN_TURNS, build("mpc", IN_TURNS))
    assert (seen.target, seen.since_raise_s, made.executors) == (runs, NEVER_S, runs + 1)
    assert made.codes[0] == "up" and "no_room" not in made.codes
    assert (memory.standing.executors, memory.asked_at) == (runs, None)


def test_what_a_driver_that_ended_had_asked_for_nobody_asks_for():
    noted = dict(pending=1, missing_at=99.0, changed_at=99.0, raised_at=99.0, asked_at=99.0, no_room=True)
    asked = replace(fresh(CONTRACT), target=3, **noted)
    first = with_turn(asked, "app-1", 100.0)  # which one ran before is not known
    for memory in (first, with_turn(first, "app-1", 101.0), with_turn(first, None, 101.0)):
        assert replace(memory, turns={}) == asked
    memory = with_turn(first, "app-2", 140.0)
    assert replace(memory, turns={}, cold=0) == replace(fresh(CONTRACT), target=3)


def test_the_first_two_batches_of_another_driver_teach_nothing_though_as_many_executors_run():
    """Its JVMs load classes: a record seemed to take twice as long."""
    before = with_turn(with_interval(fresh(CONTRACT), interval()), "app-1", 100.0)
    memory = taken(with_turn(before, "app-2", 140.0), interval(wall=140.0))
    batch = {"batch_rows": 500, "batch_s": 4.4, "executors": 1}  # 8 ms per record instead of 4
    for at in (150.0, 160.0):
        memory = with_batch(memory, {**batch, "wall_time": at}, CONTRACT)
        assert memory.model == before.model
    assert with_batch(memory, {**batch, "wall_time": 170.0}, CONTRACT).model != before.model


@pytest.mark.parametrize("batch_first", [True, False])
def test_the_batch_that_executors_left_teaches_nothing(batch_first):
    """It ran on those that left, too: on the rest alone its records would seem cheap."""
    before = with_interval(fresh(CONTRACT), interval(executors=4))
    batch = {"batch_rows": 2000, "batch_s": 2.4, "executors": 1, "wall_time": 100.0}  # 4 ms each, on four
    if batch_first:
        left = with_interval(with_batch(before, batch, CONTRACT), interval(executors=1))
    else:
        left = with_batch(with_interval(before, interval(executors=1)), batch, CONTRACT)
    assert left.model == before.model
    usual = {**batch, "batch_rows": 1000, "batch_s": 8.4}  # 8 ms each, on one
    for at in (101.0, 102.0):
        left = with_batch(left, {**usual, "wall_time": at}, CONTRACT)
    assert left.model.per_record_s > before.model.per_record_s


def test_a_target_that_never_came_true_is_given_up():
    memory = with_interval(fresh(CONTRACT), interval(arrival=700))
    memory, _, made = evaluate(memory, 100.0, CONTRACT, REACTIVE)
    assert made.executors == 3
    later = 100.0 + RESYNC_S + 1
    memory, seen, _ = evaluate(with_interval(memory, interval(wall=later, arrival=10)), later, CONTRACT, REACTIVE)
    assert seen.target == 1


def test_a_request_is_not_withdrawn_before_its_executors_can_have_come():
    slow = CONTRACT.model_copy(update={"planning": CONTRACT.planning.model_copy(update={"lead_s": 60.0})})
    policy, memory, targets = build("spark_dstream", slow), fresh(slow), []
    for second in range(150):
        wall = 100.0 + second
        memory = with_interval(memory, interval(wall=wall, arrival=400, executors=1, lag=4000))
        memory = with_batch(memory, {"batch_rows": 400, "batch_s": 3.0, "executors": 1, "wall_time": wall}, slow)
        memory, _, made = evaluate(memory, wall, slow, policy)
        targets.append(made.executors)
    asked = targets.index(3)
    assert set(targets[asked : asked + 90]) == {3}


PACED = ("hpa", "keda", "flink", "ds2", "spark_dstream", "md_stream")


@pytest.mark.parametrize("name", PACED)
def test_of_one_that_was_preempted_the_next_is_awaited_while_the_agent_asks_for_it(name):
    """It was called off in the second in which Spark had begun it, with the word "hold", and so one after another."""
    contract = CONTRACT.model_copy(update={"executors": Executors(min=1, max=8)})
    policy = build(name, contract)
    memory = replace(with_interval(fresh(contract), interval(executors=5)), target=5, changed_at=-3600.0)
    memory, _, _ = evaluate(memory, 100.0, contract, policy)
    for second, pending, expected in ((101.0, 1, 5), (102.0, 0, 4), (103.0, None, 4)):
        lost = with_interval(memory, {**interval(wall=second, executors=4), "pending_executors": pending})
        _, seen, made = evaluate(lost, second, contract, policy)
        assert (seen.target, made.executors, made.codes[0]) == (expected, expected, "hold")


def test_a_raise_stands_while_the_agent_asks_for_it_however_late_its_executors_come():
    """A lead time of 8 s is the contract's guess, and pods took 60 s: after 20 s it was withdrawn, and then asked."""
    policy, memory, targets = build("hpa", CONTRACT), fresh(CONTRACT), []
    for second in range(100):
        wall, target = 100.0 + second, 1 if memory.target is None else memory.target
        executors = target if second > 15 + 60 else 1
        told = {
            **interval(wall=wall, arrival=400, executors=executors, lag=4000),
            "pending_executors": target - executors,
        }
        batch = {"batch_rows": 400, "batch_s": 3.0, "executors": executors, "wall_time": wall}
        memory = with_batch(with_interval(memory, told), batch, CONTRACT)
        memory, _, made = evaluate(memory, wall, CONTRACT, policy)
        targets.append(made.executors)
    raised = [now for before, now in itertools.pairwise(targets) if now != before]
    assert raised[0] > 1 and raised == sorted(raised)


@pytest.mark.parametrize(
    ("executors", "pending", "decided", "target"),
    [
        (5, 0, 3, 5),  # the agent does not lower: it is frozen
        (2, 0, 3, 2),  # it has begun anew, and asks for those that are there
        (2, 1, 3, 3),
        (3, 2, 3, 3),  # two more for replays are under way
        (2, 3, 3, 3),  # or have just been given back
        (3, 1, 6, 4),  # it may ask for four
        (1, 4, None, 5),  # a new driver asks for those that it was started with
        (3, None, 6, 3),
        (3, None, None, 3),
    ],
)
def test_a_target_that_did_not_come_true_becomes_what_of_it_runs_or_is_asked_for(executors, pending, decided, target):
    told = {**interval(executors=executors), "pending_executors": pending}
    memory = replace(with_interval(fresh(CONTRACT), told), target=decided, changed_at=None if decided is None else 0.0)
    _, seen, _ = evaluate(memory, 100.0, CONTRACT, REACTIVE)
    assert seen.target == target


IN_TURNS = Contract(
    job="j", executors=Executors(min=1, max=4),
    planning=Planning(lead_s=20, start_growth=1.0, overhead_s=0.4, per_record_s=0.004, cooldown_s=3.0),
)  # fmt: skip


def test_a_raise_waits_for_the_last_raise_and_an_older_log_for_the_last_change():
    """On a computer with slow starts a load came back right after a lowering: its raise waited 15 s for no start."""
    policy = build("mpc", IN_TURNS)
    memory = with_interval(fresh(IN_TURNS), interval(arrival=10, executors=3, lag=10))
    memory = replace(memory, target=3, changed_at=40.0, raised_at=40.0)
    memory, seen, made = evaluate(memory, 100.0, IN_TURNS, policy)
    assert (made.executors, seen.since_raise_s, memory.changed_at, memory.raised_at) == (1, 60.0, 100.0, 40.0)
    memory = with_interval(replace(memory, arrivals=()), interval(wall=103.0, arrival=500, executors=1))
    after, seen, made = evaluate(memory, 103.0, IN_TURNS, policy)
    assert (made.executors, seen.since_change_s, seen.since_raise_s, after.raised_at) == (2, 3.0, 63.0, 103.0)
    inputs = {**seen.inputs(), "contract_hash": IN_TURNS.hash}
    known = {IN_TURNS.hash: IN_TURNS}
    assert recompute_decision({"inputs": inputs, "policy": "mpc"}, known) == (made.executors, made.reason, made.codes)
    old = {name: value for name, value in inputs.items() if name != "since_raise_s"}
    executors, _, codes = recompute_decision({"inputs": old, "policy": "mpc"}, known)
    assert executors == 1 and "turn" not in codes
    waits = {**inputs, "since_raise_s": 3.0}
    executors, reason, codes = recompute_decision({"inputs": waits, "policy": "mpc"}, known)
    assert executors == 1 and "turn" in codes and "in turns" in reason


def test_the_next_raise_waits_for_none_that_executors_of_a_replay_serve_already():
    """Beside a replay that kept two, the first one that had to start for live records was asked for two turns later."""
    lent = ReplayControl({"fix": {"state": "running", "executors": 0, "executors_soon": 2}})
    memory = with_interval(fresh(IN_TURNS), interval(arrival=900, executors=3))
    memory = replace(memory, target=1, changed_at=-3600.0, raised_at=-3600.0, replay=lent)
    memory, policy, asked = replace(memory, standing=Standing("j-1", 60.0, 3, "")), build("mpc", IN_TURNS), []
    for now in (100.0, 101.0, 102.0, 103.0):
        memory, _, made = evaluate(memory, now, IN_TURNS, policy)
        asked.append((made.executors, memory.raised_at))
    assert asked == [(2, -3600.0), (3, -3600.0), (4, 102.0), (4, 102.0)]
    given_back = replace(memory, standing=Standing("j-2", 103.0, 2, ""))  # by metrics of a moment ago it runs still
    assert last_raise(given_back, 2, 3, 104.0) == 104.0


def test_a_hold_says_since_when_executors_are_missing_and_that_a_turn_waits_for_these():
    """One was preempted an hour after the last raise, which was "too new for the next" until it came again."""

    def told(memory, wall, executors):
        sample = {**interval(wall=wall, arrival=500, executors=executors, lag=5000), "pending_executors": 2 - executors}
        memory, seen, made = evaluate(with_interval(memory, sample), wall, IN_TURNS, policy)
        assert made.codes[0] == ("hold" if executors < 2 else "up")
        inputs = {**seen.inputs(), "contract_hash": IN_TURNS.hash}
        kept = recompute_decision({"inputs": inputs, "policy": "mpc"}, {IN_TURNS.hash: IN_TURNS})
        assert kept == (made.executors, made.reason, made.codes)
        del inputs["missing_s"]
        _, old, _ = recompute_decision({"inputs": inputs, "policy": "mpc"}, {IN_TURNS.hash: IN_TURNS})
        return memory, seen.missing_s, made.reason, old

    policy = build("mpc", IN_TURNS)
    memory = replace(with_interval(fresh(IN_TURNS), interval(executors=2)), target=2, changed_at=-3600, raised_at=-3600)
    memory, missing_s, reason, old = told(memory, 100.0, 1)
    assert missing_s == 0 and "have not come: for 0 s, 1 of 2 have run" in reason and "too new" in old
    memory, missing_s, reason, _ = told(memory, 130.0, 1)
    assert missing_s == 30 and "have not come: for 30 s, 1 of 2 have run" in reason and "too new" not in reason
    raised, missing_s, reason, _ = told(memory, 131.0, 2)  # it has come, and the next one is asked for
    assert missing_s is None and raised.missing_at == 131.0 and "not come" not in reason
    _, missing_s, reason, _ = told(replace(memory, raised_at=125.0), 130.0, 1)
    assert missing_s == 30 and "too new" in reason


def log_of(policy_at, contract, seconds=120):
    """Two minutes of a job: every decision as it is logged, beside what was made."""
    memory, log = fresh(contract), []
    for second in range(seconds):
        wall = 100.0 + second
        if second % 30 < 15:
            memory = with_forecast(memory, forecast(wall=wall, time=720.0 * second))
        memory = with_interval(
            memory, interval(wall=wall, arrival=20.0 * (second % 37), lag=31 * second, time=720.0 * second)
        )
        if second % 3 == 2:
            rows = min(20 * second, 600)  # of 4 ms each
            batch = {"batch_rows": rows, "batch_s": 0.4 + 0.004 * rows, "executors": 1, "wall_time": wall}
            memory = with_batch(memory, batch, contract)
        memory, now = Memory.from_json(memory.to_json()), wall + 0.3
        policy = policy_at(now, memory)
        memory, seen, made = evaluate(memory, now, contract, policy)
        inputs = {**seen.inputs(), "contract_hash": contract.hash}
        text = json.dumps({"inputs": inputs, "policy": policy.name}, allow_nan=False, separators=(",", ":"))
        log.append((made, text))
    return log


@pytest.mark.parametrize("policy", POLICIES)
def test_a_log_replays_to_the_same_decisions(policy):
    scheduled = CONTRACT.planning.model_copy(update={"timetable_rps": (10.0, 400.0, 10.0, 400.0)})
    contract = CONTRACT.model_copy(update={"planning": scheduled})
    log = log_of(lambda at, memory: build_policy_at(policy, contract, at, memory.job_s(at), 720.0), contract)
    assert policy in UNMOVED or {made.codes[0] for made, _ in log} > {"hold"}
    for made, text in log:
        again = recompute_decision(json.loads(text), {contract.hash: contract})
        assert again == (made.executors, made.reason, made.codes)


def test_a_decision_stays_small_in_the_log():
    # Twelve steps of seven quantiles take 600 bytes.
    assert max(len(text) for _, text in log_of(lambda at, memory: FORECAST, CONTRACT)) < 1500


def test_another_policy_begins_with_a_memory_of_its_own():
    memory = with_interval(fresh(CONTRACT), interval(arrival=700, executors=3))
    memory, _, _ = evaluate(memory, 100.0, CONTRACT, REACTIVE)
    calm = with_interval(replace(memory, arrivals=()), interval(wall=101.0, arrival=10, executors=3, lag=10))
    _, same, held = evaluate(calm, 101.0, CONTRACT, REACTIVE)
    assert "delayed_down" in held.codes and same.carried == memory.carried
    after, other, _ = evaluate(calm, 101.0, CONTRACT, Static.of("static", CONTRACT))
    assert other.carried == {} and (after.policy, after.target) == ("static", 3)


def test_a_state_of_an_older_version_is_taken_over():
    old = json.loads(with_interval(fresh(CONTRACT), interval()).to_json())
    for name in ("batches", "carried", "policy", "looked_at"):
        del old[name]
    memory = Memory.from_json(json.dumps({**old, "wanted": [[99.0, 2]]}))
    assert evaluate(memory, 100.0, CONTRACT, FORECAST)[2] is not None


def test_what_ended_batches_say_reaches_the_policy():
    memory = with_interval(fresh(CONTRACT), interval(wall=100.0, executors=2))
    _, first, _ = evaluate(memory, 100.0, CONTRACT, REACTIVE)
    assert (first.busy, first.processed_rps, first.batch_s) == (None, None, None)
    batch = {"batch_rows": 400, "batch_s": 1.2, "executors": 2}
    memory = with_batch(memory, {**batch, "wall_time": 101.2}, CONTRACT)
    memory = with_batch(memory, {**batch, "wall_time": 103.2}, CONTRACT)
    memory = with_interval(memory, interval(wall=103.5, executors=2))
    memory, seen, _ = evaluate(memory, 103.6, CONTRACT, REACTIVE)
    # The first batch spans its own 1.2 s, the second 2 s: 800 rows in 3.2 s, 1.6 s of work beside 0.8 s of overhead.
    assert seen.processed_rps == pytest.approx(250)
    assert (seen.busy, seen.in_batch, seen.batch_s) == pytest.approx((0.5, 0.75, 1.2))
    _, later, _ = evaluate(memory, 104.0, CONTRACT, REACTIVE)
    assert later.busy == pytest.approx(0.5) and later.batch_s is None  # one may be running
    _, idle, _ = evaluate(with_interval(memory, interval(wall=104.0, lag=0)), 104.0, CONTRACT, REACTIVE)
    assert (idle.processed_rps, idle.busy, idle.in_batch) == (0, 0, 0)


def test_busy_is_told_of_the_executors_for_live_records_and_a_pool_of_all_that_run():
    """Live batches run on those for replays, too, of which the policy knows nothing."""
    lent = ReplayControl({"fix": {"state": "running", "executors": 2, "executors_soon": 2}})
    memory = replace(with_interval(fresh(CONTRACT), interval(wall=100.0, executors=4)), target=2, replay=lent)
    batch = {"batch_rows": 400, "batch_s": 0.8, "executors": 4, "busiest_s": 0.4}
    for at in (100.8, 102.4):
        memory = with_batch(memory, {**batch, "wall_time": at}, CONTRACT)
    alone = replace(memory, replay=ReplayControl(), target=4)
    (after, seen, made), (_, whole, _) = (evaluate(one, 102.5, CONTRACT, REACTIVE) for one in (memory, alone))
    assert (seen.executors, whole.executors) == (2, 4)
    assert (seen.busy, seen.busiest) == pytest.approx((2 * whole.busy, 2 * whole.busiest))
    assert want_of(seen, made, CONTRACT, after, 2, True).running == 4


def test_a_corrected_first_guess_reaches_a_running_job():
    memory = with_interval(with_contract(fresh(CONTRACT), CONTRACT), interval())
    batch = {"batch_rows": 100_000, "batch_s": 5.4, "executors": 1}
    at = 100.0

    def learned(memory, contract, at):
        for second in range(200):
            memory = with_batch(with_contract(memory, contract), {**batch, "wall_time": at + 6 * second}, contract)
        return memory

    bounded = learned(memory, CONTRACT, at)
    assert bounded.model.per_record_s == 0.004 / MOST_CORRECTION
    planning = CONTRACT.planning.model_copy(update={"per_record_s": 0.0001})
    told = learned(bounded, CONTRACT.model_copy(update={"planning": planning}), at + 1200)
    assert told.model.per_record_s == pytest.approx(0.00005, rel=0.1)


@pytest.mark.parametrize(("scaling", "cores"), [(0.83, 1), (0.5, 1), (1.0, 2), (0.83, 2)])
def test_with_another_scaling_or_other_cores_the_executors_that_run_sustain_what_they_did(scaling, cores):
    def sustained(memory, contract, executors):
        _, seen, _ = evaluate(memory, 100.2, contract, FORECAST)
        return seen.to_view(contract).capacity.sustained_rps(np.array([float(executors)]))[0]

    memory = with_interval(fresh(CONTRACT), interval(executors=4))
    for at in range(100):
        batch = {"batch_rows": 2000, "batch_s": 4.4, "executors": 4, "wall_time": 100.0 + at}
        memory = with_batch(memory, batch, CONTRACT)
    planning = CONTRACT.planning.model_copy(update={"scaling": scaling})
    edited = CONTRACT.model_copy(update={"planning": planning, "executors": Executors(min=1, max=4, cores=cores)})
    before = sustained(memory, CONTRACT, 4)
    for _ in range(3):  # the edit is found once
        memory = with_contract(Memory.from_json(memory.to_json()), edited)
        assert sustained(memory, edited, 4) == pytest.approx(before)
        assert sustained(memory, edited, 1) == pytest.approx(before / 4**scaling)
    back = with_contract(memory, CONTRACT)
    assert sustained(back, CONTRACT, 1) == pytest.approx(before / 4)
    first = with_contract(fresh(CONTRACT), edited)
    assert first.model.per_record_s == edited.planning.per_record_s, "a guess is one of the scaling beside it"


def test_what_a_release_learned_that_did_not_note_the_cores_is_of_those_of_now():
    memory = with_interval(fresh(CONTRACT), interval(executors=4))
    kept = json.loads(memory.to_json())
    del kept["cores"]
    assert with_contract(Memory.from_json(json.dumps(kept)), CONTRACT) == memory


def test_what_an_earlier_release_learned_of_batches_is_the_first_guess():
    old = {"overhead_s": 0.4, "per_record_s": 0.009, "prior_overhead_s": 0.4, "prior_per_record_s": 0.004, "xx": 3.0}
    model = Memory.from_json(json.dumps({"model": old, "arrivals": [1.0]})).model
    assert (model.overhead_s, model.per_record_s, model.guessed_per_record_s) == (0.4, 0.009, 0.009)
    with pytest.raises(ValueError, match="no memory of this release"):
        Memory.from_json('{"model": {"overhead_s": 0.4}, "arrivals": []}')


def test_the_time_of_tasks_tells_overhead_from_work_and_the_longest_stage_counts_where_its_tasks_differ():
    """A sink takes 4 s after each batch; 400 records of 4 ms on 2 slots are 0.8 s of tasks, or 2 s in one hot task."""
    found = []
    for stage_s in (0.8, 2.0):
        memory = with_interval(fresh(CONTRACT), interval(executors=2))
        batch = {"batch_rows": 400, "batch_s": 4.0 + stage_s, "executors": 2, "run_s": 1.6, "stage_s": stage_s}
        for at in range(100):
            memory = with_batch(memory, {**batch, "wall_time": 100.0 + at}, CONTRACT)
        found.append(memory.model.per_record_s)
    assert found == pytest.approx([0.004, 0.01], rel=0.1)
