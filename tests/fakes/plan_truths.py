"""Signed events as a producer sends them, and what each of the shipped plans has to make of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from models.relation.aggregates import Aggregate
from models.relation.join import Join
from models.relation.linear import Map, Rekey, tumbling
from models.relation.ordered import Quantile, TopN
from models.relation.records import Relation, relation
from models.relation.reducers import Count, RowOf, Sum
from models.relation.sessions import SessionWindow
from pipelines.jobs.plans import best_keys, corrected_join, key_estimates, key_sessions
from pipelines.jobs.windows import WINDOW_MS, result_key

Results = dict[str, dict[str, Any]]
"""Columns by name of each result, by the key of its record."""


class SignedEvent(NamedTuple):
    """One event or its retraction: sequence number, event time (epoch ms), key, and 1 or -1."""

    seq: int
    t_e: int
    key: str
    sign: int = 1


def encode_signed(event: SignedEvent) -> bytes:
    fields = {"seq": event.seq, "time": event.t_e / 1000, "key": event.key}
    return json.dumps(fields | ({"sign": -1} if event.sign < 0 else {}), separators=(",", ":")).encode()


def results_of(records: Iterable[tuple[str, str | bytes | None]], job: str) -> Results:
    """What records (key and value) of the topic `windows`, in order, come to for a job; empty ones take away."""
    newest = {key: value for key, value in records if key.startswith(f"{job}:")}
    return {key: json.loads(value) for key, value in newest.items() if value}


def relation_of(events: Iterable[SignedEvent]) -> Relation:
    """What signed events add up to: (key, seq, event time) and its net."""
    return relation(((event.key, event.seq, event.t_e), event.sign) for event in events)


def named(job: str, results: Relation, names: Sequence[str]) -> Results:
    """The reference's results, under windowed keys and with tuples as values, in the same form."""
    return {
        result_key(job, str(k.key), *k.window): dict(zip(names, v, strict=True)) for (k, v, _) in results
    }  # fmt: skip


def true_totals(events: Iterable[SignedEvent]) -> dict[tuple[str, int], tuple[int, int]]:
    """What the table of `key_totals` has to come to: (n, seq_sum) by key and begin of the window, epoch ms."""
    sums: Counter[tuple[str, int]] = Counter()
    counts: Counter[tuple[str, int]] = Counter()
    for seq, t_e, key, sign in events:
        group = key, t_e // WINDOW_MS * WINDOW_MS
        counts[group] += sign
        sums[group] += sign * seq
    return {group: (n, sums[group]) for group, n in counts.items() if n > 0}


def true_differents(events: Iterable[SignedEvent]) -> dict[str, int]:
    """How many different sequence numbers stand for `key_estimates`, by the key of the result's record."""
    nets = Counter[tuple[str, int, int]]()
    for seq, t_e, key, sign in events:
        nets[key, t_e // WINDOW_MS * WINDOW_MS, seq] += sign
    job = key_estimates.JOB
    return Counter(result_key(job, key, begin, begin + WINDOW_MS) for (key, begin, _), net in nets.items() if net > 0)


def true_sessions(events: Iterable[SignedEvent]) -> Results:
    sessions = SessionWindow(key_sessions.GAP_MS).apply(relation_of(events))
    made = Aggregate(RowOf((Count(), Sum(), Quantile(0.5)))).apply(sessions)
    return named(key_sessions.JOB, made, ("n", "seq_sum", "median"))


def true_best(events: Iterable[SignedEvent]) -> Results:
    counts = Aggregate(Count()).apply(tumbling(best_keys.WINDOW_MS).apply(relation_of(events)))
    ranked = Map(lambda k, v, t_e: (v, k.key)).apply(counts)
    days = tumbling(best_keys.DAY_MS).apply(Rekey(lambda k, v, t_e: "").apply(ranked))
    many = {k: v for (k, v, _) in Aggregate(Count()).apply(days)}
    found: Results = {}
    for k, v, _ in Aggregate(TopN(best_keys.BEST)).apply(days):
        best = [{"n": n, "key": key} for n, key in v]
        found[result_key(best_keys.JOB, "", *k.window)] = {"windows": many[k], "best": best}
    return found


def true_pairs(events: Iterable[SignedEvent], replies: Iterable[SignedEvent]) -> Results:
    """What `corrected_join` has to come to."""
    pairs = Join(corrected_join.BOUND_MS).apply(relation_of(events), relation_of(replies))
    sums: dict[str, Counter[str]] = {}
    for (k, (seq, reply), _), net in tumbling(corrected_join.WINDOW_MS).apply(pairs).items():
        known = sums.setdefault(result_key(corrected_join.JOB, k.key, *k.window), Counter())
        known.update({"n": net, "seq_sum": net * seq, "reply_sum": net * reply})
    return {key: dict(known) for key, known in sums.items() if known["n"] > 0}
