"""The ladder of relief of a live job: executors are asked for, then live records held back; it is left in reverse."""

import itertools
import json

import pytest

from configs.contract import Contract, Executors, Planning
from models.contract.controller import CHANGED
from models.contract.terms import compile_terms
from models.policy.live.memory import Memory, fresh
from models.policy.live.recomputed import recompute_decision
from models.policy.replays.kept import ReplayControl
from models.policy.replays.recomputed import recompute_interval
from models.policy.replays.relief import with_relief
from pipelines.scale.pool.grants import JobGrant
from pipelines.scale.processor import Scaler
from pipelines.scale.written import messages_after
from tidecast.messages import MetricSample, encode

NOW, JOB = 1_000_000.0, "orders"
CALM, VIOLATED = 10, 40
PLAIN = Contract(
    job=JOB, latency_target_s=10.0, executors=Executors(min=1, max=4), error_budget=0.05,
    planning=Planning(overhead_s=0.5, per_record_s=0.01),
)  # fmt: skip
HELD = Contract.model_validate(PLAIN.model_dump() | {"backpressure": {"interval_s": 2, "controls": {"live_rps": {}}}})


class Life:
    """A job second by second, of fixed executors; each evaluation's decision."""

    def __init__(self, contract):
        self.scaler, self.memory, self.now = Scaler(JOB, contract, "reactive", "act"), fresh(contract), NOW
        self.contract, self.logged, self.written = contract, [], []

    def lasts(self, seconds, latency_s, rps=150.0, executors=2):
        for _ in range(seconds):
            self.now += 1.0
            common = {"executors": executors, "task_ceiling": 8, "mode": "act"}
            said = [
                MetricSample(JOB, "interval", self.now, self.now, arrival_rps=rps, lag_records=10, **common),
                MetricSample(JOB, "batch", self.now, self.now, batch_rows=150, batch_s=3.0,
                             latency_max_s=latency_s, **common),
            ]  # fmt: skip
            rows = [{"topic": "metrics", "partition": 0, "offset": 0, "value": encode(one)} for one in said]
            self.memory, _, rejects = self.scaler.update_memory(self.memory, rows, self.now)
            assert not rejects
            self.memory, decision = self.scaler.decide(self.memory, self.now)
            self.memory, sent = messages_after(JOB, self.contract.hash, self.memory, decision, self.now)
            self.written += [message for topic, _, message in sent if topic == "decisions"]
            self.memory = Memory.from_json(self.memory.to_json())
            self.logged.append(json.loads(encode(decision)))
        return self.logged[-1]

    def steps(self):
        return [step_of(one) for one in self.logged]


def step_of(decision):
    return decision["inputs"].get("relief", {}).get("step", 0)


def served(decision):
    """What the executors certainly served at the end of the newest interval, by what was logged."""
    state = recompute_interval(decision["inputs"]["replay"]).state
    return state.executors * state.operators[JOB].certain_rps


def test_a_contract_that_names_no_box_for_live_records_never_holds_them_back():
    life = Life(PLAIN)
    last = life.lasts(40, 30.0)
    assert not any("relief" in one["inputs"] or "replay" in one["inputs"] for one in life.logged)
    assert "admission_rps" not in last and life.memory.replay == ReplayControl()


@pytest.fixture(scope="module")
def life():
    """Calm seconds, then some in which the limit is violated, then calm ones again."""
    made = Life(HELD)
    for seconds, latency_s in ((CALM, 3.0), (VIOLATED, 30.0), (60, 2.0)):
        made.lasts(seconds, latency_s)
    return made


