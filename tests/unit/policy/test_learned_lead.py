"""What outcomes teach of the lead time, and what the autoscaler does with it."""

import dataclasses
import json

import numpy as np
import pytest

from configs.contract import Planning
from models.backfill.live.known import KnownJob, lead_times
from models.policy.live.learned_lead import LearnedLead, lead_quantiles, read_start
from models.policy.live.memory import Memory, fresh, with_outcome
from models.policy.live.recomputed import recompute_decision
from pipelines.scale.processor import Scaler
from tests.unit.policy.test_processor import CONTRACT, NOW, metric, row
from tidecast.messages import Outcome, encode

CONFIRMED = {"status": "confirmed", "confirmed_at": 4.0, "useful_at": 9.0}


def outcome(decision="d1", decided_at=0.0, wall_time=10.0, before=1, target=2, busy=None, **fields):
    told = {"status": "ineffective", **fields}
    return dataclasses.asdict(
        Outcome(
            decision_id=decision, job="orders", time=0.0, wall_time=wall_time, time_scale=1.0, reason="",
            executors_before=before, target=target, decided_at=decided_at, expected={"busy": busy}, **told,
        )
    )  # fmt: skip


def after(*outcomes, prior_s=10.0):
    known = LearnedLead.guess(Planning(lead_s=prior_s))
    for one in outcomes:
        known = known.learn_outcome(one)
    return known


@pytest.mark.parametrize(
    ("fields", "start"),
    [
        ({**CONFIRMED, "busy": 0.5, "target": 3}, (9.0, 2, 0.5, False)),
        ({**CONFIRMED, "useful_at": 3.0}, (4.0, 1, 0.0, False)),  # those of the raise before were used first
        ({}, (10.0, 1, 0.0, True)),
        ({"busy": "much"}, (10.0, 1, 0.0, True)),
        ({"busy": 10**400}, (10.0, 1, 0.0, True)),
        ({"confirmed_at": 4.0}, None),  # they came, and no batch had need of them
        ({**CONFIRMED, "before": 2}, None),
        ({**CONFIRMED, "decided_at": 20.0}, None),  # a clock that jumped
        ({**CONFIRMED, "useful_at": 11.5}, None),  # later than it was told
        ({**CONFIRMED, "decided_at": -1e6}, None),
        ({"status": "refused"}, None),
        ({"observed": {"no_room": "default"}}, None),  # it waited for others to leave
        ({**CONFIRMED, "observed": {"no_room": "default", "late": True}}, None),
        ({**CONFIRMED, "decided_at": None}, None),
    ],
)
def test_a_start_is_read_from_an_outcome_that_tells_of_one(fields, start):
    found = read_start(outcome(**fields))
    assert (found and (found.seconds, found.executors, found.busy, found.censored)) == start


def test_an_outcome_counts_once_and_the_later_one_of_a_raise_that_was_given_up():
    once = after(outcome(**CONFIRMED))
    assert once.lead.starts == 1 and after(outcome(**CONFIRMED), outcome(**CONFIRMED)) == once
    given_up = after(outcome(wall_time=60.0))
    assert given_up.lead.starts == 1 and given_up.lead.quantile_s(0.9) > once.lead.quantile_s(0.9)
    assert given_up.learn_outcome(outcome(wall_time=90.0)).lead.starts == 1
    came = given_up.learn_outcome(outcome(**CONFIRMED))
    assert came == once and came.learn_outcome(outcome(wall_time=60.0)) == once


def test_a_raise_that_never_came_is_forgotten_as_others_come_and_everything_survives_as_json():
    calm = after(*(outcome(f"d{i}", **CONFIRMED) for i in range(10)))
    known = calm.learn_outcome(outcome("never", wall_time=900.0))
    assert LearnedLead.from_json_values(json.loads(json.dumps(dataclasses.asdict(known)))) == known
    for i in range(10):
        known = known.learn_outcome(outcome(f"e{i}", **CONFIRMED))
    assert known.overdue is None and "never" in known.settled and known.lead.starts == 21
    assert known.lead.quantile_s(0.9) < 1.3 * calm.lead.quantile_s(0.9)
    assert LearnedLead.from_json_values(json.loads(json.dumps(dataclasses.asdict(known)))) == known


def test_slow_starts_make_the_autoscaler_plan_further_ahead_and_every_decision_replays():
    scaler = Scaler("orders", CONTRACT, "mpc", "act")
    seconds = [("metrics", metric(time=float(at), wall_time=NOW + at)) for at in range(2)]
    memory, _, _ = scaler.update_memory(_fresh(scaler), [row(*one) for one in seconds], NOW + 2)
    _, first = scaler.decide(memory, NOW + 2.2)
    prior = lead_quantiles(None, CONTRACT, 0.0)
    assert first.inputs["lead"] == {**prior, "starts": 0} and first.inputs["lead_s"] == prior["planned_s"]
    assert prior["median_s"] == CONTRACT.planning.lead_s < prior["planned_s"]

    slow = [
        Outcome(**{**outcome(f"d{i}", NOW, NOW + 60, **CONFIRMED), "confirmed_at": NOW + 50, "useful_at": NOW + 60.0})
        for i in range(6)
    ]
    told = [row("outcomes", encode(one)) for one in slow]
    memory, _, rejects = scaler.update_memory(memory, told, NOW + 61)
    memory, _, _ = scaler.update_memory(
        Memory.from_json(memory.to_json()), [row("metrics", metric(time=61.0, wall_time=NOW + 61))], NOW + 61
    )
    _, then = scaler.decide(memory, NOW + 61.2)
    assert not rejects and then.inputs["lead"]["starts"] == 6
    assert then.inputs["lead"]["median_s"] == pytest.approx(60, rel=0.1) and then.inputs["lead_s"] > 60
    for decision in (first, then):
        logged = json.loads(encode(decision))
        assert recompute_decision(logged, {CONTRACT.hash: CONTRACT}) == (
            decision.executors,
            decision.reason,
            decision.codes,
        )


