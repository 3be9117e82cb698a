"""Executors in all, for live records, replays and relief: where starts slow each other down they are made in turns."""

import json
import math
from itertools import pairwise

import pytest

from configs.contract import Contract, Executors, Planning
from models.policy.live.memory import Memory
from models.policy.live.recomputed import recompute_decision
from models.policy.replays.total import TotalSoFar, begin_in_turns
from pipelines.scale.processor import Scaler
from tests.unit.policy.test_replay_control import JOB, NOW, progress, second
from tidecast.messages import encode

LEAD_S = 20.0
SHARED = Planning(lead_s=LEAD_S, start_growth=1.0, overhead_s=0.5, per_record_s=0.01)
CONTRACT = Contract(job=JOB, latency_target_s=10.0, executors=Executors(min=1, max=6), planning=SHARED)


@pytest.mark.parametrize(
    ("live", "wanted", "total", "planning", "begun"),
    [
        (2, 6, (2, 2, math.inf), {}, 3),
        (2, 6, (2, 2, 14.0), {}, 2),  # the raise before, as of live records, was a moment ago
        (2, 6, (2, 3, 14.0), {}, 3),
        (2, 6, (2, 3, 16.0), {}, 3),  # it has not come yet
        (2, 6, (3, 3, 14.0), {}, 3),
        (2, 6, (3, 3, 16.0), {}, 4),
        (2, 6, (2, None, math.inf), {}, 3),
        (2, 6, (2, 2, 3.0), {"start_growth": 0.0}, 6),
        (2, 6, (2, 2, 3.0), {"start_growth": 0.3}, 6),
        (2, 6, (2, 2, math.inf), {"start_growth": 0.0, "max_step_up": 2}, 4),
        (3, 4, (2, 3, 1.0), {}, 3),  # the one under way for a replay serves what live records need
        (4, 6, (2, 3, 1.0), {}, 4),  # what they need goes first
        (2, 3, (4, 4, 1.0), {}, 3),
        (2, 4, (2, 5, 1.0), {}, 4),
    ],
)
def test_how_many_start_by_hand(live, wanted, total, planning, begun):
    assert begin_in_turns(live, wanted, TotalSoFar(*total), SHARED.model_copy(update=planning)) == begun


class Shared:
    """A job second by second, whose executors come a while after they are asked for; its decisions that were sent."""

    def __init__(self, contract=CONTRACT, policy="mpc", come_s=12):
        self.scaler, self.memory, self.now = Scaler(JOB, contract, policy, "act"), None, NOW
        self.come_s, self.asked, self.sent = come_s, [1], []

    def lasts(self, seconds, *rows_of, **second_of):
        for _ in range(seconds):
            self.now += 1.0
            running = min(self.asked[-self.come_s :])
            self.hears(second(self.now, executors=running, **second_of), *(of(self.now) for of in rows_of))

    def hears(self, *rows):
        self.memory, out = self.scaler.step(self.memory, [*rows], self.now, self.now)
        self.memory = Memory.from_json(self.memory.to_json())
        self.sent += [json.loads(encode(message)) for topic, _, message in out if topic == "decisions"]
        self.asked.append(self.sent[-1]["executors"])

    def raises(self):
        """Seconds and numbers of the raises so far, and by how many executors each was."""
        pairs = enumerate(pairwise(self.asked))
        return [(at, now - was) for at, (was, now) in pairs if now > was]


def three_more(now):
    return progress(now, executors=3)


def test_executors_of_a_schedule_start_in_turns_as_those_of_live_records_do_and_the_log_tells_the_same():
    life = Shared()
    life.lasts(5)
    life.lasts(120, three_more)
    assert life.asked[-1] == 4 and [by for _, by in life.raises()] == [1, 1, 1]
    begins = [at for at, _ in life.raises()]
    assert all(later - earlier >= 0.75 * LEAD_S for earlier, later in pairwise(begins))
    first = next(one for one in life.sent if one["executors"] == 2)
    assert first["reason"].endswith("; 3 more for replays; 2 of them later, as executors start in turns")
    assert first["inputs"]["replay"]["added"] == 1
    for one in life.sent:
        assert recompute_decision(one, {CONTRACT.hash: CONTRACT}) == (one["executors"], one["reason"], one["codes"])


