"""Instances of the stages of a graph: worked examples beside the printed formula, and what holds of random graphs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.contract.queueing import micro_batch
from models.placement.elastic.demand import CATCH_UP_S, ScaledStage, needs_of
from models.policy.core.batch_time import BatchTime, learn_from_batch
from models.policy.core.capacity import Capacity, speed_table

CHAIN = {"b": {"a": 1.0}, "c": {"b": 1.0}}
RATES = {"a": (400, 0.6), "b": (250, 2), "c": (700, 0.1)}
"""Records/s of an instance, and records that it makes of one."""


def instances(found):
    return [one.instances for one in found.values()]


def printed(running, source_rps):
    """The formula as it is printed, the load on the source: what is before a stage sends what it sends now."""
    sent, found = source_rps, []
    for (capacity, selectivity), many in zip(RATES.values(), running, strict=True):
        found.append(math.ceil(sent / capacity))
        sent = many * capacity * selectivity
    return found


def test_the_printed_formula_starves_what_comes_after():
    assert printed((2, 2, 2), 1500.0) == [4, 2, 2]
    found = needs_of({name: ScaledStage(*one) for name, one in RATES.items()}, CHAIN, {"a": 1500.0})
    assert instances(found) == [4, 4, 3] and found["b"].rps > 2 * RATES["b"][0]
    assert printed((4, 4, 3), 1500.0) == [4, 4, 3]  # only where there are enough already it says so


def test_one_stage_by_hand():
    def alone(capacity_rps, rps, **more):
        return needs_of({"a": ScaledStage(capacity_rps, **more)}, {}, {"a": rps})["a"]

    assert alone(300, 500.0).instances == 2
    assert (alone(0.4, 2.0).instances, alone(math.ceil(0.4), 2.0).instances) == (5, 2)  # rates are not rounded
    useful, by_the_clock = 1200 / 24, 1200 / 60  # 24 s of a window of 60 s were useful
    assert (alone(useful, 180.0).instances, alone(by_the_clock, 180.0).instances) == (4, 9)
    assert alone(300, 500.0, most=1) == (500.0, 2, 1) and alone(300, 500.0, least=5) == (500.0, 2, 5)
    assert alone(300, 500.0, most=1, offloaded=True).instances == 2
    assert alone(300, 0.0) == (0.0, 1, 1) and alone(100, 100.0, lag=30_000).rps == 200.0


def test_the_capacity_of_an_instance_is_learned_from_batches_by_hand():
    """2.5 s, 6.5 s and 6.5 s are 0.5 s and 2 ms a record; 1,000 records of the first by its time would be 400/s."""
    for guess, apart in ((BatchTime.guess(0.5, 0.002), 1e-12), (BatchTime.guess(1.0, 0.005), 0.05)):
        known = guess
        for _ in range(300):
            for rows, slots, took_s in ((1000, 1, 2.5), (3000, 1, 6.5), (6000, 2, 6.5)):
                known = learn_from_batch(known, rows, slots, took_s)
        assert (known.overhead_s, known.per_record_s) == pytest.approx((0.5, 0.002), rel=apart)
    capacity = Capacity(speed_table(8, 1, 64)[None], np.array([0.5]), np.array([0.002]), 2.5)
    assert capacity.per_slot_rps == pytest.approx(500 * 0.8)  # u = 1 - 0.5 / 2.5
    assert capacity.executors_for(np.array([1500.0]), np.ones(1), np.full(1, 8.0))[0].tolist() == [4]
    assert needs_of({"a": ScaledStage(500)}, {}, {"a": 1500.0}, 0.8)["a"].instances == 4


def test_back_to_back_batches_by_hand():
    batches = {count: micro_batch(1500, count * 500, 0.5, 0.001) for count in (3, 4, 5)}
    assert batches[4].batch_s == pytest.approx(2.0) and batches[5].batch_s == pytest.approx(1.25)
    assert not batches[3].stable and batches[4].stable
    assert batches[4].quantile_s(0.95) == pytest.approx(3.9)


def drawn(seed):
    """Stages in a random acyclic graph, the shares that each takes of those before it, and records/s from outside."""
    random = np.random.default_rng(seed)
    names = [f"s{number}" for number in range(random.integers(2, 7))]
    stages = {}
    for name in names:
        least = int(random.integers(1, 3))
        stages[name] = ScaledStage(
            float(random.uniform(1, 500)), float(random.uniform(0.1, 3)), least, least + int(random.integers(0, 40)),
            float(random.choice([0.0, random.uniform(0, 1e5)])),
        )  # fmt: skip
    taken = {
        name: {other: float(random.choice([1.0, random.random()])) for other in names[:at] if random.random() < 0.5}
        for at, name in enumerate(names)
    }
    outside = {name: float(random.uniform(0, 2000)) for name in names if not taken[name]}
    return stages, taken, outside, float(random.uniform(0.3, 1))


@settings(max_examples=150)
@given(st.integers(0, 2**32 - 1), st.floats(1, 4))
def test_of_random_graphs(seed, more):
    stages, taken, outside, utilisation = drawn(seed)
    found = needs_of(stages, taken, outside, utilisation)
    for name, (rps, needed, many) in found.items():
        one, able = stages[name], stages[name].capacity_rps * utilisation
        assert one.least <= many <= one.most
        came = sum(
            share * stages[other].selectivity * min(
                found[other].rps, stages[other].capacity_rps * stages[other].most
                if found[other].needed > stages[other].most else math.inf,
            ) for other, share in taken[name].items()
        )  # fmt: skip
        assert rps == pytest.approx(outside.get(name, 0.0) + came + one.lag / CATCH_UP_S)
        if one.least <= needed <= one.most and many > 1:
            assert able * (many - 1) < rps * (1 + 1e-6) and rps <= able * many * (1 + 1e-6)

    def at_least_as_many(other):
        return all(other[name].instances >= found[name].instances for name in found)

    def changed(name, **fields):
        return {**stages, name: stages[name]._replace(**fields)}

    assert at_least_as_many(needs_of(stages, taken, {name: more * rps for name, rps in outside.items()}, utilisation))
    assert at_least_as_many(needs_of(stages, taken, outside, utilisation / more))
    for name, one in stages.items():
        assert at_least_as_many(needs_of(changed(name, lag=one.lag + 1e4 * (more - 1)), taken, outside, utilisation))
        assert at_least_as_many(
            needs_of(changed(name, selectivity=one.selectivity * more), taken, outside, utilisation)
        )
        faster = needs_of(changed(name, capacity_rps=one.capacity_rps * more), taken, outside, utilisation)
        assert faster[name].instances <= found[name].instances
    still = {name: one._replace(lag=0.0) for name, one in stages.items()}
    twice = {name: one._replace(capacity_rps=4 * one.capacity_rps) for name, one in still.items()}
    quadrupled = needs_of(twice, taken, {name: 4 * rps for name, rps in outside.items()}, utilisation)
    assert instances(quadrupled) == instances(needs_of(still, taken, outside, utilisation))
