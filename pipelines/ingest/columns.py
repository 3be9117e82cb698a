"""What the lake's tables hold: derived from the message classes, so that a new field needs no second place."""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any

from tidecast.messages import ContractText, Decision, Forecast, MetricSample, Outcome

KINDS: dict[str, type] = {
    "metrics": MetricSample, "forecasts": Forecast, "decisions": Decision, "outcomes": Outcome,
    "contracts": ContractText,
}  # fmt: skip
"""The message class of every topic that is ingested; the table has the topic's name."""

_SPARK = {
    "str": "string",
    "int": "bigint",
    "float": "double",
    "list[str]": "array<string>",
    "list[float]": "array<double>",
    "list[list[float]]": "array<array<double>>",
    "dict[str, Any]": "string",  # kept as JSON text: its keys differ from policy to policy
}


@dataclass(frozen=True)
class Column:
    """One field of a message as a column.

    Attributes:
        name: of the field and of the column.
        hint: its Python type, without `| None`.
        spark: its type in Spark's words.
        required: null is an error.
        default: stands where the field is missing; None where there is none.
        least: smallest value the message class allows, if it says one.
    """

    name: str
    hint: str
    spark: str
    required: bool
    default: Any
    least: float | None


def columns(kind: type) -> list[Column]:
    """The columns of a message class, in its order.

    Raises:
        TypeError: a field has a type that no column type is known for.
    """
    hints = typing.get_type_hints(kind)
    return [_column(kind, spec, hints[spec.name]) for spec in dataclasses.fields(kind)]


def _column(kind: type, spec: dataclasses.Field[Any], hint: Any) -> Column:
    optional = isinstance(hint, types.UnionType)
    if optional:
        hint = next(t for t in typing.get_args(hint) if t is not type(None))
    name = hint.__name__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint).replace("typing.", "")
    if name not in _SPARK:
        raise TypeError(f"{kind.__name__}.{spec.name}: {name} has no column type; known are {', '.join(_SPARK)}")
    default = None
    # A record without its schema version is refused, though a sender need not write it out.
    if spec.name != "schema" and spec.default not in (None, dataclasses.MISSING):
        default = spec.default
    elif spec.default_factory is not dataclasses.MISSING:
        default = "{}" if name.startswith("dict") else spec.default_factory()
    return Column(spec.name, name, _SPARK[name], not optional, default, spec.metadata.get("least"))
