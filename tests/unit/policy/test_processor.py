import json
import math
from dataclasses import replace

import pytest

from configs.contract import Contract
from models.policy.live.applications import with_application
from models.policy.live.memory import Memory, fresh
from models.policy.live.recomputed import recompute_decision
from models.policy.replays.kept import ReplayControl
from pipelines.scale.pool.grants import JobGrant, kept_want
from pipelines.scale.processor import Scaler
from pipelines.scale.written import with_decision
from tidecast.messages import Decision, Forecast, MetricSample, encode

CONTRACT = Contract(job="orders")
KNOWN = {CONTRACT.hash: CONTRACT}
NOW = 1_000_000.0


def row(topic, value, offset=0):
    return {
        "topic": topic,
        "partition": 0,
        "offset": offset,
        "value": value.encode() if isinstance(value, str) else value,
    }


def metric(**changes):
    fields = {"kind": "interval", "time": 0.0, "arrival_rps": 50.0, "lag_records": 5, "executors": 1, "task_ceiling": 8}
    return encode(MetricSample(**{"job": "orders", "wall_time": NOW, **fields, **changes})).decode()


def forecast(**changes):
    fields = dict(
        job="orders", time=0.0, wall_time=NOW, time_scale=1.0, step_s=60.0, levels=[0.5, 0.9], quantiles=[[1.0, 2.0]],
        model="m", version="1", alias="champion", kind="network", history_steps=9, epoch=1,
    )  # fmt: skip
    return encode(Forecast(**{**fields, **changes})).decode()


@pytest.fixture
def scaler():
    return Scaler("orders", CONTRACT, "forecast", "act")


def test_every_second_of_metrics_leaves_a_record(scaler):
    memory, ticked, rejects = scaler.update_memory(fresh(CONTRACT), [row("metrics", metric())], NOW)
    memory, decision = scaler.decide(memory, NOW + 0.2)
    assert ticked and not rejects
    assert decision.codes[0] == "hold" and "no_forecast" in decision.codes
    assert decision.inputs["metric_wall_time"] == NOW
    json.loads(encode(decision))


def test_a_retried_micro_batch_writes_the_same_id(scaler):
    ids = set()
    for now in (NOW + 0.2, NOW + 1.7):
        memory, _, _ = scaler.update_memory(fresh(CONTRACT), [row("metrics", metric())], now)
        ids.add(scaler.decide(memory, now)[1].id)
    assert len(ids) == 1


@pytest.mark.parametrize(("policy", "heard"), [("forecast", True), ("reactive", False)])
def test_a_decision_holds_what_the_report_shows_and_replays(policy, heard):
    rows = [row("metrics", metric(arrival_rps=1.0)), row("forecasts", forecast(last_rps=1.0))]
    scaler = Scaler("orders", CONTRACT, policy, "act")
    memory, _, _ = scaler.update_memory(fresh(CONTRACT), rows, NOW)
    _, decision = scaler.decide(memory, NOW + 0.2)
    logged = json.loads(encode(decision))
    inputs = logged["inputs"]
    assert (inputs["needed_observed"], inputs["needed_forecast"]) == (1, 1 if heard else None)
    assert inputs["forecast_version"] == ("1" if heard else None)
    assert 1 < inputs["forecast_rps"] < 2 if heard else inputs["forecast_rps"] is None
    assert inputs["capacity_rps"] == logged["expected"]["capacity_rps"] > 0
    assert logged["expected"]["utilisation"] == pytest.approx(1 / inputs["capacity_rps"])
    assert recompute_decision(logged, KNOWN) == (decision.executors, decision.reason, decision.codes)


def test_who_stands_in_is_written_down_and_replays():
    scaler = Scaler("orders", CONTRACT, "dqn", "act")
    memory, _, _ = scaler.update_memory(fresh(CONTRACT), [row("metrics", metric())], NOW)
    memory, decision = scaler.decide(memory, NOW + 0.2)
    assert decision.policy == "mpc" and "stand_in" in decision.codes and "dqn has no agent yet" in decision.reason
    again = recompute_decision(json.loads(encode(decision)), KNOWN)
    assert again == (decision.executors, decision.reason, decision.codes)


