"""The rate of replays beside live records, decided by the autoscaler's step and recomputed from what it logged."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from configs.backpressure import Backpressure
from configs.contract import Contract, Executors, Planning
from models.contract.terms import LIVE, compile_terms
from models.policy.core.sustained import sustained_rates
from models.policy.live.memory import Memory, fresh
from models.policy.live.recomputed import recompute_decision
from models.policy.replays.interval_latency import interval_latencies
from models.policy.replays.kept import UNSAID_S, ReplayControl, with_latency
from models.policy.replays.recomputed import recompute_rate
from pipelines.scale.processor import Scaler
from pipelines.scale.written import messages_after
from tidecast.messages import Decision, Forecast, MetricSample, decode, encode
from tidecast.orders import ReplayProgress
from tidecast.replay.pace import SLOW_START_S

NOW, JOB = 1_000_000.0, "orders"
CONTRACT = Contract(
    job=JOB, latency_target_s=10.0, executors=Executors(min=1, max=4), error_budget=0.05,
    planning=Planning(overhead_s=0.5, per_record_s=0.01),
)  # fmt: skip


def progress(now, done=0, state="running", name="fix", records=100_000, **more):
    admitted = more.pop("admitted_rps", 0.0)
    said = ReplayProgress(name, JOB, now, now, 1.0, state, records, done, admitted, **more)
    return {"topic": "replays", "partition": 0, "offset": 0, "value": encode(said)}


def second(now, rps=50.0, executors=2, kind="interval", **more):
    fields = {"mode": "act"} | ({"arrival_rps": rps, "lag_records": 10} if kind == "interval" else {}) | more
    said = MetricSample(JOB, kind, now, now, executors=executors, task_ceiling=8, **fields)
    return {"topic": "metrics", "partition": 0, "offset": 0, "value": encode(said)}


class Life:
    """A job second by second; each evaluation's decision, written or not."""

    def __init__(self, contract=CONTRACT, policy="reactive"):
        self.scaler, self.memory, self.now = Scaler(JOB, contract, policy, "act"), fresh(contract), NOW
        self.rates, self.logged = [], []

    def lasts(self, seconds, *rows_of, **second_of):
        for _ in range(seconds):
            self.now += 1.0
            rows = [second(self.now, **second_of), *(of(self.now) for of in rows_of)]
            self.memory, _, rejects = self.scaler.update_memory(self.memory, rows, self.now)
            assert not rejects
            self.memory, decision = self.scaler.decide(self.memory, self.now)
            self.memory = Memory.from_json(self.memory.to_json())
            self.rates.append(decision.replay_rps)
            self.logged.append(json.loads(encode(decision)))
        return self.rates[-1]


@pytest.fixture(scope="module")
def first_seconds():
    life = Life()
    life.lasts(100, progress)
    assert all(recompute_rate(one["inputs"]["replay"]) == one["replay_rps"] for one in life.logged)
    return life


@pytest.fixture
def settled(first_seconds):
    """A job whose replay has been read for a hundred seconds; to simulate them takes longer than all that follows."""
    life = Life()
    life.now, life.memory = first_seconds.now, Memory.from_json(first_seconds.memory.to_json())
    life.rates, life.logged = [*first_seconds.rates], [*first_seconds.logged]
    return life


def test_without_a_replay_nothing_is_decided_of_one():
    life = Life()
    assert life.lasts(15) is None and "replay" not in life.logged[-1]["inputs"]
    assert life.memory.replay == ReplayControl()


def test_a_replay_rises_in_steps_to_what_is_certainly_free_and_ends_as_it_began():
    life = Life()
    life.lasts(5)
    life.lasts(120, progress)
    highest = max(life.rates[5:])
    rises = [b - a for a, b in zip(life.rates[5:], life.rates[6:], strict=False)]
    box = life.logged[-1]["inputs"]["replay"]["terms"]["controls"]["replay_rps"]["max"]
    first = 2 * life.logged[5]["inputs"]["replay"]["signals"]["operators"][JOB]["certain_rps"] - 50.0
    assert 0.4 * first < life.rates[5] < first  # at once, before an interval is over
    assert max(rises) <= 0.1 * box + 1e-9
    certain = life.logged[-1]["inputs"]["replay"]["signals"]["operators"][JOB]["certain_rps"]
    free = 2 * certain - 50.0
    assert 0.5 * free < highest < free, (highest, free)
    assert life.lasts(1, lambda now: progress(now, 100_000, "read")) is None
    assert life.memory.replay == ReplayControl()


