"""A job's decisions are made of its own records alone, whoever is decided beside it and in whatever order."""

import random

from pipelines.bench.fleet.jobs import contract_of
from pipelines.scale.processor import Scaler
from pipelines.scale.stateful import step_from
from tests.unit.policy.test_processor import NOW, metric, row

JOBS, STEPS = 6, 12


def records(number, at):
    job, rate = contract_of(number).job, 50.0 * (number + 1) + 20.0 * at
    seconds = [metric(job=job, time=at + i, wall_time=NOW + at + i, arrival_rps=rate + i, executors=2) for i in (0, 1)]
    batch = metric(
        job=job, kind="batch", time=at + 0.5, wall_time=NOW + at + 1.5, batch_id=at, batch_rows=int(2 * rate),
        batch_s=0.9, executors=2, latency_max_s=1.5,
    )  # fmt: skip
    return [row("metrics", one) for one in (*seconds, batch)]


def decided(partitions, seed):
    """What is sent for each job, and its memory, where jobs lie on partitions that are gone through in any order."""
    order, kept, sent = random.Random(seed), {}, {number: [] for number in range(JOBS)}
    for at in range(0, 2 * STEPS, 2):
        for partition in order.sample(range(partitions), partitions):
            for number in order.sample(range(partition, JOBS, partitions), len(range(partition, JOBS, partitions))):
                rows = order.sample(records(number, at), 3)
                scaler = Scaler(contract_of(number).job, contract_of(number), "mpc", "act")
                done = step_from(scaler, kept.get(number), rows, NOW + at + 2, NOW + at + 2)
                kept[number] = done.kept
                sent[number] += done.sent
    return sent, kept


def test_decisions_are_the_same_whatever_the_number_of_partitions():
    sent, kept = decided(1, seed=1)
    assert all(any(topic == "decisions" for topic, _, _ in told) for told in sent.values())
    for partitions, seed in ((1, 2), (2, 3), (3, 4), (6, 5)):
        assert decided(partitions, seed) == (sent, kept)