def with_field(text, name, value):
    return json.dumps({**json.loads(text), name: value})


@pytest.mark.parametrize(
    ("topic", "value", "why"),
    [
        ("metrics", "{", "not JSON"),
        ("metrics", None, "an empty record"),
        ("metrics", with_field(metric(), "arrival_rps", math.nan), "finite"),
        ("metrics", with_field(metric(), "arrival_rps", -1), "at least 0"),
        ("metrics", with_field(metric(), "arrival_rps", 1e12), "at most 1000000000.0"),
        ("metrics", with_field(metric(), "schema", 9), "schema=9"),
        ("metrics", metric(wall_time=NOW + 10_000), "ahead of the reader"),
        ("metrics", metric(job="other"), "under the key"),
        ("forecasts", with_field(forecast(), "quantiles", [[2.0, 1.0]]), "rise"),
        ("forecasts", with_field(forecast(), "quantiles", [[math.nan, 1.0]]), "finite"),
        ("forecasts", with_field(forecast(), "quantiles", []), "without steps"),
        ("forecasts", forecast(wall_time=NOW + 10_000), "ahead of the reader"),
    ],
)
def test_bad_records_are_rejected_with_the_reason_and_change_nothing(scaler, topic, value, why):
    memory = fresh(CONTRACT)
    after, ticked, rejects = scaler.update_memory(memory, [row(topic, value, offset=7)], NOW)
    assert after == memory and not ticked
    assert len(rejects) == 1 and why in rejects[0].reason and rejects[0].offset == 7


def test_of_metrics_that_are_refused_all_the_time_one_of_a_kind_is_told_in_a_minute(scaler):
    memory, told = None, []
    for second in range(150):
        ahead, odd = metric(wall_time=NOW + second + 9000.5 + second), with_field(metric(), "schema", 9)
        rows = [row("metrics", ahead, 0), row("metrics", odd, 1), row("metrics", odd, 2), row("forecasts", "{", 3)]
        memory, sent = scaler.step(memory and Memory.from_json(memory.to_json()), rows, NOW + second, NOW + second)
        told += [(second, m.topic, m.offset) for kind, _, m in sent if kind == "rejects" and m.topic == "metrics"]
        assert [m.offset for kind, _, m in sent if kind == "rejects" and m.topic == "forecasts"] == [3]
    assert told == [(at, "metrics", offset) for at in (0, 60, 120) for offset in (0, 1)]


def seconds(scaler, memory, begin, *applications):
    """The memory, rejects and decisions of seconds of which each is told by one application; restored in between."""
    sent = []
    for at, application in enumerate(applications, begin):
        rows = [row("metrics", metric(wall_time=NOW + at, time=float(at), application=application), at)]
        memory, out = scaler.step(memory and Memory.from_json(memory.to_json()), rows, NOW + at, NOW + at)
        sent += [(topic, at, message) for topic, _, message in out]
    rejects, decisions = ([(at, m) for topic, at, m in sent if topic == wanted] for wanted in ("rejects", "decisions"))
    return memory, rejects, decisions


def test_while_two_applications_report_as_one_job_it_is_told_and_nothing_is_decided(scaler):
    memory, rejects, _ = seconds(scaler, None, 0, *["app-1"] * 5, *["app-2", "app-1"] * 45)
    assert [at - rejects[0][0] for at, _ in rejects] == [0, 60] and rejects[0][0] < 12
    assert "applications app-1 and app-2 report as 'orders', and nothing is decided" in rejects[0][1].reason
    known = memory
    memory, _, decisions = seconds(scaler, memory, 95, *["app-1", "app-2"] * 10)
    assert decisions == [] and (memory.looked_at, memory.past) == (known.looked_at, known.past)
    _, out = scaler.step(memory, [], NOW + 140, NOW + 140)  # its timer
    assert [topic for topic, *_ in out] == ["heartbeats"]
    memory, rejects, _ = seconds(scaler, memory, 115, *["app-2"] * 80)
    assert memory.looked_at == memory.metric_at == NOW + 194 and max(at for at, _ in rejects) < 175