def test_the_rate_falls_within_seconds_where_live_records_come_faster_than_the_interval_reckoned_with():
    life = Life()
    life.lasts(5)
    before = life.lasts(62, progress)
    intervals = [one["inputs"]["replay"]["state"]["interval"] for one in life.logged[5:]]
    assert life.lasts(4, progress, rps=90.0) < 0.5 * before
    newest = life.logged[-1]
    assert newest["inputs"]["replay"]["state"]["interval"] == intervals[-1]  # no interval was closed meanwhile
    assert recompute_rate(newest["inputs"]["replay"]) == newest["replay_rps"]


def test_the_executors_of_one_that_is_read_stay_until_it_is_published_and_it_has_no_rate():
    life = Life()
    life.lasts(5)
    life.lasts(30, lambda now: progress(now, executors=2))
    with_two = life.logged[-1]["executors"]
    assert life.lasts(5, lambda now: progress(now, 100_000, "read", executors=2)) == 0.0
    assert life.logged[-1]["executors"] == with_two
    assert life.lasts(1, lambda now: progress(now, 100_000, "done")) is None
    assert life.logged[-1]["executors"] == with_two - 2


def test_a_replay_of_which_a_job_that_runs_says_nothing_any_more_is_over():
    life = Life()
    life.lasts(5)
    life.lasts(5, lambda now: progress(now, executors=2, reading_since=now - 1))
    asked = life.logged[-1]["executors"]
    life.now += UNSAID_S - 5  # as where the driver was started again
    assert life.lasts(1) is not None and life.logged[-1]["executors"] == asked
    life.now += 5
    assert life.lasts(1) is None and life.logged[-1]["executors"] == asked - 2
    assert life.memory.replay == ReplayControl()


def test_executors_that_a_schedule_asks_for_soon_are_kept_while_they_run():
    life = Life()
    life.lasts(5, executors=4, rps=10.0)
    life.lasts(60, lambda now: progress(now, executors=0, executors_soon=2), executors=4, rps=10.0)
    last = life.logged[-1]
    assert last["executors"] == 3 and last["reason"].endswith("; 2 kept for replays")
    assert last["inputs"]["replay"]["added"] == 2 and recompute_decision(last, {CONTRACT.hash: CONTRACT})[0] == 3
    life.lasts(60, lambda now: progress(now, executors=0, executors_soon=2), executors=2, rps=10.0)
    assert life.logged[-1]["executors"] == 2  # none is started for it


def test_no_executor_is_given_back_while_a_replay_begins_whatever_its_schedule_asks_for():
    def begun(now, since=None):
        return progress(now, executors=0, executors_soon=0, reading_since=now if since is None else since)

    life = Life()
    life.lasts(5, executors=4, rps=10.0)
    life.lasts(60, begun, executors=4, rps=10.0)
    assert life.logged[-1]["executors"] == 4 and life.logged[-1]["reason"].endswith("; 3 kept for replays")
    assert recompute_decision(life.logged[-1], {CONTRACT.hash: CONTRACT})[0] == 4
    life.lasts(60, lambda now: begun(now, now - SLOW_START_S), executors=4, rps=10.0)
    assert not any("kept" in one["reason"] for one in life.logged[-60:])


def test_live_records_that_wait_are_served_before_those_of_a_replay():
    life = Life()
    life.lasts(5)
    life.lasts(120, progress, lag_records=1_000)
    signals = life.logged[-1]["inputs"]["replay"]["signals"]
    # 1.5 batches of 4 s are in flight, the others are worked off in three times the target.
    assert signals["live_high_rps"] == pytest.approx(50 + (1_000 - 1.5 * 4 * 50) / 30)
    assert 0 < max(life.rates[5:]) <= 2 * signals["operators"][JOB]["certain_rps"] - signals["live_high_rps"]


