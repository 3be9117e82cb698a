"""What is written of a job's evaluations: what changes, once; what stands, as a sign of life."""

import dataclasses
import itertools
import json

import pytest

from configs.contract import Contract, Executors
from models.policy.core.budget import Account
from models.policy.live.memory import Memory, fresh
from models.policy.live.standing import REMIND_S
from pipelines.scale.processor import UNKNOWN_S, Scaler
from pipelines.scale.written import BEAT_S, messages_after, rejects_after
from tests.unit.policy.test_processor import CONTRACT, NOW, forecast, metric, row
from tidecast.messages import Decision, Heartbeat, encode


class Query:
    """One job's steps as Spark makes them: the state is text in between."""

    def __init__(self, contract=CONTRACT, policy="forecast", mode="act"):
        self.contract, self.policy, self.mode, self.kept, self.sent = contract, policy, mode, None, []

    def step(self, now, *rows):
        memory = None if self.kept is None else Memory.from_json(self.kept)
        scaler = Scaler("orders", self.contract, self.policy, self.mode)
        memory, said = scaler.step(memory, [row(*r) for r in rows], now, now)
        self.kept = None if memory is None else memory.to_json()
        self.sent += [(topic, dataclasses.asdict(message)) for topic, _, message in said]
        return [topic for topic, _, _ in said]

    def second(self, at, **changes):
        return self.step(NOW + at + 0.2, ("metrics", metric(time=float(at), wall_time=NOW + at, **changes)))

    def of(self, topic):
        return [message for name, message in self.sent if name == topic]


@pytest.fixture
def query():
    return Query()


def test_where_no_record_was_refused_the_memory_stays_and_nothing_is_told():
    memory = dataclasses.replace(fresh(CONTRACT), refused={"orders: schema: ": NOW})
    after, sent = rejects_after("orders", memory, [], NOW + 100.0)
    assert after is memory and sent == []


def test_holds_in_a_row_are_one_record_and_every_one_of_them_is_counted(query):
    for at in range(100):
        query.second(at, arrival_rps=50.0 + at % 3)
    (held,) = query.of("decisions")
    beats = query.of("heartbeats")
    assert {b["standing"] for b in beats[1:]} == {held["id"]} and {b["executors"] for b in beats[1:]} == {1}
    gaps = [b["wall_time"] - a["wall_time"] for a, b in itertools.pairwise(beats)]
    assert max(gaps) <= BEAT_S + 1 and min(gaps) >= BEAT_S
    assert beats[-1]["repeats"] == round(beats[-1]["wall_time"] - held["wall_time"])


def test_what_stood_is_counted_to_its_end_before_another_decision_takes_its_place(query):
    for at in range(10):
        query.second(at)
    query.second(10, arrival_rps=900.0)
    query.second(11, arrival_rps=900.0)
    first, raised = query.of("decisions")[:2]
    assert raised["codes"][0] == "up"
    reported = {b["standing"]: b["repeats"] for b in query.of("heartbeats")}
    assert reported[first["id"]] == round(raised["wall_time"] - first["wall_time"]) - 1


def test_an_executor_that_came_a_forecast_and_another_contract_are_written(query):
    query.second(0)
    query.second(1, executors=2)
    assert len(query.of("decisions")) == 2
    query.step(NOW + 1.3, ("forecasts", forecast(wall_time=NOW + 1.3, last_rps=1.0)))
    query.second(2, executors=2)
    query.second(3, executors=2)
    assert len(query.of("decisions")) == 3
    query.contract = Contract(job="orders", error_budget=0.5)
    query.second(4, executors=2)
    assert [d["inputs"]["contract_hash"] for d in query.of("decisions")] == [CONTRACT.hash] * 3 + [query.contract.hash]