def test_live_records_are_held_back_last_and_never_below_what_is_certainly_served(life):
    assert life.steps()[:CALM] == [0] * CALM and not any("admission_rps" in one for one in life.logged[:CALM])
    steps = life.steps()[: CALM + VIOLATED]
    climbed = [step for step, _ in itertools.groupby(steps)]
    assert climbed == [0, 4, 5]  # there is no replay, maintenance or approximate operator; dropping is not allowed
    first = life.logged[steps.index(4)]
    assert "admission_rps" not in first and first["inputs"]["relief"]["executors"] >= 3
    assert first["executors"] == 4 and "capacity" in first["reason"] and first["codes"][-1] == "relief"
    held = [one for one in life.logged[: CALM + VIOLATED] if one.get("admission_rps") is not None]
    assert held and all(one["admission_rps"] >= served(one) * (1 - 1e-9) for one in held)
    assert held[-1]["admission_rps"] < 150.0 and "live records held back to" in held[-1]["reason"]
    logged = held[-1]["inputs"]
    assert (logged["contract_hash"], logged["relief"]["terms"]) == (
        HELD.hash,
        compile_terms(logged["replay"]["terms"]).hash,
    )
    assert "admission_rps" not in life.logged[-1] and life.steps()[-1] == 0
    fell = life.steps()[len(steps) :]
    assert all(a >= b for a, b in itertools.pairwise(fell))


def test_stated_limits_of_errors_delay_no_executors_as_they_reach_no_query():
    limits = {"error": {"different": {"eps_rel": 0.05, "pf": 0.05}}}
    made = Life(Contract.model_validate(PLAIN.model_dump() | {"backpressure": HELD.backpressure.model_dump() | limits}))
    made.lasts(CALM, 3.0)
    made.lasts(20, 30.0)
    assert [step for step, _ in itertools.groupby(made.steps())] == [0, 4, 5]


def test_near_its_limit_a_job_asks_for_no_further_executors_and_leaves_the_ladder():
    made = Life(HELD)
    made.lasts(CALM, 3.0, 20.0)
    while made.steps()[-1] < 4:
        made.lasts(1, 30.0, 20.0)
    (path,) = compile_terms(made.logged[-1]["inputs"]["replay"]["terms"]).paths
    climbed = len(made.logged)
    for _ in range(60):  # what is asked for comes
        made.lasts(1, 0.97 * path.max_ms / 1000, 20.0, executors=made.logged[-1]["executors"])
    asked = [one["inputs"]["relief"]["executors"] for one in made.logged[climbed:] if step_of(one) == 4]
    assert asked and set(asked) == {3}
    assert made.steps()[-1] == 0
    known = {HELD.hash: HELD}
    assert all(recompute_decision(one, known) == (one["executors"], one["reason"], one["codes"]) for one in made.logged)


def test_what_a_start_makes_late_is_answered_by_no_further_start():
    contract = HELD.model_copy(update={"executors": Executors(min=1, max=8)})
    made, known = Life(contract), {contract.hash: contract}
    made.lasts(CALM, 3.0, 20.0)
    while made.steps()[-1] < 4:
        last = made.lasts(1, 30.0, 20.0)
    assert last["executors"] == 3
    begun, planned_s = made.now, last["inputs"]["lead"]["planned_s"]
    made.lasts(6, 30.0, 20.0)
    while made.logged[-1]["executors"] == 3:
        made.lasts(1, 30.0, 20.0, executors=3)
    interval_s = HELD.backpressure.interval_s
    assert made.logged[-1]["executors"] == 4 and planned_s <= made.now - begun <= planned_s + interval_s
    for one in made.logged:
        assert recompute_decision(one, known) == (one["executors"], one["reason"], one["codes"])
        asks = one["inputs"].get("relief", {"executors": None})["executors"]
        assert recompute_interval(one["inputs"]["replay"]).controls.executors == asks


def test_what_was_decided_follows_from_what_was_logged(life):
    known = {HELD.hash: HELD}
    for one in life.logged:
        assert recompute_decision(one, known) == (one["executors"], one["reason"], one["codes"])
        closed = recompute_interval(one["inputs"]["replay"])
        told = one["inputs"].get("relief", {"step": 0, "executors": None})
        assert (closed.state.relief.step, closed.controls.executors) == (told["step"], told["executors"])
        assert "replay_rps" not in one  # there is no replay


