"""What is known of a key's records and the sessions that they make, in plain Python.

A session is a maximal run of event times in which each is less than the gap after the one before; it spans
[first, last + gap), ms. Only facts with a net above 0 make sessions and are in one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Fact = tuple[int, tuple[Any, ...]]
"""Event time, ms, and values of a record."""
Span = tuple[int, int]
"""A session's begin, and its end, which is not in it, ms."""


class Member(NamedTuple):
    """What has come of a fact: its net, never 0, its newest ingestion time (ms), and whether any of it was live."""

    net: int
    t_i: int
    live: bool


class Move(NamedTuple):
    """Copies of a fact that go from a session (below 0) or come to one."""

    fact: Fact
    span: Span
    copies: int
    member: Member


Members = Mapping[Fact, Member]


def with_record(members: dict[Fact, Member], fact: Fact, mult: int, t_i: int, live: bool) -> None:
    """Add a record to the members, or take it out.

    Args:
        members: changed in place.
        fact: what it says.
        mult: +1 or -1.
        t_i: when it came, ms.
        live: whether it came live.

    Raises:
        ValueError: a value does not equal itself, so that nothing could take it out again.
    """
    if any(value != value for value in fact[1]):
        raise ValueError(f"NaN among the values {fact[1]} of a session: filter it out, or make it null, before")
    known = members.get(fact, Member(0, t_i, live))
    if known.net + mult:
        members[fact] = Member(known.net + mult, max(known.t_i, t_i), known.live or live)
    else:
        del members[fact]


def spans_of(members: Members, gap_ms: int) -> dict[Fact, Span]:
    """Return the session of each fact whose net is above 0."""
    there = sorted((fact for fact, known in members.items() if known.net > 0), key=lambda fact: fact[0])
    spans: dict[Fact, Span] = {}
    run: list[Fact] = []
    for fact in [*there, None]:
        if run and (fact is None or fact[0] >= run[-1][0] + gap_ms):
            spans |= dict.fromkeys(run, (run[0][0], run[-1][0] + gap_ms))
            run = []
        if fact is not None:
            run.append(fact)
    return spans


def moves(before: Members, after: Members, gap_ms: int) -> Iterator[Move]:
    """Yield what leaves its session, then what comes to one.

    Args:
        before: the members as they were.
        after: as they are.
        gap_ms: pause that ends a session.
    """
    old, new = spans_of(before, gap_ms), spans_of(after, gap_ms)
    going, coming = [], []
    for fact in {**old, **new}:
        here, there = old.get(fact), new.get(fact)
        had, has = before[fact].net if here else 0, after[fact].net if there else 0
        newest = after.get(fact, before.get(fact))
        assert newest is not None
        if here == there:
            had, has = max(had - has, 0), max(has - had, 0)
        if here and had:
            going.append(Move(fact, here, -had, newest))
        if there and has:
            coming.append(Move(fact, there, has, newest))
    yield from going
    yield from coming


def ends_of(members: Members, gap_ms: int) -> dict[Fact, int]:
    """Return from which watermark on nothing changes a fact any more: its session's end; for one in none, its own."""
    spans = spans_of(members, gap_ms)
    return {fact: spans[fact][1] if fact in spans else fact[0] + 1 for fact in members}
