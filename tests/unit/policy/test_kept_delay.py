"""How long an executor is kept that nobody needs, where its lead time is learned."""

import json
from dataclasses import asdict, replace

import pytest

from configs.contract import Contract, Executors, Planning
from models.policy.live.evaluation import evaluate
from models.policy.live.learned_lead import LearnedLead, lead_quantiles, plan_contract
from models.policy.live.memory import Memory, fresh, with_interval
from models.policy.live.recomputed import build_policy_at, recompute_decision

DERIVES = Contract(job="j", executors=Executors(min=1, max=4), planning=Planning(lead_s=10, cooldown_s=1.0))
STATES = Contract(job="j", planning=Planning(lead_s=10, scale_down_delay_s=8.0))
NOW = 1_000_000.0


def raised(name, seconds):
    """The outcome of a raise by one executor that took so long."""
    at = NOW - 1000.0 + len(name)
    return {
        "decision_id": name, "executors_before": 1, "target": 2, "decided_at": at, "confirmed_at": at + seconds,
        "useful_at": at + seconds, "wall_time": at + seconds, "status": "confirmed", "expected": {"busy": 0.5},
    }  # fmt: skip


@pytest.fixture
def slow():
    """What is known after six raises of half a minute."""
    known = LearnedLead.guess(DERIVES.planning)
    for name in ("a", "bb", "ccc", "dddd", "eeeee", "ffffff"):
        known = known.learn_outcome(raised(name, 30.0))
    return known


def test_the_delay_goes_with_what_raises_took_and_not_with_how_busy_the_job_is(slow):
    delays = set()
    for busy in (0.0, 0.5, 1.0):
        lead = lead_quantiles(slow, DERIVES, busy)
        planned = plan_contract(slow, DERIVES, lead).planning
        assert (planned.lead_s, planned.start_growth) == (lead["planned_s"], lead["growth"])
        delays.add(planned.scale_down_delay_s)
        assert plan_contract(slow, STATES, lead).planning.scale_down_delay_s == 8.0
    usual = lead_quantiles(slow, DERIVES, DERIVES.planning.utilisation)["planned_s"]
    assert delays == {float(f"{0.8 * usual:.4g}")} and usual > 25


def test_raises_that_never_came_make_no_executor_stay_longer(slow):
    def delay_s(known):
        return plan_contract(known, DERIVES, lead_quantiles(known, DERIVES, 0.5)).planning.scale_down_delay_s

    known = slow
    for name in ("gone", "lost", "away"):
        outcome = {**raised(name, 900.0), "confirmed_at": None, "useful_at": None, "status": "ineffective"}
        known = known.learn_outcome(outcome)
        assert known.overdue[0] == name and delay_s(known) == delay_s(slow)
    kept = json.loads(json.dumps(asdict(known)))
    assert LearnedLead.from_json_values(kept) == known
    del kept["came"]  # as an earlier release wrote it
    assert delay_s(LearnedLead.from_json_values(kept)) > delay_s(slow)
    come = known.learn_outcome(raised("come", 30.0))
    assert come.came is None and come.lead != known.lead


@pytest.mark.parametrize("name", ["mpc", "reactive", "forecast"])
def test_what_was_needed_before_a_lead_time_was_learned_is_kept_for_the_new_delay(name):
    """The outcome of a raise tells that starts are slow just when its executor has come: it must not go then."""
    memory, told, target = fresh(DERIVES), [], []
    for second in range(80):
        at, need = NOW + second, 500.0 if second < 3 else 10.0
        contract = DERIVES.planned_for(12.0, 0.0, 8.0) if second < 8 else DERIVES.planned_for(38.0, 0.0, 30.0)
        sample = {
            "arrival_rps": need, "lag_records": 0, "executors": memory.target or 1, "task_ceiling": 8,
            "wall_time": at, "time": at, "span_s": 1.0, "time_scale": 1.0,
        }  # fmt: skip
        memory = with_interval(Memory.from_json(memory.to_json()), sample)
        memory, seen, made = evaluate(memory, at, contract, build_policy_at(name, contract, at, at, 1.0))
        target.append(made.executors)
        told.append(({"policy": name, "inputs": {**seen.inputs(), "contract_hash": DERIVES.hash}}, made))
    top = max(target)
    assert top > 1 and set(target[3:37]) == {top} and target[48] < top
    for decision, made in told:
        assert recompute_decision(decision, {DERIVES.hash: DERIVES}) == (made.executors, made.reason, made.codes)


def test_an_older_log_replays_with_the_delay_of_its_contract():
    policy = build_policy_at("mpc", DERIVES, NOW, NOW, 1.0)
    memory = replace(fresh(DERIVES), executors=2, arrivals=(10.0,), metric_at=NOW, policy=policy.name)
    memory, seen, _ = evaluate(memory, NOW, DERIVES, policy)
    assert seen.down_delay_s == memory.delay_s == 8.0
    inputs = {name: value for name, value in seen.inputs().items() if name != "down_delay_s"}
    inputs["carried"] = {**inputs["carried"], "plan_max": [3] * 12, "plan_period": int((NOW - 7.5) // (8 / 11))}
    held = recompute_decision({"policy": "mpc", "inputs": {**inputs, "target": 3, "contract_hash": DERIVES.hash}},
                           {DERIVES.hash: DERIVES})  # fmt: skip
    assert held[0] == 3 and "delayed_down" in held[2]
