"""A placement on two real clusters for two minutes: its latency at the stated rate, and what it can do at most."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from configs.settings import Settings
from models.placement.plan.followed import followed_quantile_s
from models.placement.plan.measured import Measure, Placement, full_batch_s, greatest_factor
from models.placement.rates import rates_of
from pipelines.bench.placement.real.cases import FED
from pipelines.bench.placement.real.followed import CountResult, counted_rate, record_latencies
from pipelines.jobs.chains.feed import ChainFeed
from pipelines.jobs.chains.truth import newest_counts, read_count, true_counts, wrong_keys
from pipelines.jobs.chains.windowed import end_of
from pipelines.kafka.committed import read_committed
from pipelines.placement.observed import observe_job
from pipelines.placement.tried import TrialError, TriedJob, tried_job

WARM_S, MEASURED_S, REACHED_S = 45.0, 40.0, 12.0
"""Seconds: before anything is measured; whose records are measured; within which these have to be in the results, at
least."""
LONGER = 1.5
"""Multiple of the latency that the model tells within which measured records have to be in the results."""
BATCHES = 4
"""Full batches for which the highest load is measured, once those of all queries are full."""
BEYOND = 2.0
"""Multiple of what a placement can take by the model, to which the load rises."""
KEPT_UP = 0.9
"""Share of the offered rate that has to come through where a placement is said to have kept up with it."""


class ResultsSeen(NamedTuple):
    """What one operator's results tell.

    Attributes:
        latency: of each measured record at each key at which it counts, seconds.
        most_rps: of the source's records that came to count at the highest load.
        wrong: keys of whole windows whose counts are not what the records come to.
        keys: that were looked at.
    """

    latency: np.ndarray
    most_rps: float
    wrong: int
    keys: int


def run_placement(settings: Settings, file: Path, placement: Placement, seed: int) -> dict[str, Any]:
    """Run a placement, and return what it came to.

    Args:
        settings: of a namespace of its own, with a broker; its topics are this session's alone.
        file: the topology.
        placement: of its operators.
        seed: of the records.

    Returns:
        `placement`; `p50_s` and `p95_s` of the records' latency from production to results, of the slowest results
        (None: as many never came to one), `said_s` by the model, `followed_s` by the twin (None: never); `most_rps`,
        what came through at the highest load, of the slowest results, `kept_up`, whether that was all that was
        offered, and `said_rps`; `cores`, that tasks kept busy, and `said_cores`, both by query; `wrong` of `keys`
        results; `lost`, counts that never came; `records` sent, at `offered_rps` at first.

    Raises:
        StackError, ProcessError, PortError, JavaError: a cluster does not start.
        TrialError: a query does not begin, or began again meanwhile.
        BrokerError: a record was not taken, or the broker does not answer.
    """
    told = list[str]()
    with tried_job(settings, file, placement, told.append) as job:
        topology, begun = job.folder.topology(), len(told)
        ((source, offered),) = ((name, one.rps) for name, one in topology.sources.items())
        most, fed = greatest_factor(topology, placement), FED[source]
        reached_s = max(REACHED_S, LONGER * placement.latency_s)
        full_s, queries = full_batch_s(topology), len(placement.blocks)
        with ChainFeed(job.settings.kafka, source, fed.draw, offered, seed) as feed:
            job.watch(feed, WARM_S)
            since = time.time()
            job.watch(feed, MEASURED_S + reached_s)
            observed, _ = observe_job(job.settings, job.folder, MEASURED_S + reached_s)
            surge, feed.rps = time.time(), BEYOND * most * offered
            job.watch(feed, (queries + BATCHES) * full_s)
            end = time.time()
            sent = feed.end()
        if told[begun:]:
            raise TrialError(f"{file.stem}: not measured, as a query began again: {told[begun]}")
        highest = surge, surge + queries * full_s, end
        seen = [
            _seen(job, name, sent, keys_of, (since, since + MEASURED_S), highest, reached_s)
            for name, keys_of in fed.keys_of.items() if name in topology.operators
        ]  # fmt: skip
    quantiles = [max(float(np.quantile(one.latency, level, method="higher")) for one in seen) for level in (0.5, 0.95)]
    p50_s, p95_s = (value if np.isfinite(value) else None for value in quantiles)
    most_rps = min(one.most_rps for one in seen)
    followed_s = followed_quantile_s(Measure(topology, rates_of(topology)), placement)
    return {
        "placement": asdict(placement), "records": len(sent), "offered_rps": offered,
        "lost": int(sum(np.isinf(one.latency).sum() for one in seen)),
        "p50_s": p50_s, "p95_s": p95_s, "said_s": placement.latency_s,
        "followed_s": followed_s if np.isfinite(followed_s) else None,
        "most_rps": most_rps, "said_rps": most * offered, "kept_up": most_rps >= KEPT_UP * BEYOND * most * offered,
        "cores": [one.cores for one in observed], "said_cores": [one.block.load for one in observed],
        "wrong": sum(one.wrong for one in seen), "keys": sum(one.keys for one in seen),
    }  # fmt: skip


def _seen(
    job: TriedJob, name: str, sent: list[Any], keys_of: Callable[[Any], Sequence[str]],
    measured: tuple[float, float], highest: tuple[float, float, float], reached_s: float,
) -> ResultsSeen:  # fmt: skip
    topic = f"{job.folder.topology().name}.{name}"
    told = [(one.at_s, *read_count(one.key, one.value)) for one in read_committed(job.settings.kafka, topic)]
    results = [CountResult(at_s, key, n) for at_s, key, n, _ in told]
    keys = [(one.at, keys_of(one)) for one in sent]
    latency = np.array(record_latencies(keys, results, *measured))
    counted = counted_rate(results, *highest[1:]) or 0.0
    per_record = sum(len(names) for _, names in keys) / len(keys)

    def whole(counts: Any) -> dict[str, tuple[int, int]]:
        """Windows whose records had time to count before the load rose."""
        return {key: one for key, one in counts.items() if end_of(key) + reached_s <= highest[0]}

    true = whole(true_counts(sent, keys_of))
    wrong = wrong_keys(whole(newest_counts((key, n, total) for _, key, n, total in told)), true)
    return ResultsSeen(latency, counted / per_record, len(wrong), len(true))
