"""Columns of the lake's tables, derived from the fields of the message classes."""

from __future__ import annotations

from tidecast.fields import fields_of
from tidecast.messages import ContractText, Decision, Forecast, MetricSample, Outcome

KINDS: dict[str, type] = {
    "metrics": MetricSample, "forecasts": Forecast, "decisions": Decision, "outcomes": Outcome,
    "contracts": ContractText,
}  # fmt: skip
"""The message class of every topic that is ingested; the table has the topic's name."""

PLACE = {
    "event_hour": ("string", "of the row's own `time`, `2014-10-22T04`, UTC"),
    "ingest_partition": ("string", "name of the ingest that stored it; one of the same name replaces its rows"),
    "kafka_partition": ("int", "of the topic"),
    "kafka_offset": ("bigint", "where the record lay there"),
}
"""Columns that every such table has beyond those of its class: type, and what it says."""

QUARANTINED = {
    "topic": ("string", "whose record was refused"),
    **{name: PLACE[name] for name in ("ingest_partition", "kafka_partition", "kafka_offset")},
    "kafka_key": ("string", "the record's key"),
    "raw": ("binary", "its value, the bytes as they came"),
    "reasons": ("array<string>", "the rules that it broke"),
}
"""Columns of the table of refused records, likewise."""

_SPARK = {
    "str": "string",
    "int": "bigint",
    "float": "double",
    "list[str]": "array<string>",
    "list[float]": "array<double>",
    "list[list[float]]": "array<array<double>>",
    "dict[str, Any]": "string",  # kept as JSON text: its keys differ from policy to policy
}


def spark_columns(kind: type) -> dict[str, str]:
    """Map every field of a message class to Spark's column type (DDL), in the order of the fields.

    Raises:
        TypeError: a field has a type that no column type is known for.
    """
    return {one.name: _spark(f"{kind.__name__}.{one.name}", one.kind) for one in fields_of(kind)}


def _spark(where: str, hint: object) -> str:
    name = hint.__name__ if type(hint) is type else str(hint).replace("typing.", "")
    if name not in _SPARK:
        raise TypeError(f"{where}: {name} has no column type; known are {', '.join(_SPARK)}")
    return _SPARK[name]
