"""Signed, timed records and the relations they add up to: the net of all changes, in whatever order they came.

A relation is a signed multiset (Z-set) of facts (k, v, t_e); see Budiu et al., "DBSP: Automatic Incremental View
Maintenance for Rich Query Languages", PVLDB 16(7) (2023), section 3. A batch table is a relation whose records are all
insertions, an append-only stream has insertions only, a changelog has both signs. `t_i` orders arrival; it is not part
of a fact, so a replay of a stream is the same relation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

END_OF_TIME = (2**63 - 1) // 1000
"""Largest event time, ms since the epoch: what Spark's 64 bit microseconds hold; also Beam's largest timestamp."""

Origin = Literal["live", "replay"]
Fact = tuple[Any, Any, int]
"""(k, v, t_e): what a record says. Equality is Python's: 1, 1.0 and True are one value."""
Relation = Counter[Fact]
"""Net multiplicity per fact, never 0. Relations are equal when these are."""


class RelationError(ValueError):
    """A record, an operator or a plan that has no meaning; the message names it, its value and the remedy."""


@dataclass(frozen=True, slots=True)
class SignedRecord:
    """One insertion or retraction.

    Attributes:
        k: key, hashable and equal to itself (no NaN; inside tuples that is not looked for).
        v: value, likewise.
        t_e: event time, ms since the epoch; negative ones lie before 1970.
        t_i: ingestion time, ms since the epoch.
        mult: +1 inserts the fact (k, v, t_e), -1 retracts it. A retraction is of the same fact: it carries the t_e of
            what it retracts, not the time at which somebody noticed.
        origin: whether it came live or from a replay.
    """

    k: Hashable
    v: Hashable
    t_e: int
    t_i: int
    mult: int = 1
    origin: Origin = "live"

    def __post_init__(self) -> None:
        check_fact(self.k, self.v, self.t_e)
        if type(self.t_i) is not int:
            raise RelationError(f"ingestion time {self.t_i!r} of {self._name()}: give ms since the epoch as an int")
        if self.mult not in (-1, 1):
            raise RelationError(
                f"multiplicity {self.mult!r} of {self._name()}: give +1 (insertion) or -1 (retraction), and several"
                " records for several copies"
            )
        if self.origin not in ("live", "replay"):
            raise RelationError(f"origin {self.origin!r} of {self._name()}: give 'live' or 'replay'")

    @property
    def fact(self) -> Fact:
        """What the record says, whenever and however often it arrived."""
        return self.k, self.v, self.t_e

    def _name(self) -> str:
        return f"record (key {self.k!r}, value {self.v!r}, event time {self.t_e})"


class Tally(NamedTuple):
    """What has arrived of one fact, or is to be told of it.

    Attributes:
        net: sum of the multiplicities.
        t_i: newest ingestion time, ms.
        origin: "live" if any of it was live: what a live record had a part in is as urgent as the record.
    """

    net: int
    t_i: int
    origin: Origin

    def plus(self, other: Tally) -> Tally:
        """Add what has arrived besides."""
        return self.together(other, self.net + other.net)

    def times(self, other: Tally) -> Tally:
        """Multiply the nets, as a pair of a join takes them."""
        return self.together(other, self.net * other.net)

    def together(self, other: Tally, net: int) -> Tally:
        """Return this net with the newer of both arrivals, live if either is."""
        live = "live" in (self.origin, other.origin)
        return Tally(net, max(self.t_i, other.t_i), "live" if live else "replay")


Tallies = Mapping[Fact, Tally]
Change = tuple[Fact, Tally]
"""A fact and by how much its net changes."""


def check_fact(k: Any, v: Any, t_e: Any) -> Fact:
    """Return (k, v, t_e) if it can be a fact.

    Raises:
        RelationError: the time is no int or out of range, or key or value cannot be compared.
    """
    if type(t_e) is not int or abs(t_e) > END_OF_TIME:
        raise RelationError(
            f"event time {t_e!r} of key {k!r}: give ms since the epoch as an int within ±{END_OF_TIME}; drop or repair"
            " records that have none before they enter"
        )
    try:
        hash((k, v))
    except TypeError as error:
        raise RelationError(
            f"key {k!r} with value {v!r}: {error}; give tuples for lists, frozensets for sets and tuples of pairs for"
            " dicts"
        ) from None
    if k != k or v != v:
        raise RelationError(
            f"key {k!r} with value {v!r} at {t_e}: NaN does not equal itself, so no retraction would meet it; map it to"
            " None"
        )
    return k, v, t_e


def changes_of(records: Iterable[SignedRecord]) -> Iterator[Change]:
    """Yield each record as a change of its fact's net."""
    return ((record.fact, Tally(record.mult, record.t_i, record.origin)) for record in records)


def records_of(changes: Iterable[Change]) -> Iterator[SignedRecord]:
    """Yield changes as records: a net of ±n becomes n records."""
    for (k, v, t_e), tally in changes:
        sign = 1 if tally.net > 0 else -1
        for _ in range(abs(tally.net)):
            yield SignedRecord(k, v, t_e, tally.t_i, sign, tally.origin)


def merge(tallies: Tallies, changes: Iterable[Change]) -> dict[Fact, Tally]:
    """Return tallies with the changes added, in order of arrival; facts whose net is 0 are left out."""
    merged = dict(tallies)
    for fact, tally in changes:
        merged[fact] = merged[fact].plus(tally) if fact in merged else tally
        if merged[fact].net == 0:
            del merged[fact]
    return merged


def net(records: Iterable[SignedRecord]) -> Relation:
    """Return the relation that records add up to."""
    return relation((record.fact, record.mult) for record in records)


def relation(facts: Iterable[tuple[Fact, int]]) -> Relation:
    """Return the relation of facts with multiplicities, equal facts added up."""
    added: Relation = Counter()
    for fact, mult in facts:
        added[fact] += mult
    return Counter({fact: mult for fact, mult in added.items() if mult})