def test_a_rate_that_changes_is_sent_and_one_that_stays_is_not(life):
    told = [one.admission_rps for one in life.written]
    heard = [one.get("admission_rps") for one in life.logged]
    changes = [b for a, b in zip([None, *heard], heard, strict=False) if a != b]
    assert [rps for a, rps in zip([None, *told], told, strict=False) if a != rps] == changes
    assert changes and len(changes) <= len(life.logged) / HELD.backpressure.interval_s


def test_executors_that_relief_asked_for_stay_while_no_metrics_come_within_the_grant():
    made = Life(HELD)
    made.lasts(CALM, 3.0, 20.0)
    while made.steps()[-1] < 4:
        last = made.lasts(1, 30.0, 20.0)
    memory, now = made.memory, made.now + 30.0
    assert last["executors"] == 3 and memory.target == 1
    for second in range(3):  # each hold stands for the next one
        held = made.scaler.hold_without_metrics(memory, now + second)
        assert held.executors == 3 and held.reason.endswith("; 2 kept for relief")
        memory, _ = messages_after(JOB, HELD.hash, memory, held, now + second)
    assert memory.executors == 2, "and what is there is kept where nothing was granted yet"
    for granted, executors in ((JobGrant("shared", 1, 1), 2), (JobGrant("shared", 1, 0), 1), (JobGrant("shared"), 2)):
        scaler = Scaler(JOB, HELD, "reactive", "act", granted=granted)
        assert scaler.hold_without_metrics(memory, now).executors == executors
    made.lasts(60, 2.0, 20.0)
    assert made.steps()[-1] == 0 and made.scaler.hold_without_metrics(made.memory, made.now + 30.0).executors == 1


@pytest.mark.parametrize(("executors", "asked", "most", "expected"), [(2, 4, 8, 4), (2, 9, 8, 8), (5, 4, 8, 5)])
def test_asked_for_are_no_more_than_the_contract_allows_and_no_fewer_than_without(executors, asked, most, expected):
    contract = PLAIN.model_copy(update={"executors": Executors(min=1, max=most)})
    relief = {"step": 4, "executors": asked, "live_rps": None, "terms": "t"}
    found = with_relief(executors, "hold", ["hold"], relief, contract.executors.max)
    more = f": {expected - executors} more executors" if expected > executors else ""
    assert found == (expected, f"hold; relief step 4, capacity{more}", ["hold", "relief"])
    assert with_relief(executors, "hold", ["hold"], None, contract.executors.max) == (executors, "hold", ["hold"])


@pytest.mark.parametrize(
    ("step", "live_rps", "told"),
    [
        (5, 90.0, "relief step 5, throttle, live records held back to 90/s"),
        (5, None, "relief step 5, throttle (which reaches no query)"),
        (6, 90.0, "relief step 6, shed (which reaches no query), live records held back to 90/s"),
        (6, None, "relief step 6, shed (which reaches no query)"),
    ],
)
def test_a_step_that_reaches_no_query_says_so(step, live_rps, told):
    """No record of a running job is dropped, and live ones are held back only where their contract names a box."""
    relief = {"step": step, "executors": None, "live_rps": live_rps, "terms": "t"}
    assert with_relief(2, "hold", ["hold"], relief, 4)[1] == f"hold; {told}"


def test_a_job_that_responds_otherwise_is_told_by_the_decision_and_again_from_its_inputs():
    life = Life(HELD)
    for second in range(66):
        life.lasts(1, 3.0 + 0.1 * (second // 2 % 2))
    assert not any(one["inputs"]["replay"]["response_changed"] for one in life.logged)
    for _ in range(6):
        life.lasts(1, 7.0)  # still within its limit
    told = [one for one in life.logged if one["inputs"]["replay"]["response_changed"]]
    assert 1 <= len(told) <= 2  # the decisions of one interval
    assert told[0]["reason"].endswith(CHANGED) and told[0]["codes"][-1] == "response_changed"
    for one in life.logged[60:]:
        assert recompute_decision(one, {HELD.hash: HELD}) == (one["executors"], one["reason"], one["codes"])
        alarm = recompute_interval(one["inputs"]["replay"]).state.response.alarm
        assert alarm == one["inputs"]["replay"]["response_changed"]
