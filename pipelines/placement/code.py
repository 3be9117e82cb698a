"""What a topology's operators do: functions of DataFrames, in a module that the topology names."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from configs.errors import SettingsError
from configs.topology import Topology
from models.placement.rates import operators_in_order
from pipelines.jobs.chains.served import served

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Operator = Callable[..., "DataFrame"]
"""From the records of each source and operator of `of`, in its order, to those that the operator makes."""


class JobCode(NamedTuple):
    """The code of a job.

    Attributes:
        sources: columns of each source's records, as DDL.
        operators: by name.
    """

    sources: Mapping[str, str]
    operators: dict[str, Operator]


def load_code(topology: Topology) -> JobCode:
    """Import the module that a topology names, and return what it says of the topology's sources and operators.

    Those that the topology says are `served` also wait.

    Raises:
        SettingsError: the topology names none, it cannot be imported or fails then, or it lacks a source or an
            operator.
    """
    if topology.code is None:
        raise SettingsError(f"{topology.name}.yaml names no code: state `code: a.module` with SOURCES and OPERATORS.")
    try:
        module = importlib.import_module(topology.code)
    except ImportError as error:
        raise SettingsError(f"{topology.name}.yaml: code={topology.code!r} cannot be imported: {error}.") from None
    except Exception as error:  # of the module itself: a slip in it, or what it does when it is imported
        raise SettingsError(
            f"{topology.name}.yaml: code={topology.code!r} fails when it is imported: {_told(error)}. Correct it there."
        ) from error
    code = JobCode(getattr(module, "SOURCES", {}), dict(getattr(module, "OPERATORS", {})))
    for what, names, known in (
        ("SOURCES", topology.sources, code.sources), ("OPERATORS", topology.operators, code.operators),
    ):  # fmt: skip
        if missing := [name for name in names if name not in known]:
            raise SettingsError(
                f"{topology.name}.yaml: {topology.code}.{what} has no {missing[0]!r}; it has {list(known)}. Add it."
            )
    for name, one in topology.operators.items():
        if one.served:
            code.operators[name] = served(code.operators[name], one.work_ms)
    return code


def _told(error: Exception) -> str:
    """An error with where it was raised; of a syntax error its own words say that."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    where = "" if isinstance(error, SyntaxError) else f" ({at.filename}, line {at.lineno})"
    return f"{type(error).__name__}: {error}{where}"


def record_schemas(spark: SparkSession, topology: Topology, code: JobCode) -> dict[str, StructType]:
    """Return the columns of every source's and operator's records, found by running the code on no records.

    Raises:
        SettingsError: an operator's function fails.
    """
    frames = {name: spark.createDataFrame([], code.sources[name]) for name in topology.sources}
    for own in operators_in_order(topology):
        try:
            frames[own] = code.operators[own](*(frames[other] for other in topology.operators[own].of))
        except Exception as error:
            raise SettingsError(f"{topology.code}: operator {own!r} fails on no records: {error}") from error
    return {name: frame.schema for name, frame in frames.items()}
