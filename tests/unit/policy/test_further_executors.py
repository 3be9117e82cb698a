"""What an executor more brings, to live records and replays, by the controller; useless ones are not asked for."""

from dataclasses import replace

import pytest

from configs.backpressure import Backpressure
from models.contract.controller import close_interval, served_rates
from models.contract.relief import Relief
from models.contract.signals import OperatorReading
from models.contract.state import begin
from models.policy.live.memory import fresh
from models.policy.live.recomputed import recompute_decision
from models.policy.replays.executors import with_replays
from models.policy.replays.further import executors_of_use, numbers_to_weigh, weigh_executors
from models.policy.replays.kept import ReplayControl
from models.policy.replays.recomputed import recompute_weighed
from pipelines.scale.processor import Scaler
from tests.fakes.shared_job import EAGER, queue_signals, shared_plan, shared_terms
from tests.unit.policy.test_replay_control import CONTRACT, JOB, NOW, Life, progress

EACH = {n: 400.0 for n in (1, 2, 3, 4)}
"""Each of so many executors certainly serves 400 records/s."""
BOUND = Backpressure.model_validate({"controls": {"replay_rps": {"max": 10.0}}})


def weighed(live_rps=600.0, high_rps=None, backlog=1e9, of_each=EACH, step=0, **changes):
    """What one to four executors serve of live records and replays."""
    terms = shared_terms(paths=[{"ops": ["map"], "quantile": 0.99, "max_ms": 2_000}], **changes)
    state = begin(terms, shared_plan(), 1e9)
    signals = queue_signals(0, live_rps, 0.0, operators={"map": OperatorReading(certain_rps=1.0)})
    signals = replace(signals, live_high_rps=high_rps)
    found = weigh_executors(terms, shared_plan(), replace(state, relief=Relief(step)), signals, backlog, of_each)
    assert [row["executors"] for row in found["numbers"]] == [*of_each] and found["backlog"] == backlog
    return found


def rates(found):
    return [(round(row["live_rps"], 6), round(row["replay_rps"], 6)) for row in found["numbers"]]


def test_by_hand_live_records_are_served_first_and_the_replay_has_the_rest():
    # A twentieth of what is served stays free: 380, 760, 1140, 1520; the replay's box ends at 1000.
    assert rates(weighed()) == [(380, 0), (600, 160), (600, 540), (600, 920)]
    assert rates(weighed(live_rps=500.0, high_rps=700.0)) == [(380, 0), (700, 60), (700, 440), (700, 820)]
    assert rates(weighed(backlog=2_000.0))[1:] == [(600, 160), (600, 200), (600, 200)]  # gone in an interval of 10 s
    assert rates(weighed(of_each=dict(zip(EACH, (400.0, 400.0, 800 / 3, 200.0), strict=True))))[1:] == [(600, 160)] * 3


def test_on_the_ladder_a_replay_has_nothing_and_live_records_get_each_executor():
    found = weighed(step=4)
    assert rates(found) == [(380, 0), (760, 0), (1140, 0), (1520, 0)]
    assert executors_of_use(found, 2, 2, 0, 4) == 2


@pytest.mark.parametrize(
    ("live", "extra", "publishing", "changes", "of_use"),
    [
        (2, 2, 0, {}, 2),
        (2, 9, 0, {}, 2),  # as many as there may be
        (1, 3, 0, {}, 3),
        (2, 2, 0, {"backlog": 1_500.0}, 0),
        (2, 2, 0, {"backlog": 2_000.0}, 1),
        (2, 2, 1, {"backlog": 0.0}, 1),  # one is published by it
        (2, 2, 2, {"backlog": 0.0}, 2),
        (2, 2, 0, {"controls": {"replay_rps": {"min": 0, "max": 500}}}, 1),
        (1, 3, 0, {"controls": {"replay_rps": {"min": 0, "max": 100}}}, 1),  # live records need it
        (2, 2, 0, {"of_each": dict(zip(EACH, (400.0, 400.0, 800 / 3, 200.0), strict=True))}, 0),  # no task for more
        (4, 2, 0, {}, 2),  # there is no room for any: nothing is to be found out
    ],
)
def test_no_more_are_asked_for_than_somebody_gets_anything_of(live, extra, publishing, changes, of_use):
    assert executors_of_use(weighed(**changes), live, extra, publishing, 4) == of_use


def test_one_more_and_one_fewer_are_weighed_than_all_that_are_asked_for():
    assert [*numbers_to_weigh(2, 2, 9)] == [1, 2, 3, 4, 5]
    assert [*numbers_to_weigh(1, 0, 9)] == [1, 2]
    assert [*numbers_to_weigh(3, 4, 5)] == [2, 3, 4, 5]