@pytest.mark.parametrize(
    ("micro_batches", "application"),
    [
        ([["observe", "act"]], None),
        ([["observe"], ["act"]], None),
        ([["act"]], "app-2"),  # its agent had taken over before the first second was told
    ],
)
def test_a_driver_that_begins_again_beside_a_replay_has_its_executors_start_in_turns(micro_batches, application):
    """All of those of before were asked for together, as if its agent, which has found one, still asked for them."""
    life = Shared()
    told = {"application": "app-1", "pending_executors": 0}
    life.lasts(5, **told)
    life.lasts(120, three_more, **told)
    assert life.asked[-1] == 4
    life.now += 40.0
    pending = {"observe": None, "act": 0}
    for modes in micro_batches:
        ends = enumerate(modes, 1 - len(modes))
        rows = [
            second(life.now + at, executors=1, mode=one, pending_executors=pending[one], application=application)
            for at, one in ends
        ]
        life.hears(*rows)
    life.asked = [1] * life.come_s + life.asked[-1:]
    life.lasts(100, three_more)
    assert life.asked[-1] == 4 and [by for _, by in life.raises()] == [1, 1, 1]
    begins = [at for at, _ in life.raises()]
    assert begins[0] == life.come_s - 1 and all(later - at >= 0.75 * LEAD_S for at, later in pairwise(begins))
    for one in life.sent:
        assert recompute_decision(one, {CONTRACT.hash: CONTRACT}) == (one["executors"], one["reason"], one["codes"])


def test_a_raise_of_live_records_and_one_for_a_replay_are_one_start():
    life = Shared(policy="static")
    life.scaler = Scaler(JOB, with_static(1), "static", "act")
    life.lasts(5)
    life.lasts(3, three_more)
    assert life.asked[-1] == 2
    life.scaler = Scaler(JOB, with_static(2), "static", "act")
    life.lasts(5, three_more)
    assert life.asked[-1] == 2 and life.memory.target == 2


def with_static(executors):
    planning = SHARED.model_copy(update={"static_executors": executors})
    return CONTRACT.model_copy(update={"planning": planning})


def test_while_no_metrics_come_they_start_in_turns_too():
    life = Shared()
    life.lasts(5)
    memory, _, _ = life.scaler.update_memory(life.memory, [three_more(life.now)], life.now)
    assert life.scaler.hold_without_metrics(memory, life.now + 30.0).executors == 2
    apart = CONTRACT.model_copy(update={"planning": SHARED.model_copy(update={"start_growth": 0.0})})
    assert Scaler(JOB, apart, "mpc", "act").hold_without_metrics(memory, life.now + 30.0).executors == 4


def test_each_on_a_computer_of_its_own_all_start_at_once_as_they_did_in_older_logs():
    life = Shared(CONTRACT.model_copy(update={"planning": SHARED.model_copy(update={"start_growth": 0.0})}))
    life.lasts(5)
    life.lasts(10, three_more)
    assert life.raises() == [(5, 3)]
    turns = Shared()
    turns.lasts(5)
    turns.lasts(10, three_more)
    older = turns.sent[-1]
    del older["inputs"]["replay"]["raised_s"]
    assert recompute_decision(older, {CONTRACT.hash: CONTRACT})[0] == 4


def test_a_clock_that_was_set_back_behind_the_last_raise_holds_no_raise_back():
    life = Shared(come_s=3)
    life.lasts(5)
    life.lasts(10, three_more)
    assert life.asked[-1] == 2
    life.now -= 3_600.0
    life.lasts(20, three_more)
    assert life.asked[-1] >= 3