def test_a_pool_hears_that_a_job_of_two_applications_keeps_what_it_has():
    """Or it would take the job's driver for ended after a while, and give its executors to others."""
    scaler = Scaler("orders", CONTRACT, "forecast", "act", granted=JobGrant("shared", 3))
    memory, _, _ = seconds(scaler, None, 0, *["app-1"] * 5, *["app-2", "app-1"] * 5)
    rows = [row("metrics", metric(wall_time=NOW + 15, time=15.0, application="app-2"), 15)]
    _, out = scaler.step(memory, rows, NOW + 15, NOW + 15)
    (want,) = [message for topic, _, message in out if topic == "wants"]
    assert (want.pool, want.executors, want.running, want.least) == ("shared", *[memory.executors] * 3)
    assert want.seen_at == memory.metric_at and len(want.late_s) == memory.executors + 1


def test_of_more_executors_than_a_job_can_have_its_pool_hears_in_no_more_numbers():
    want = kept_want(CONTRACT, "shared", replace(fresh(CONTRACT), executors=(1 << 63) - 1, metric_at=NOW), NOW)
    assert want.late_s == [0.0] * (CONTRACT.executors.max + 1)


def test_a_driver_that_is_restarted_again_and_again_is_one_application_after_another(scaler):
    _, rejects, decisions = seconds(scaler, None, 0, *(f"app-{at // 5}" for at in range(60)), None, "app-12", None)
    assert rejects == [] and decisions
    _, rejects, _ = seconds(scaler, None, 0, "app-1", "app-1", "app-2", "app-1", "app-2", "app-2")  # out of order
    assert rejects == []


def test_history_says_nothing_about_now(scaler):
    old = metric(executors=None, lag_records=None, span_s=1800.0)
    memory, ticked, rejects = scaler.update_memory(fresh(CONTRACT), [row("metrics", old)], NOW)
    assert not ticked and not rejects and memory.executors is None


def test_silence_is_reported_as_a_hold(scaler):
    memory, _, _ = scaler.update_memory(fresh(CONTRACT), [row("metrics", metric())], NOW)
    memory, _ = scaler.decide(memory, NOW)
    assert scaler.hold_without_metrics(memory, NOW + 1) is None
    decision = scaler.hold_without_metrics(memory, NOW + 30)
    assert decision.codes == ["hold", "no_metrics"] and decision.executors == 1


def test_what_was_read_as_the_clock_was_set_back_is_taken_and_no_sender_gets_ahead(scaler):
    memory, _ = scaler.step(None, [row("metrics", metric())], NOW, NOW)
    asked = [row("metrics", metric(wall_time=NOW + ahead), offset=at) for at, ahead in enumerate((1.0, 299.0, 599.0))]
    back, sent = scaler.step(memory, asked, NOW - 3600, NOW - 3600)
    assert back.metric_at == NOW + 299.0 and [(kind, m.offset) for kind, _, m in sent if kind == "rejects"] == [
        ("rejects", 2)
    ]
    _, sent = scaler.step(back, [row("metrics", metric(wall_time=NOW + 599.0))], NOW + 2, NOW + 2)
    assert [kind for kind, *_ in sent if kind == "rejects"] == ["rejects"], "what a sender says is no clock"