def test_records_that_cost_little_leave_more_of_them_room_and_none_counts_for_more_than_a_live_one():
    highest = {}
    for work_s in (None, 0.25, 4.0):
        life = Life()
        life.lasts(5)
        life.lasts(120, lambda now, work_s=work_s: progress(now, rows=100, work_s=work_s))
        highest[work_s] = max(life.rates[5:])
        inputs = life.logged[-1]["inputs"]["replay"]
        assert recompute_rate(inputs) == life.rates[-1]
        ratio = inputs["signals"]["operators"][JOB].get("replay_ratio")
        assert ratio == {None: 1.0, 0.25: pytest.approx(0.25), 4.0: 1.0}[work_s]
    assert highest[4.0] == highest[None]
    assert highest[0.25] > 2 * highest[None]


def test_it_falls_at_once_when_live_records_come_and_the_logged_inputs_give_the_same_rate(settled):
    life = settled
    before = life.rates[-1]
    life.lasts(11, progress, rps=150.0)
    certain = life.logged[-1]["inputs"]["replay"]["signals"]["operators"][JOB]["certain_rps"]
    assert life.rates[-1] <= max(2 * certain - 149.0, 0.0) < before
    for one in life.logged:
        assert recompute_rate(one["inputs"]["replay"]) == one["replay_rps"]
    edited = json.loads(json.dumps(life.logged[-1]["inputs"]["replay"]))
    edited["signals"]["live_rps"] = 0.0
    edited["signals"]["time_s"] += 10.0
    assert recompute_rate(edited) != life.logged[-1]["replay_rps"]


def test_live_records_that_are_too_late_stop_it_whatever_is_free(settled):
    life = settled
    assert life.rates[-1] > 20

    def batch(longest_s):
        return lambda now: second(now, kind="batch", batch_rows=50, batch_s=1.0, latency_max_s=longest_s)

    life.lasts(31, progress, batch(14.0))
    assert life.rates[-1] == 0.0
    life.lasts(120, progress, batch(4.0))
    assert life.rates[-1] > 0.0  # and it comes back once they are in time again


def test_it_comes_back_where_no_live_record_comes_that_could_be_too_late(settled):
    """What the last records before a quiet night waited holds nothing up all night; records that wait do."""
    life = settled
    life.lasts(31, progress, lambda now: second(now, kind="batch", batch_rows=50, batch_s=1.0, latency_max_s=30.0))
    known = life.memory.replay.level
    assert life.logged[-1]["inputs"]["replay"]["state"]["relief"]["step"] >= 1
    assert life.lasts(60, progress, rps=0.0, lag_records=40) == 0.0
    quick = {"admitted_rps": 1e6, "warm": True}
    assert life.lasts(80, lambda now: progress(now, **quick), rps=0.0, lag_records=0) > 20.0
    assert life.memory.replay.level == known  # nothing was borne
    last = [one["inputs"]["replay"] for one in life.logged[-80:]]
    assert last[-1]["state"]["relief"]["step"] == 0 and not any(one["response_changed"] for one in last)
    assert recompute_rate(last[-1]) == life.rates[-1]
    life.lasts(100, progress, lambda now: second(now, kind="batch", batch_rows=50, batch_s=1.0, latency_max_s=4.0))
    assert not any(one["inputs"]["replay"]["response_changed"] for one in life.logged[-100:])


def test_the_quantile_of_an_interval_is_that_of_its_worst_batch_below():
    def told(batches):
        control = ReplayControl(replays={"r": {}})
        for slow in range(batches):
            worst = {"latency_p50_s": 2.0, "latency_p95_s": 3.0 + (slow == 1), "latency_max_s": 5.0 + (slow == 1)}
            control = with_latency(control, worst)
        return control

    def latencies(terms, control):
        return interval_latencies(terms, control.latency_s, control.batches)

    life = Life()
    life.lasts(2, progress)
    terms = compile_terms(life.logged[-1]["inputs"]["replay"]["terms"])
    (path,) = [path for path in terms.paths if path.kind == LIVE]
    quick = replace(terms, paths=(replace(path, quantile=0.99),))
    (few,), (many,) = (latencies(quick, told(count)).values() for count in (3, 5))
    assert (few, many) == (6000.0, 4000.0)
    (median,) = latencies(replace(terms, paths=(replace(path, quantile=0.5),)), told(40)).values()
    assert median == 2000.0
    only = with_latency(ReplayControl(replays={"r": {}}), {"latency_max_s": 7.0})
    assert list(latencies(quick, replace(only, batches=9)).values()) == [7000.0]


