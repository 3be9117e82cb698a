"""Signed records in short, and operators driven by hand."""

from __future__ import annotations

from models.relation.operators import Operator
from models.relation.records import Relation, SignedRecord, relation
from models.relation.windows import Span, WindowedKey


def plus(k: object, v: object, t_e: int, t_i: int = 0) -> SignedRecord:
    return SignedRecord(k, v, t_e, t_i)


def minus(k: object, v: object, t_e: int, t_i: int = 0) -> SignedRecord:
    return SignedRecord(k, v, t_e, t_i, -1)


def within(start: int, end: int, key: object) -> WindowedKey:
    return WindowedKey(Span(start, end), key)


def table(*facts: tuple) -> Relation:
    """Each fact (k, v, t_e) once per mention."""
    return relation((fact, 1) for fact in facts)


class Driven:
    """An operator with its state, for tests that go step by step."""

    def __init__(self, operator: Operator):
        self.operator, self.state = operator, operator.start()

    def take(self, *batches: list[SignedRecord], watermark: float = float("-inf")) -> list[tuple]:
        """What a micro-batch makes it emit, as (sign, k, v, t_e)."""
        inputs = batches or ([],) * (self.operator.arity or 1)
        self.state, emitted = self.operator.step(self.state, inputs, watermark)
        return [(record.mult, *record.fact) for record in emitted]