def test_a_forecast_of_a_year_ahead_is_rejected_and_the_next_is_taken(scaler):
    memory, _, _ = scaler.update_memory(fresh(CONTRACT), [row("metrics", metric(time_scale=720.0))], NOW)
    wrong = row("forecasts", forecast(time=memory.metric_time + 366 * 86_400.0, time_scale=720.0), offset=8)
    good = row("forecasts", forecast(time=memory.metric_time, time_scale=720.0), offset=9)
    memory, _, rejects = scaler.update_memory(memory, [wrong], NOW)
    assert [reject.offset for reject in rejects] == [8] and "nobody forecasts beyond" in rejects[0].reason
    memory, _, rejects = scaler.update_memory(memory, [good], NOW)
    assert rejects == [] and memory.forecast["time"] == memory.metric_time


@pytest.mark.parametrize("policy", ["mpc", "flink", "md_stream", "static"])
def test_no_decision_asks_for_more_executors_than_there_are_tasks(policy):
    """The agent refuses one that does, and the job would stay as it is."""
    contract = Contract(
        job="orders", executors={"min": 1, "max": 20}, planning={"static_executors": 20},
        backpressure={"recovery": {"rto_s": 300.0}},
    )  # fmt: skip
    scaler, memory = Scaler("orders", contract, policy, "act"), None
    for second in range(30):
        late = metric(wall_time=NOW + second, arrival_rps=100.0, lag_records=60_000 + 50 * second, task_ceiling=4)
        memory, sent = scaler.step(memory, [row("metrics", late)], NOW + second, NOW + second)
        for decision in (message for kind, _, message in sent if kind == "decisions"):
            assert decision.executors <= 4
            again = recompute_decision(json.loads(encode(decision)), {contract.hash: contract})
            assert again == (decision.executors, decision.reason, decision.codes)
    assert memory.target == 4


@pytest.mark.parametrize(("behind_s", "told"), [(20.0, True), (4.0, False)])
def test_metrics_that_are_old_as_they_come_are_told_of_once_a_minute_with_what_helps(behind_s, told):
    """The clock of the job's computer is behind: metrics come each second, and nothing is decided on them."""
    scaler, memory, rejects, decisions = Scaler("orders", CONTRACT, "mpc", "act"), None, [], []
    for second in range(70):
        now = NOW + second
        rows = [row("metrics", metric(wall_time=now - behind_s, time=float(second)), offset=second)]
        memory, sent = scaler.step(memory, rows, now, now)
        memory = Memory.from_json(memory.to_json())
        rejects += [message for kind, _, message in sent if kind == "rejects"]
        decisions += [message for kind, _, message in sent if kind == "decisions"]
    assert [one.offset for one in rejects] == ([0, 60] if told else []) and bool(decisions) == (behind_s < 5)
    assert all(one.reason.startswith("metrics of 'orders' are 20 s old as they arrive") for one in rejects)
    assert all("set the clocks of both computers, or raise planning.metrics_age_s" in one.reason for one in rejects)


@pytest.mark.parametrize(("slow_at", "told"), [(range(10, 70), [40]), (range(10, 40), []), (range(70), [1, 61])])
def test_an_autoscaler_that_comes_to_a_job_too_late_to_decide_for_half_a_minute_says_so(slow_at, told):
    scaler, memory, rejects = Scaler("orders", CONTRACT, "mpc", "act"), None, []
    for second in range(70):
        now = NOW + second
        behind_s = 18.0 if second in slow_at else 1.0
        rows = [row("metrics", metric(wall_time=now - behind_s, time=float(second)), offset=second)]
        memory, sent = scaler.step(memory, rows, now, now - behind_s + 1.0)
        memory = Memory.from_json(memory.to_json())
        rejects += [message for kind, _, message in sent if kind == "rejects"]
    assert [one.offset for one in rejects] == told
    assert all(one.reason.startswith("this autoscaler took 17 s to come to 'orders'") for one in rejects)
    assert all(one.reason.endswith("give it room, or raise planning.metrics_age_s") for one in rejects)