@pytest.mark.parametrize("told", [None, {"before": 2, "target": 1, **CONFIRMED}, {"status": "refused"}])
def test_an_edited_guess_counts_until_the_first_raise_whatever_was_told_before(told):
    memory, edited = fresh(CONTRACT), Planning(lead_s=60.0, start_growth=1.0)
    if told is not None:
        memory = Memory.from_json(with_outcome(memory, outcome(**told), CONTRACT).to_json())
    contract = CONTRACT.model_copy(update={"planning": edited})
    said = lead_quantiles(memory.lead, contract, 0.0)
    assert said == {**lead_quantiles(None, contract, 0.0), "median_s": 60.0, "growth": 1.0, "starts": 0}
    assert np.median(lead_times(KnownJob(contract, memory, None, "mpc"))) == pytest.approx(60.0, rel=0.01)
    raised = outcome("d2", 10.0, 70.0, **{**CONFIRMED, "confirmed_at": 60.0, "useful_at": 65.0})
    assert with_outcome(memory, raised, contract).lead == LearnedLead.guess(edited).learn_outcome(raised)


def test_a_guess_that_is_edited_after_the_first_raise_was_given_up_counts_once_that_raise_has_come():
    edited = Planning(lead_s=60.0)
    given_up = after(outcome(wall_time=60.0))
    came = LearnedLead.under(given_up, edited).learn_outcome(outcome(**CONFIRMED))
    assert came == after(outcome(**CONFIRMED), prior_s=60.0)


def test_a_cluster_without_room_is_said_teaches_nothing_and_is_not_asked_for_more_until_there_is_room():
    scaler = Scaler("orders", CONTRACT, "mpc", "act")
    memory, decided = _fresh(scaler), []

    def second(at, executors, *outcomes):
        nonlocal memory
        told = [row("metrics", metric(time=at, wall_time=NOW + at, arrival_rps=900.0, executors=executors))]
        memory, _, _ = scaler.update_memory(memory, [*told, *(row("outcomes", encode(one)) for one in outcomes)], NOW)
        memory, decision = scaler.decide(Memory.from_json(memory.to_json()), NOW + at + 0.2)
        decided.append(decision)
        return decision

    first = second(0.0, 1)
    assert first.codes[0] == "up" and "no_room" not in first.codes
    lead, asked = first.inputs["lead"], first.executors
    full = outcome(first.id, NOW, NOW + 11.0, target=asked, observed={"no_room": "default", "censored": True})
    for at in range(11, 120):  # much longer than a target that is not reached is believed in
        said = second(float(at), 1, *([Outcome(**full)] if at == 11 else []))
        assert said.codes[0] == "hold" and "no_room" in said.codes and said.executors == asked
        assert f"the cluster has no room for {asked - 1} of {asked} executors" in said.reason
        assert said.inputs["lead"] == lead
    room = {"confirmed_at": NOW + 120, "useful_at": NOW + 120, "observed": {"no_room": "default"}}
    came = Outcome(**outcome(first.id, NOW, NOW + 121.0, target=asked, **{**CONFIRMED, **room}))
    said = second(121.0, asked, came)
    assert "no_room" not in said.codes and said.inputs["lead"] == lead
    for one in decided:
        logged = json.loads(encode(one))
        assert recompute_decision(logged, {CONTRACT.hash: CONTRACT}) == (one.executors, one.reason, one.codes)


def _fresh(scaler):
    memory, _ = scaler.step(None, [], NOW, NOW)
    return memory


def test_how_many_should_start_at_once_is_learned_from_raises_of_several():
    shared = [
        outcome(f"d{i}", target=1 + many, wall_time=100.0, **{**CONFIRMED, "useful_at": 10.0 * many})
        for i, many in enumerate([1, 3, 1, 3, 2, 1, 3])
    ]
    said = lead_quantiles(after(*shared), CONTRACT, 0.0)
    assert said["growth"] == pytest.approx(1.0, abs=0.25)
    assert lead_quantiles(None, CONTRACT, 0.0)["growth"] == 0.0
    believed = CONTRACT.model_copy(update={"planning": Planning(start_growth=1.0)})
    assert lead_quantiles(None, believed, 0.0)["growth"] == 1.0


def test_what_is_believed_before_any_raise_is_made_once_for_each_guess():
    first, other = LearnedLead.guess(Planning(lead_s=7.0)), LearnedLead.guess(Planning(lead_s=8.0))
    assert LearnedLead.under(None, Planning(lead_s=7.0)) is first
    assert (first.lead.prior_s, other.lead.prior_s, first.lead.starts) == (7.0, 8.0, 0)
    assert first.learn_outcome(outcome(**CONFIRMED)).lead.starts == 1 and first.lead.starts == 0
