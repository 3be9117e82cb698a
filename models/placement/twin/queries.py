"""Queries between topics, micro-batch by micro-batch: when each ends, and what a record takes to the results.

A query has told up to a moment of production when all it reads up to there is in what it wrote; so a record is in the
results once the last query on its way has told beyond it. Batches begin at multiples of the trigger, alike for all
queries as Spark's do, or when the one before has ended: what a query writes may wait for the next one's trigger, which
the sum of queries that know nothing of each other (`micro_batch`) has too long or too short.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from models.placement.graph import Floats, Integers

LEAST_S = 1e-9
"""Seconds of production that are none."""


class QueryGraph(NamedTuple):
    """Queries, upstream first, and the topics that they read.

    Attributes:
        overhead_s: (q,) of a batch beside its records.
        trigger_s: (q,) from trigger to trigger.
        most_s: (q,) that a batch's records take at most; what is left waits.
        first: (q + 1,) place of each query's first topic in the arrays below; those of a query lie together.
        tail: (t,) query that writes the topic; -1: it comes from outside.
        way_s: (t,) from when something was written until it can be read.
        busy: (t,) seconds that a query takes for what comes to one of its topics in a second, at its stated load.
        last: (q,) whether what it writes are results.
    """

    overhead_s: Floats
    trigger_s: Floats
    most_s: Floats
    first: Integers
    tail: Integers
    way_s: Floats
    busy: Floats
    last: Any


class FollowedBatches(NamedTuple):
    """Batches of queries, (q, b) arrays; where a query has fewer they are infinite.

    Attributes:
        end_s: seconds since the begin, rising.
        told_s: up to when what was produced is in what was written, never falling.
    """

    end_s: Floats
    told_s: Floats


def follow_queries(queries: QueryGraph, scale: Floats, longer: Floats) -> FollowedBatches:
    """Follow queries from empty topics on; each has the cores that it has, whatever others do.

    Args:
        queries: of a job.
        scale: (s,) load of each second, as a multiple of the stated one.
        longer: (q, b) factors by which batches take longer, in their order; the last one is that of all further ones.
    """
    most = int(np.ceil(len(scale) / queries.trigger_s.min())) + 1
    end_s, told = np.full((len(queries.trigger_s), most), np.inf), np.full((len(queries.trigger_s), most), np.inf)
    total = np.concatenate([[0.0], np.cumsum(scale)])
    _follow(queries, total, longer, end_s, told)
    produced = np.where(np.isfinite(told), np.interp(told, total, np.arange(len(total))), np.inf)
    return FollowedBatches(end_s, produced)


def path_latencies_s(queries: QueryGraph, batches: FollowedBatches, made_s: Floats) -> Floats:
    """Return how long records take from production to the last results that they are in; infinite if never.

    Args:
        queries: of the job.
        batches: as they were followed.
        made_s: (n,) moments of production, seconds since the begin.

    Returns:
        (n,) seconds.
    """
    done_s = np.zeros(len(made_s))
    for own in np.flatnonzero(queries.last):
        place = np.searchsorted(batches.told_s[own], made_s)
        done_s = np.maximum(done_s, np.append(batches.end_s[own], np.inf)[place])
    return done_s - made_s


@numba.njit(cache=True)
def _follow(queries: Any, total: Any, longer: Any, end_s: Any, told: Any) -> None:
    """Fill in the batches; `total`: (s + 1,) load before each second, by which production is counted here."""
    seconds, many = len(total) - 1, longer.shape[1]
    seen = np.zeros(len(queries.tail), np.int64)
    read, there = np.zeros(len(queries.tail)), np.zeros(len(queries.tail))
    for own in range(len(queries.trigger_s)):
        now, batch, trigger_s = 0.0, 0, queries.trigger_s[own]
        topics = range(queries.first[own], queries.first[own + 1])
        while now < seconds:
            work, came = 0.0, False
            for topic in topics:
                tail, until = queries.tail[topic], now - queries.way_s[topic]
                if tail < 0:
                    second = int(max(until, 0.0))
                    there[topic] = total[second] + (total[second + 1] - total[second]) * (max(until, 0.0) - second)
                else:
                    while seen[topic] < end_s.shape[1] and end_s[tail, seen[topic]] <= until:
                        there[topic] = told[tail, seen[topic]]
                        seen[topic] += 1
                work += queries.busy[topic] * (there[topic] - read[topic])
                came = came or there[topic] > read[topic] + LEAST_S
            next_s = (np.floor(now / trigger_s + 1e-9) + 1.0) * trigger_s
            if not came:
                now = next_s
                continue
            share, least = min(queries.most_s[own] / max(work, LEAST_S), 1.0), np.inf
            for topic in topics:
                read[topic] += share * (there[topic] - read[topic])
                least = min(least, read[topic])
            took_s = (queries.overhead_s[own] + share * work) * longer[own, min(batch, many - 1)]
            end_s[own, batch], told[own, batch] = now + took_s, least
            batch += 1
            now = max(next_s, now + took_s)