@pytest.mark.parametrize("away_s", [25, 60])
def test_of_a_single_slow_micro_batch_after_a_restart_nothing_is_said_and_of_the_next_one_it_is(away_s):
    """Autoscaler or driver were away, and it takes a while until the first worker has been started."""
    back = 9 + away_s
    moments = [*((second, second) for second in range(10)), (back, back + 9), (back + 9, back + 18)]
    scaler, memory, told = Scaler("orders", CONTRACT, "mpc", "act"), None, []
    for number, (planned, now) in enumerate(moments):
        rows = [row("metrics", metric(wall_time=NOW + planned - 1, time=float(planned)), offset=number)]
        memory, sent = scaler.step(memory, rows, NOW + now, NOW + planned)
        memory = Memory.from_json(memory.to_json())
        told += [(message.offset, message.reason.partition(",")[0]) for kind, _, message in sent if kind == "rejects"]
    assert told == [(11, "this autoscaler took 9 s to come to 'orders'")]


def batch(at, latency_s):
    fields = {"kind": "batch", "batch_rows": 10, "batch_s": 2.0, "executors": 1, "latency_max_s": latency_s}
    return metric(**fields, wall_time=at)


@pytest.mark.parametrize(
    ("mode", "agent", "charged"),
    [("act", "act", True), ("observe", "act", False), ("act", "observe", False), ("act", "freeze", False)],
)
def test_late_seconds_make_a_policy_stricter_only_where_it_acts_and_it_replays(mode, agent, charged):
    """Batches commit what is 20 s old; the target is 10 s at most."""
    scaler, memory, decisions, rungs = Scaler("orders", CONTRACT, "mpc", mode), None, [], []
    for step in range(8):
        at = NOW + 4 * step
        rows = [row("metrics", batch(at - 1, 20.0)), row("metrics", metric(wall_time=at, mode=agent))]
        memory, sent = scaler.step(memory, rows, at + 0.2, at + 0.2)
        decisions += [json.loads(encode(message)) for topic, _, message in sent if topic == "decisions"]
        rungs.append(memory.carried["rung"])
    assert (rungs[-1] > rungs[0]) is charged, rungs
    for decision in decisions:
        assert recompute_decision(decision, KNOWN)[0] == decision["executors"]
    assert memory.account.late_s > 10  # counted in any case


@pytest.mark.parametrize(("mode", "asked"), [("act", True), ("observe", False)])
def test_it_is_known_since_when_more_executors_are_asked_for_where_somebody_starts_them(mode, asked):
    """Until they come, batches beside their start teach nothing; a lowering, and who only observes, start none."""
    scaler, memory, asked_at = Scaler("orders", CONTRACT, "reactive", mode), None, []
    for second in range(60):
        load = 500.0 if 10 <= second < 20 else 10.0
        sample = metric(wall_time=NOW + second, time=float(second), arrival_rps=load, mode=mode)
        memory, _ = scaler.step(memory, [row("metrics", sample)], NOW + second, NOW + second)
        asked_at.append(memory.asked_at)
    assert asked_at[9] is None and len(set(asked_at[20:])) == 1
    assert (asked_at[-1] is not None and NOW + 10 <= asked_at[-1] < NOW + 20) == asked
    more = replace(memory, standing=replace(memory.standing, executors=1), asked_at=None)
    codes = ["hold", "no_metrics"]
    unseen = Decision("d", "orders", 1.0, NOW + 99, 1.0, mode, "reactive", 2, "hold: no metrics", codes, {}, {})
    assert with_decision(more, unseen).asked_at == (NOW + 99 if asked else None)


@pytest.mark.parametrize("policy", ["hpa", "md_stream"])
@pytest.mark.parametrize("known", [False, True])
def test_what_a_driver_was_started_with_stays_asked_for_where_metrics_came_before_it_took_over(policy, known):
    """Its agent observed with none or one of five at first: one was decided, and four were called off."""
    contract = Contract(job="orders", executors={"min": 1, "max": 8})
    takes_over = {"executors": 1, "mode": "act", "pending_executors": 4}
    told = {30: {"executors": 0, "mode": "observe"}, 31: {"executors": 1, "mode": "observe"}}
    told |= {32: takes_over, 33: takes_over, 60: {"executors": 5, "mode": "act", "pending_executors": 0}}
    if known:
        told = {0: {"executors": 5, "mode": "act", "pending_executors": 0}, **told}
    scaler, memory, asked = Scaler("orders", contract, policy, "act"), None, []
    for second, fields in told.items():
        rows = [row("metrics", metric(wall_time=NOW + second, time=float(second), **fields), second)]
        memory, _ = scaler.step(memory, rows, NOW + second, NOW + second)
        asked.append(memory.target)
    assert asked[-5:] == [1, 1, 5, 5, 5]