def test_one_that_waits_for_a_calmer_time_may_not_begin_beside_one_that_reads():
    def ahead(now):
        rates = [[60.0, 60.0], [5.0, 5.0]]
        said = Forecast(JOB, now, now, 1.0, 15.0, [0.5, 0.9], rates, "m", "1", "champion", "network", 9, 1, 60.0)
        return {"topic": "forecasts", "partition": 0, "offset": 0, "value": encode(said)}

    def other(now):
        return progress(now, state="waiting", name="other", executors=0)

    life = Life(policy="forecast")
    life.lasts(5, ahead, rps=60.0)
    life.lasts(12, progress, ahead, rps=60.0)
    life.lasts(20, progress, other, ahead, rps=60.0)
    told = [one["inputs"]["replay"]["may_begin"] for one in life.logged[5:]]
    assert told == [["fix"]] * 32 and life.rates[-1] > 0.0
    stood, sent = life.memory, []
    life.lasts(20, progress, other, rps=5.0)  # it is calm
    assert life.logged[-1]["inputs"]["replay"]["may_begin"] == ["fix", "other"]
    for named in (["fix"], ["fix"], ["fix", "other"]):
        said = decode(Decision, json.dumps(life.logged[-1]).encode())
        said.inputs["replay"]["may_begin"] = named
        stood, messages = messages_after(JOB, CONTRACT.hash, stood, said, life.now)
        sent.append([topic for topic, _, _ in messages if topic == "decisions"])
    assert sent == [["decisions"], [], ["decisions"]]  # an agent hears it of the decision alone


def test_a_limit_that_was_broken_counts_until_a_batch_has_kept_it_also_where_batches_take_longer_than_an_interval():
    life = Life()
    life.lasts(40, progress)
    terms = compile_terms(life.logged[-1]["inputs"]["replay"]["terms"])
    limit_s = next(path.max_ms for path in terms.paths if path.kind == LIVE) / 1000

    def reads(now):
        return progress(now, admitted_rps=life.rates[-1])

    def trigger(share, rps):
        longest_s = share * limit_s
        batch = dict(kind="batch", batch_rows=50, batch_s=1.0, latency_max_s=longest_s)
        life.lasts(1, reads, lambda now: second(now, **batch), executors=4, rps=rps)
        life.lasts(24, reads, executors=4, rps=rps)

    for share, rps in ((1.15, 400.0), (1.15, 400.0), (1.15, 10.0), (1.15, 10.0), (0.8, 10.0)):
        trigger(share, rps)
    assert life.rates[89] == 0.0
    rises = [b - a for a, b in zip(life.rates[89:], life.rates[90:], strict=False)]
    step = 0.1 * terms.controls.replay_rps.max
    left = terms.controls.replay_rps.max
    assert max(rises[:50]) > 0 and max(life.rates[89:139]) <= 0.05 * left  # little before a batch has kept it
    assert step < max(rises[50:])  # and then at once
    assert all(recompute_rate(one["inputs"]["replay"]) == one["replay_rps"] for one in life.logged)


def test_a_rate_beside_which_a_limit_stays_broken_by_little_falls_and_comes_back_slowly():
    """By less than the ladder of relief is entered for: nothing else would end it."""
    life = Life()
    terms_of = {"now": None}

    def batch(share):
        return lambda now: second(now, kind="batch", batch_rows=50, batch_s=1.0, latency_max_s=share * terms_of["s"])

    def reads(now):
        return progress(now, admitted_rps=life.rates[-1] or 0.0)

    life.lasts(1, progress)
    terms = compile_terms(life.logged[-1]["inputs"]["replay"]["terms"])
    terms_of["s"] = next(path.max_ms for path in terms.paths if path.kind == LIVE) / 1000
    life.lasts(120, reads, batch(0.5))
    settled = life.rates[-1]
    life.lasts(120, reads, batch(1.1))
    broken = life.rates[-120:]
    assert all(b <= a for a, b in pairwise(broken[12:]))
    assert 0 < broken[-1] < 0.2 * settled and life.logged[-1]["inputs"]["replay"]["state"]["relief"]["step"] == 0
    life.lasts(60, reads, batch(0.5))
    assert broken[-1] < life.rates[-1] < 0.6 * settled
    assert life.lasts(240, reads, batch(0.5)) > 0.9 * settled and life.memory.replay.share is None
    assert all(recompute_rate(one["inputs"]["replay"]) == one["replay_rps"] for one in life.logged)


