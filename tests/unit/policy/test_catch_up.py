"""How long a job that is behind takes to catch up, by hand, and the executors that its rto asks for."""

import json
import math
from dataclasses import replace

import pytest

from configs.backpressure import Backpressure
from configs.contract import Contract, Executors, Planning
from models.policy.catalogue import build
from models.policy.core.budget import Account
from models.policy.live.catch_up import CatchUp, behind_since, describe_catch_up, find_catch_up
from models.policy.live.evaluation import evaluate
from models.policy.live.memory import Memory, fresh, with_interval
from models.policy.live.plan import make_plan
from models.policy.live.recomputed import recompute_decision
from models.policy.received.observation import Observation
from models.policy.received.outlook import Outlook
from pipelines.scale.processor import Scaler
from tidecast.messages import MetricSample, encode

PLANNING = Planning(overhead_s=0.01, per_record_s=0.01, lead_s=10.0, batch_s=1.0)
CONTRACT = Contract(job="orders", latency_target_s=10.0, executors=Executors(min=1, max=6), planning=PLANNING)


def with_rto(rto_s):
    return CONTRACT.model_copy(update={"backpressure": Backpressure.model_validate({"recovery": {"rto_s": rto_s}})})


def seen(**changes):
    """Two executors carry 199.6 records/s; 100 arrive; 6,150 wait, 6,000 of them beyond what batches hold."""
    fields = {
        "now_s": 1e6, "since_s": 1.0, "job_s": 1e6, "scale": 1.0, "arrival_rps": 100.0, "lag_records": 6_150,
        "processed_rps": None, "busy": None, "in_batch": None, "batch_s": None, "executors": 2, "target": 2,
        "tasks": 12, "overhead_s": 0.01, "per_record_s": 0.01, "since_change_s": 1e6, "behind_s": 60.0, "scatter": 0.0,
    }  # fmt: skip
    return Observation(**{**fields, **changes})


def found(executors=2, contract=CONTRACT, **changes):
    now = seen(**changes)
    return find_catch_up(now, contract, now.to_view(contract).capacity, executors)


def test_who_is_not_behind_is_predicted_nothing_nor_is_a_log_of_before():
    assert found(behind_s=None) is None and found(scatter=None) is None


def test_a_catch_up_by_hand():
    one = found()
    assert one.records == 6_000 and one.median_s == one.sure_s == pytest.approx(6_000 / 99.6)
    assert (one.rto_s, one.executors) == (None, 2)
    assert found(arrival_rps=250.0, lag_records=9_000).median_s == math.inf
    # two for ten seconds, then four: 996 gone, the rest at 299.2 a second
    assert found(4).median_s == pytest.approx(10 + (6_000 - 996) / 299.2)


def test_the_papers_outage():
    """Unified batch-stream runtime paper, recovery: 60 + 10 + 20 s at 800/s wait, and an rto of 300 s has 270 left."""

    def after_outage(served_rps, **contract):
        waiting = {"arrival_rps": 800.0, "lag_records": 72_000 + 1_200, "behind_s": 30.0}  # batches hold 1,200
        return found(**contract, **waiting, overhead_s=0.0, per_record_s=2 / served_rps)

    one = after_outage(1000)
    assert one.records == 72_000 and one.sure_s == pytest.approx(360)
    assert [after_outage(rps, contract=with_rto(300.0)).executors for rps in (1066.66, 1066.68)] == [3, 2]


def test_no_more_executors_are_asked_for_than_there_are_tasks():
    assert found(contract=with_rto(1.0)).executors == 6
    few = found(contract=with_rto(1.0), tasks=4, useful=4)
    assert few.executors == 4 and few.held_s == pytest.approx(found(4).sure_s)