def test_late_seconds_that_leave_the_window_are_told_though_the_decision_comes_to_the_same():
    parts = (NOW - 40, 10.0, 0.0), (NOW - 30, 10.0, 4.0), (NOW - 20, 10.0, 0.0), (NOW - 10, 10.0, 2.0), (NOW, 5.0, 0.0)
    memory, told = dataclasses.replace(fresh(CONTRACT), executors=1), []
    for at in range(5):
        memory = dataclasses.replace(memory, account=Account(parts[at:]))
        for again in range(2):
            now = NOW + 2 * at + again
            inputs = {"promise": {"late_s": memory.account.late_s}}
            hold = Decision(f"d{now}", "orders", now, now, 1.0, "act", "mpc", 1, "hold", ["hold"], inputs, {})
            memory, sent = messages_after("orders", CONTRACT.hash, memory, hold, now)
            told += [said.inputs["promise"]["late_s"] for topic, _, said in sent if topic == "decisions"]
    assert told == [6.0, 2.0, 0.0]


def test_what_stands_is_said_again_to_an_agent_that_acts_again(query):
    for at, mode in enumerate(("act", "act", "observe", "observe", "act", "act")):
        query.second(at, mode=mode)
    assert len(query.of("decisions")) == 3  # what it forgot while it observed


@pytest.mark.parametrize(("mode", "again"), [("act", 3), (None, 3), ("observe", 0), ("freeze", 0)])
def test_a_decision_that_no_agent_has_followed_is_made_anew(mode, again):
    query = Query(Contract(job="orders", executors=Executors(max=2)))
    for at in range(19):
        query.second(at, arrival_rps=900.0, mode=mode)
    raised, held, *later = query.of("decisions")
    assert (raised["codes"][0], held["codes"][0]) == ("up", "hold")
    assert len(later) == again and len({d["id"] for d in query.of("decisions")}) == 2 + again
    assert all(d["executors"] == 2 for d in later)
    gaps = [b["wall_time"] - a["wall_time"] for a, b in zip([held, *later], later, strict=False)]
    assert all(REMIND_S <= gap <= REMIND_S + 1 for gap in gaps)


@pytest.mark.parametrize(("pending", "again"), [(1, 0), (0, 3), (2, 3)])
def test_a_decision_that_the_agent_follows_is_not_written_again_however_late_its_executors_come(pending, again):
    query = Query(Contract(job="orders", executors=Executors(max=2)))
    for at in range(19):
        query.second(at, arrival_rps=900.0, mode="act", pending_executors=pending if at else 0)
    assert len(query.of("decisions")) == 2 + again


def test_an_agent_that_asks_for_more_than_was_decided_is_reminded_though_as_many_run_as_were_decided(query):
    """It asked for those of before while the autoscaler was away, and these would have started for nothing."""
    for at in range(19):
        query.second(at, mode="act", pending_executors=1 if at else 0)
    decisions = query.of("decisions")
    assert [(d["executors"], d["codes"][0]) for d in decisions] == [(1, "hold")] * 4
    assert [round(b["wall_time"] - a["wall_time"]) for a, b in itertools.pairwise(decisions)] == [REMIND_S] * 3


def test_a_hold_that_stands_while_executors_are_missing_says_anew_for_how_long():
    """It was the hold of the second after the raise, "the last one is too new for the next", an hour later too."""
    planning = {"start_growth": 1.0}
    query = Query(Contract(job="orders", executors=Executors(max=4), planning=planning), policy="mpc")
    for at in range(100):
        query.second(at, arrival_rps=300.0, mode="act", pending_executors=1 if at else 0)
    raised, *held = query.of("decisions")
    assert raised["codes"][0] == "up" and "too new for the next" in held[0]["reason"]
    assert [round(d["wall_time"] - raised["wall_time"]) for d in held] == [1, 20, 40, 80]
    assert "those asked for have not come: for 80 s, 1 of 2 have run" in held[-1]["reason"]


def test_silence_is_one_hold_and_signs_of_life_go_on(query):
    query.second(0)
    for tick in range(1, 60):
        query.step(NOW + 2 * tick)
    assert [d["codes"] for d in query.of("decisions")][1:] == [["hold", "no_metrics"]]
    beats = [NOW, *(b["wall_time"] for b in query.of("heartbeats"))]
    assert max(b - a for a, b in itertools.pairwise(beats)) <= 10
    query.second(120)
    assert query.of("decisions")[-1]["codes"] != ["hold", "no_metrics"]