def test_a_paused_replay_asks_for_nothing_and_a_short_one_for_no_more_than_is_left():
    life = Life()
    life.lasts(60, lambda now: progress(now, state="paused"))
    assert set(life.rates) == {0.0}
    life.lasts(60, lambda now: progress(now, 99_950))
    assert 0 < life.rates[-1] <= 50 / 10  # fifty records, an interval of ten seconds


def test_a_changed_contract_is_taken_over_at_the_next_interval(settled):
    life = settled
    before, rate = life.logged[-1]["inputs"]["replay"]["terms"], life.rates[-1]
    stricter = CONTRACT.model_copy(update={"latency_target_s": 5.0})
    life.scaler = Scaler(JOB, stricter, "reactive", "act")
    life.lasts(1, progress)
    after = life.logged[-1]["inputs"]["replay"]
    assert after["terms"]["scales"]["latency_ms"] == 5_000 != before["scales"]["latency_ms"]
    assert life.rates[-1] == pytest.approx(rate, rel=0.2)  # no fresh start
    life.lasts(30, progress)
    assert all(recompute_rate(one["inputs"]["replay"]) == one["replay_rps"] for one in life.logged[100:])


def test_the_bounds_follow_what_the_executors_are_learned_to_sustain_and_nothing_else_begins_anew():
    stated = Backpressure.model_validate({"controls": {"live_rps": {}}})  # so the terms outlive a replay
    contract = CONTRACT.model_copy(update={"backpressure": stated})
    life = Life(contract)

    def batch(batch_s):
        return lambda now: second(now, kind="batch", batch_rows=300, batch_s=batch_s, latency_max_s=3.0)

    life.lasts(2, rps=300.0)
    life.lasts(60, batch(1.0), rps=300.0)
    life.lasts(120, batch(0.6), rps=300.0)
    told = [one["inputs"]["replay"] for one in life.logged]
    most = [one["terms"]["controls"]["replay_rps"]["max"] for one in told]
    sustained = sustained_rates(contract, life.memory.model, 8).most_rps
    assert most[0] == sustained_rates(contract, tasks=8).most_rps < most[-1] == pytest.approx(sustained, rel=0.1)
    changes = [at for at in range(1, len(most)) if most[at] != most[at - 1]]
    assert 0 < len(changes) < 20 and all(abs(most[at] / most[at - 1] - 1) > 0.1 for at in changes)
    learned = [(one["state"]["interval"], one["state"]["response"]["count"]) for one in told]
    assert learned == sorted(learned) and learned[-1][1] >= 15
    life.lasts(60, progress, batch(0.6), rps=50.0)
    assert life.rates[-1] > most[0]
    assert all(recompute_rate(one["inputs"]["replay"]) == one["replay_rps"] for one in life.logged[-60:])


def test_what_live_records_bore_beside_a_replay_that_is_over_is_not_believed_of_the_next():
    """Where live records may be held back the controller goes on: the median still counted as certain, for them too."""
    stated = Backpressure.model_validate({"controls": {"live_rps": {}}})
    life = Life(CONTRACT.model_copy(update={"backpressure": stated}))
    life.memory = replace(life.memory, replay=ReplayControl(level=0.5, share=0.3))
    life.lasts(1)
    assert (life.memory.replay.level, life.memory.replay.share) == (ReplayControl().level, None)