def test_older_logs_weigh_nothing_and_keep_what_was_asked_for():
    assert executors_of_use(None, 1, 2, 0, 4) == 2
    decided = {"executors": 2, "signals": {"executors": 1}}
    assert with_replays(1, "so", ["up"], decided, CONTRACT.executors.max) == (3, "so; 2 more for replays", ["up"])


def test_what_is_weighed_is_what_the_controller_comes_to():
    terms = shared_terms(
        paths=[{"ops": ["map"], "quantile": 0.99, "max_ms": 2_000}],
        weights=EAGER, controls={"replay_rps": {"min": 0, "max": 1000, "slew": 1.0}},
    )  # fmt: skip
    state = begin(terms, shared_plan(), 1e9)
    for n in (1, 2, 3):
        signals = queue_signals(
            1, 600.0, 0.0, executors=n, latency_ms={}, operators={"map": OperatorReading(certain_rps=400.0)}
        )  # fmt: skip
        closed = close_interval(terms, shared_plan(), state, signals)
        assert served_rates(terms, shared_plan(), state, signals).replay_rps == closed.line["limits"]["admission"]


def lives(backpressure):
    """Two minutes of a job whose replay's schedule asks for two executors; what was decided last."""
    life = Life(CONTRACT.model_copy(update={"backpressure": backpressure}))
    life.lasts(5, rps=30.0, executors=1)
    life.lasts(60, lambda now: progress(now, executors=2, executors_soon=2), rps=30.0, executors=1)
    return life, life.logged[-1]


@pytest.fixture(scope="module")
def lived():
    return {"bound": lives(BOUND), "free": lives(None)}


def test_a_decision_asks_for_no_executor_that_brings_nothing_and_names_what_each_would_bring(lived):
    life, made = lived["bound"]
    assert made["executors"] == 1
    assert made["reason"].endswith("; 2 more would bring neither live records nor replays anything")
    numbers = made["inputs"]["replay"]["weighed"]["numbers"]
    assert [row["executors"] for row in numbers] == [1, 2, 3, 4]
    assert {row["replay_rps"] for row in numbers} == {10.0} and {row["live_rps"] for row in numbers} == {30.0}
    held = life.scaler.hold_without_metrics(life.memory, life.now + 30.0)
    assert held.executors == 1  # nor without metrics

    free, asked = lived["free"]
    assert asked["executors"] == 3 and asked["reason"].endswith("; 2 more for replays")
    numbers = asked["inputs"]["replay"]["weighed"]["numbers"]
    assert [row["replay_rps"] for row in numbers] == sorted({row["replay_rps"] for row in numbers})
    assert free.scaler.hold_without_metrics(free.memory, free.now + 30.0).executors == 3


@pytest.mark.parametrize(("state", "tasks", "running", "executors"), [
    ("running", 8, 1, 3), ("running", 2, 1, 2), ("read", 2, 1, 2), ("running", 1, 1, 1), ("waiting", 2, 4, 2),
])  # fmt: skip
def test_without_metrics_no_executor_is_asked_for_of_which_a_batch_has_no_task(state, tasks, running, executors):
    of_replay = {"fix": {"state": state, "executors": 2, "executors_soon": 3}}
    life = replace(fresh(CONTRACT), target=1, executors=running, tasks=tasks, metric_at=NOW)
    silent = replace(life, replay=ReplayControl(of_replay))
    held = Scaler(JOB, CONTRACT, "reactive", "act").hold_without_metrics(silent, NOW + 60.0)
    assert (held.executors, held.codes) == (executors, ["hold", "no_metrics"])


@pytest.mark.parametrize("which", ["free", "bound"])
def test_decisions_and_what_they_weighed_are_made_again_bit_for_bit_of_what_they_name(lived, which):
    life, _ = lived[which]
    contracts = {life.scaler.contract.hash: life.scaler.contract}
    with_replay = [one for one in life.logged if "replay" in one["inputs"]]
    assert len(with_replay) == 60
    for one in with_replay:
        assert recompute_weighed(one["inputs"]["replay"]) == one["inputs"]["replay"]["weighed"]
        assert recompute_decision(one, contracts) == (one["executors"], one["reason"], one["codes"])
        assert one["inputs"]["replay"]["signals"]["operators"][JOB]["certain_rps"] in [
            row["certain_rps"] for row in one["inputs"]["replay"]["weighed"]["numbers"] if row["executors"] == 1
        ]  # fmt: skip


def test_what_runs_is_kept_as_long_as_its_schedule_asks_for_it():
    life = Life(CONTRACT.model_copy(update={"backpressure": BOUND}))
    life.lasts(5, rps=30.0, executors=3)
    life.lasts(60, lambda now: progress(now, executors=2, executors_soon=2), rps=30.0, executors=3)
    assert life.logged[-1]["executors"] == 3 and life.logged[-1]["reason"].endswith("; 2 kept for replays")