def test_the_spread_of_the_capacity_and_the_forecast_of_the_load_are_in_it():
    spread = found(scatter=0.01)
    assert spread.median_s == found().median_s and spread.sure_s > 1.3 * spread.median_s
    ahead = Outlook((20.0, 40.0), (0.5, 0.9), ((150.0, 180.0), (50.0, 90.0)))
    one = found(ahead=ahead)
    assert one.median_s == pytest.approx(20 + (6_000 - 20 * 49.6) / 149.6)
    assert one.sure_s == pytest.approx(20 + (6_000 - 20 * 19.6) / 109.6)


def test_an_rto_that_cannot_be_held_asks_for_as_many_executors_as_hold_it():
    assert found(contract=with_rto(300.0)).executors == 2  # 240 s are left
    one = found(contract=with_rto(95.0))  # 35 s are left
    assert one.executors == 4 and one.held_s == pytest.approx(10 + (6_000 - 996) / 299.2) and one.held_s <= one.left_s
    assert found(3, contract=with_rto(95.0)).executors == 4
    none = found(contract=with_rto(70.0))
    assert none.executors == 6 and none.held_s > none.left_s == 10.0
    words = describe_catch_up(one, 2)
    assert words == (
        "6,000 records wait: caught up in 60 s (95%: in 60 s); rto 95 s, 35 s left: 2 more asked for, 4 executors hold "
        "it, in 27 s"
    )
    assert "4 more asked for, 6 executors do not hold it either, in 20 s" in describe_catch_up(none, 2)
    assert "never" in describe_catch_up(CatchUp(5, math.inf, math.inf, None, None, 2, math.inf), 2)


def test_an_rto_counts_where_it_is_stated_also_for_who_reads_the_contract_again():
    """Workers read what the driver has written, and would take a default that is written for stated."""
    without = CONTRACT.model_copy(update={"backpressure": Backpressure(interval_s=2)})
    for contract, rto_s in ((without, None), (with_rto(95.0), 95.0)):
        again = Contract.model_validate(contract.model_dump(mode="json"))
        assert found(contract=again).rto_s == found(contract=contract).rto_s == rto_s
        assert again.hash == contract.hash


def test_a_job_is_behind_from_when_its_oldest_record_waits_until_nothing_does():
    assert behind_since(None, 1_000.0, 100.0, 900.0, 10.0) is None  # nine seconds of records, ten are promised
    assert behind_since(None, 1_000.0, 100.0, 1_100.0, 10.0) == 989.0
    assert behind_since(989.0, 1_020.0, 100.0, 1.0, 10.0) == 989.0
    assert behind_since(989.0, 1_020.0, 100.0, 0.0, 10.0) is None
    assert behind_since(None, 1_000.0, 0.0, 50.0, 10.0) is None


def test_what_is_left_of_a_burst_has_waited_no_longer_than_since_the_newest_batch_was_read():
    """At the rate of now it would have come over hours."""
    assert behind_since(None, 50_000.0, 1.0, 9_994.0, 10.0, most_s=4.0) is None
    assert behind_since(None, 50_000.0, 1.0, 9_994.0, 10.0, most_s=12.0) == 49_988.0
    memory = replace(fresh(CONTRACT), account=Account(newest=(99_999.0, 99_990.0)))
    sample = {
        "arrival_rps": 1.0, "lag_records": 9_994, "executors": 2, "task_ceiling": 12, "wall_time": 100_000.0,
        "time": 0.0, "span_s": 1.0, "time_scale": 1.0,
    }  # fmt: skip
    memory, seen, _ = evaluate(with_interval(memory, sample), 100_002.0, CONTRACT, build("reactive", CONTRACT))
    assert seen.behind_s == 12.0


@pytest.mark.parametrize(("target", "moved"), [(2, "up 2 → 4"), (4, "hold"), (6, "down 6 → 4")])
def test_who_gets_more_for_an_rto_is_told_which_way_that_goes(target, moved):
    contract = with_rto(95.0)
    two = contract.model_copy(update={"planning": PLANNING.model_copy(update={"static_executors": 2})})
    _, made = make_plan(seen(target=target), two, build("static", two))
    assert (made.executors, made.codes[0], made.codes[-1]) == (4, moved.partition(" ")[0], "recovery")
    assert made.reason.startswith(f"{moved}: 100 rec/s, lag 6150") and made.reason.count(": 2 more asked for") == 1


