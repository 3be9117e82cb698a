"""How sure the learned batch time is, and that admission goes by it."""

import json
import math

import numpy as np
import pytest

from configs.contract import Contract
from models.contract.controller import close_interval
from models.contract.signals import OperatorReading
from models.contract.state import begin
from models.policy.core.batch_time import BatchTime, learn_from_batch
from models.policy.core.rate_spread import FIRST_SCATTER, add_surprise, slot_quantile, time_factor
from models.policy.core.sustained import admission_reading
from models.policy.live.memory import Memory, fresh, with_batch, with_interval
from tests.fakes.shared_job import queue_signals, shared_plan, shared_terms

KNOWN = BatchTime.guess(1.0, 0.01)


def test_one_surprise_by_hand():
    assert add_surprise(0.04, KNOWN, 100, 1, 2 * math.exp(0.5)) == pytest.approx(0.95 * 0.04 + 0.05 * 0.25)
    assert add_surprise(0.04, KNOWN, 100, 1, 2 * math.exp(9)) == pytest.approx(0.95 * 0.04 + 0.05)  # one pause is one
    assert [add_surprise(0.04, KNOWN, *none) for none in ((0, 1, 1.0), (1, 0, 1.0), (1, 1, 0.0))] == [0.04] * 3


def test_quantiles_by_hand():
    assert slot_quantile(KNOWN, 0.04, 0.05) == pytest.approx(100 * math.exp(-2.45 * 0.2))
    assert slot_quantile(KNOWN, 0.04, 0.95) == pytest.approx(100 * math.exp(4.5 * 0.2))
    assert slot_quantile(KNOWN, 0.04, 0.5) == pytest.approx(100) == slot_quantile(KNOWN, 0.0, 0.05)
    assert time_factor(0.04, 0.95) == pytest.approx(math.exp(1.23 * 0.2)) == pytest.approx(1 / time_factor(0.04, 0.05))


def test_the_spread_follows_the_noise_of_the_batches():
    chance, found = np.random.default_rng(3), []
    for noise in (0.05, 0.3):
        known, scatter = KNOWN, FIRST_SCATTER
        for rows in chance.uniform(20, 400, 200):
            took = (1.0 + 0.01 * rows) * math.exp(noise * chance.standard_normal())
            scatter, known = add_surprise(scatter, known, rows, 1, took), learn_from_batch(known, rows, 1, took)
        found.append(math.sqrt(scatter))
    assert found == [pytest.approx(0.05, rel=0.4), pytest.approx(0.3, rel=0.4)]


def samples():
    yield {
        "executors": 2, "arrival_rps": 50.0, "wall_time": 10.0, "span_s": 1.0, "time_scale": 1.0, "lag_records": 0,
        "task_ceiling": 8, "time": 0.0, "mode": "act",
    }  # fmt: skip
    for at in range(30):
        yield {"batch_rows": 100 + at, "batch_s": 1.2 + at % 3, "executors": 2, "wall_time": 12.0 + 2 * at}


def test_the_memory_keeps_it_and_what_it_learned_of_the_batches_is_the_same_as_without():
    contract = Contract(job="a")
    first, *batches = samples()
    memory = with_interval(fresh(contract), first)
    known, scatter = memory.model, FIRST_SCATTER
    for batch in batches:
        memory = with_batch(memory, batch, contract)
        scatter = add_surprise(scatter, known, batch["batch_rows"], 2.0, batch["batch_s"])
        known = learn_from_batch(known, batch["batch_rows"], 2.0, batch["batch_s"])
    assert memory.model == known and memory.scatter == scatter != FIRST_SCATTER
    kept = json.loads(memory.to_json())
    assert Memory.from_json(json.dumps(kept)).scatter == scatter
    del kept["scatter"]  # a state of a release that knew none
    assert Memory.from_json(json.dumps(kept)).scatter == FIRST_SCATTER


def test_admission_goes_by_the_estimate_that_scaling_learned():
    """Two executors of two cores and three tasks: two waves, 1.5 tasks at once, and half of that for each executor."""
    contract = Contract(job="a", executors={"cores": 2})
    told = admission_reading(contract, KNOWN, 0.04, executors=2, tasks=3)
    assert told == OperatorReading(certain_rps=pytest.approx(3 / 2 * slot_quantile(KNOWN, 0.04, 0.05)))
    terms, plan = shared_terms(), shared_plan()
    state = begin(terms, plan, 1e9)
    closed = close_interval(terms, plan, state, queue_signals(1, 300.0, 0.0, operators={"map": told}))
    learned = closed.state.operators["map"]
    assert learned.certain_rps == told.certain_rps and learned.rate == state.operators["map"].rate
    unread = close_interval(terms, plan, closed.state, queue_signals(2, 300.0, 0.0, operators={}))
    assert unread.state.operators["map"].certain_rps == told.certain_rps
    own = close_interval(terms, plan, state, queue_signals(1, 300.0, 0.0)).state.operators["map"]
    assert own.told_rps is None and own.certain_rps == own.rate.quantile(0.05)


def test_two_executors_of_which_one_would_find_no_task_are_worth_one():
    contract = Contract(job="a", executors={"cores": 4})
    alone, both = (admission_reading(contract, KNOWN, 0.0, n, 4).certain_rps for n in (1, 2))
    assert alone == pytest.approx(400) and 2 * both == pytest.approx(alone)