def test_a_limit_that_a_changed_contract_no_longer_has_leaves_no_price(settled):
    def late(now):
        return second(now, kind="batch", batch_rows=50, batch_s=1.0, latency_max_s=14.0)

    life = settled
    life.lasts(31, progress, late)
    priced = life.logged[-1]["inputs"]["replay"]["state"]["multipliers"]
    assert any(priced.values())
    other = CONTRACT.model_copy(
        update={"backpressure": Backpressure.model_validate({"paths": [{"quantile": 0.5, "max_ms": 1_000}]})}
    )
    life.scaler = Scaler(JOB, other, "reactive", "act")
    life.lasts(1, progress)
    after = life.logged[-1]["inputs"]["replay"]["state"]["multipliers"]
    assert not {name for name in priced if name.startswith("live ")} & set(after)


def test_what_the_records_of_a_replay_that_is_over_cost_tells_nothing_of_the_next_ones():
    life = Life()
    life.lasts(100, lambda now: progress(now, rows=100, work_s=0.25))
    life.lasts(1, lambda now: progress(now, 100_000, state="done"), lambda now: progress(now, name="next"))
    life.lasts(30, lambda now: progress(now, name="next"))
    assert life.logged[-1]["inputs"]["replay"]["signals"]["operators"][JOB]["replay_ratio"] == 1.0


def test_a_clock_that_is_set_back_does_not_hold_a_rate_that_live_records_have_no_room_for(settled):
    life = settled
    before = life.rates[-1]
    life.now -= 3_600.0
    life.lasts(25, progress, rps=150.0)
    certain = life.logged[-1]["inputs"]["replay"]["signals"]["operators"][JOB]["certain_rps"]
    assert life.rates[-1] <= max(2 * certain - 149.0, 0.0) < before
    assert all(recompute_rate(one["inputs"]["replay"]) == one["replay_rps"] for one in life.logged[100:])


def test_a_least_rate_that_the_executors_no_longer_sustain_falls_with_what_they_do():
    stated = Backpressure.model_validate({"controls": {"replay_rps": {"min": 300.0}}})
    life = Life(CONTRACT.model_copy(update={"backpressure": stated}))
    slow = dict(kind="batch", batch_rows=50, batch_s=5.0, latency_max_s=6.0)
    life.lasts(60, lambda now: second(now, **slow))
    life.lasts(30, progress)
    box = life.logged[-1]["inputs"]["replay"]["terms"]["controls"]["replay_rps"]
    assert box["min"] == box["max"] < 300.0 and life.rates[-1] <= box["max"]
    assert recompute_rate(life.logged[-1]["inputs"]["replay"]) == life.rates[-1]


def test_without_metrics_nothing_more_is_read():
    life = Life()
    life.lasts(60, progress)
    held = life.scaler.hold_without_metrics(life.memory, life.now + 30.0)
    assert (held.replay_rps, held.codes) == (0.0, ["hold", "no_metrics"])
    idle = Life()
    idle.lasts(5)
    assert idle.scaler.hold_without_metrics(idle.memory, idle.now + 30.0).replay_rps is None


def _decided(life):
    return life.logged[-5]["executors"] if len(life.logged) >= 5 else 1


def test_executors_for_a_replay_come_on_top_and_the_policy_plans_as_if_they_were_not_there():
    alone, beside = Life(), Life()
    for rps in (*[50.0] * 20, *[110.0] * 40, *[50.0] * 60):
        # What is decided is there five seconds later.
        alone.lasts(1, rps=rps, executors=_decided(alone))
        beside.lasts(1, lambda now: progress(now, executors=1), rps=rps, executors=_decided(beside))
    known = {CONTRACT.hash: CONTRACT}
    for a, b in zip(alone.logged, beside.logged, strict=True):
        assert b["executors"] == min(a["executors"] + 1, 4), (a["reason"], b["reason"])
        assert b["reason"] == a["reason"] + ("; 1 more for replays" if a["executors"] < 4 else "")
        assert recompute_decision(b, known) == (b["executors"], b["reason"], b["codes"])
    assert {one["executors"] for one in alone.logged} >= {1, 2}
    held = beside.scaler.hold_without_metrics(beside.memory, beside.now + 30.0)
    assert held.executors == beside.logged[-1]["executors"]
    beside.lasts(1, lambda now: progress(now, 100_000, "done"), executors=2)
    assert "replays" not in beside.logged[-1]["reason"]