IN_TURNS = {"start_growth": 1.0}
STEPS = {"max_step_up": 1}


def in_turns(rto_s, static_executors=2, **planning):
    changes = {"static_executors": static_executors, **planning}
    return with_rto(rto_s).model_copy(update={"planning": PLANNING.model_copy(update=changes)})


@pytest.mark.parametrize("planning", [IN_TURNS, STEPS])
def test_executors_that_start_in_turns_catch_up_as_late_as_they_come(planning):
    # Two for ten seconds, three for 7.5, then four: 99.6, 199.4 and 299.2 records a second go.
    contract = in_turns(95.0, **planning)
    one = found(4, contract=contract, rto_in_turns=True)
    assert one.sure_s == pytest.approx(17.5 + (6_000 - 996 - 1_495.5) / 299.2)
    assert found(4, contract=contract).sure_s == pytest.approx(10 + (6_000 - 996) / 299.2)  # a log of before
    assert found(1, contract=contract, rto_in_turns=True).sure_s == found(1, contract=contract).sure_s  # one goes


@pytest.mark.parametrize(
    ("changes", "executors", "begins"),
    [
        ({"rto_in_turns": True}, 3, "up 2 → 3: "),
        ({"rto_in_turns": True, "since_raise_s": 3.0, "target": 3}, 3, "hold: "),
        ({"rto_in_turns": True, "since_raise_s": 8.0, "target": 3, "executors": 3}, 4, "up 3 → 4: "),
        ({"rto_in_turns": True, "target": 6}, 4, "down 6 → 4: "),
        ({}, 4, "up 2 → 4: "),
    ],
)
@pytest.mark.parametrize("planning", [IN_TURNS, STEPS])
def test_those_that_an_rto_needs_start_in_the_turns_of_all_others(planning, changes, executors, begins):
    contract = in_turns(90.0 if "executors" in changes else 95.0, **planning)
    _, made = make_plan(seen(**changes), contract, build("static", contract))
    assert made.executors == executors and made.reason.startswith(begins)
    later = "1 of them later, as executors start in turns" in made.reason
    assert later == (executors < 4) and "4 executors hold it" in made.reason


def test_they_start_at_once_where_each_has_a_computer_of_its_own():
    contract = in_turns(95.0)
    _, made = make_plan(seen(rto_in_turns=True), contract, build("static", contract))
    assert (made.executors, made.codes[0]) == (4, "up")


def test_a_decision_says_it_asks_for_it_and_replays_bit_for_bit():
    contract = with_rto(100.0)
    scaler, memory, now = Scaler("orders", contract, "reactive", "act"), fresh(contract), 1e6
    for lag in (50, 9_000):
        now += 1
        sample = MetricSample(
            "orders", "interval", now, now, executors=2, task_ceiling=12, mode="act", arrival_rps=100.0, lag_records=lag
        )
        row = {"topic": "metrics", "partition": 0, "offset": 0, "value": encode(sample)}
        memory, _, rejects = scaler.update_memory(memory, [row], now)
        memory, decision = scaler.decide(memory, now)
        memory = Memory.from_json(memory.to_json())
        assert not rejects
        logged = json.loads(encode(decision))
        again = recompute_decision(logged, {contract.hash: contract})
        assert again == (decision.executors, decision.reason, decision.codes)
        assert ("recovery" in decision.codes) == (lag == 9_000)
    assert "8,850 records wait: caught up in" in decision.reason and memory.behind_at is not None
    older = {name: value for name, value in logged["inputs"].items() if name not in ("behind_s", "scatter")}
    assert Observation.from_inputs(older).behind_s is None