def test_after_half_a_minute_in_which_nothing_could_be_decided_signs_of_life_vouch_for_no_decision(query):
    """The clock of the job's computer was set back by 20 s: metrics come each second, too old to decide on."""
    for second in range(20):
        query.second(second)
    first = query.of("decisions")[0]["id"]
    for second in range(20, 80):
        old = metric(time=float(second), wall_time=NOW + second - 20)
        query.step(NOW + second + 0.2, ("metrics", old))
    named = [(b["wall_time"] - NOW, b["standing"]) for b in query.of("heartbeats")]
    assert {standing for at, standing in named if at <= 48} == {first}
    assert {standing for at, standing in named if at >= 52} == {None} and max(at for at, _ in named) > 70
    query.second(80)
    for second in range(81, 90):
        query.second(second)
    assert query.of("heartbeats")[-1]["standing"] == query.of("decisions")[-1]["id"]


def test_a_job_known_by_its_forecast_alone_has_a_sign_of_life_that_names_no_decision(query):
    query.step(NOW, ("forecasts", forecast()))
    (beat,) = query.of("heartbeats")
    assert (beat["by"], beat["standing"], beat["time"]) == ("autoscaler", None, NOW)


def test_a_forecast_is_as_fresh_as_the_last_sign_of_life_that_vouches_for_it(query):
    query.step(NOW, ("forecasts", forecast(epoch=7, last_rps=50.0)))
    late = CONTRACT.planning.forecast_age_s + 8
    query.step(NOW + late, ("heartbeats", serving(NOW + late, "6")))
    query.second(late)
    assert "late_forecast" in query.of("decisions")[-1]["codes"]
    query.step(NOW + late, ("heartbeats", serving(NOW + late, "7")))
    query.second(late + 1)
    assert "late_forecast" not in query.of("decisions")[-1]["codes"]
    assert query.of("decisions")[-1]["inputs"]["forecast_version"] == "1"


def serving(wall, standing, by="serving"):
    return encode(Heartbeat("orders", by, 0.0, wall, 1.0, standing, NOW)).decode()


def test_its_own_signs_of_life_change_nothing(query):
    query.step(NOW, ("forecasts", forecast()))
    before = query.kept
    assert query.step(NOW + 1, ("heartbeats", serving(NOW + 1, "1", by="autoscaler"))) == []
    assert query.kept == before


def test_a_job_without_a_contract_is_told_so_once_in_a_while_and_is_known_when_it_has_one():
    query = Query(contract=None)
    for at in range(30):
        query.second(at)
    (reject,) = query.of("rejects")
    assert "add orders.yaml to the folder of contracts" in reject["reason"]
    assert query.of("decisions") == query.of("heartbeats") == []
    query.contract = Contract(job="orders", executors=Executors(min=2))
    query.second(30)
    assert query.of("decisions")[-1]["executors"] == 2
    assert json.loads(query.kept)["unknown_at"] is None


def test_a_job_whose_contract_went_away_is_left_alone_and_forgotten_after_a_while(query):
    query.second(0)
    query.contract, sent = None, len(query.sent)
    for at in range(2, 20, 2):
        assert query.step(NOW + at) == []  # its timer
    assert len(query.sent) == sent and query.kept is not None
    query.step(NOW + 2 + UNKNOWN_S)
    assert query.kept is None
    query.step(NOW + 4 + UNKNOWN_S)
    assert len(query.sent) == sent


def test_a_state_of_an_older_version_has_no_standing_decision(query):
    query.second(0)
    old = json.loads(query.kept)
    for name in ("mode", "standing", "beat_at", "unknown_at"):
        del old[name]
    query.kept = json.dumps(old)
    assert sorted(query.second(1)) == ["decisions", "heartbeats"]