@pytest.mark.parametrize(("pending", "target"), [(0, 2), (3, 5)])
def test_executors_for_replays_are_none_that_a_new_agent_asks_for_live_records(pending, target):
    lent = ReplayControl({"fix": {"state": "running", "executors": 2, "executors_soon": 2}})
    before = replace(fresh(CONTRACT), executors=4, target=2, replay=lent)
    after = replace(before, pending=pending)
    assert with_application(before, after, {"executors": 4}).target == target
    assert with_application(after, after, {"executors": 4}).target == 2


def of_cores(cores):
    return Contract(job="orders", executors={"min": 1, "max": 40, "cores": cores})


def learned(events, tasks):
    """By how many times a record takes longer after these: edits of the contract, and executors with their slots.

    The first one is the contract with which eight of four slots ran.
    """
    contract = of_cores(events[0])
    told = row("metrics", metric(executors=8, cores=32, task_ceiling=tasks))
    memory, _, _ = Scaler("orders", contract, "static", "act").update_memory(fresh(contract), [told], NOW)
    before = memory.model.per_record_s
    for number, event in enumerate(events[1:], 1):
        rows = []
        if isinstance(event, tuple):
            running, cores = event
            sample = metric(executors=running, cores=cores, task_ceiling=tasks, wall_time=NOW + number)
            rows = [row("metrics", sample, number)]
        else:
            contract = of_cores(event)
        memory, _ = Scaler("orders", contract, "static", "act").step(memory, rows, NOW + number, NOW + number)
        memory = Memory.from_json(memory.to_json())
    return memory.model.per_record_s / before


@pytest.mark.parametrize(
    ("events", "takes"),
    [
        ([4, (8, 8)], 4.0),  # the application was started again with executors of one slot, by a contract that says 4
        ([4, (8, 8), 1], 1.0),
        ([4, 1, (8, 8)], 1.0),
        ([4, (32, 32), 1], 1.0),  # as many slots as before, on 32 executors: they fill the tasks as those did
        ([4, 1, (32, 32)], 1.0),
        ([4, 1, (0, 0), (8, 8)], 1.0),  # none is there yet
        ([4, (4, 16)], 1.0),  # fewer of the same
        ([1, 4], 4.0),  # the contract is corrected: an executor had 4 slots all the time
        ([4, 1], 0.25),
    ],
)
def test_what_a_record_takes_is_of_the_slots_of_an_application_and_as_a_contract_counts_them(events, takes):
    """Of resized executors it seemed to take a quarter: of eight, three were kept."""
    assert learned(events, 64) == pytest.approx(takes)


@pytest.mark.parametrize(
    ("events", "tasks"),
    [
        ([4, 1, (0, 0), (8, 8)], 16),
        ([4, 1, (0, 0), (1, 1), (8, 8)], 16),
        ([4, (0, 0), 1, (1, 1), (8, 8)], 16),  # none runs as the contract is edited
        ([1, (0, 0), (1, 1), (8, 8)], 6),  # a contract of one slot that none had, of which six tasks filled as many
    ],
)
def test_what_a_record_takes_goes_by_the_executors_with_which_it_was_learned_not_by_those_of_a_restart(events, tasks):
    """A driver begins with none and then one, which tasks do not bound: three executors seemed to be needed for one."""
    assert learned(events, tasks) == pytest.approx(1.0)
