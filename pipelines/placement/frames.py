"""A block's operators as one DataFrame, from the topics that it reads to the records that it writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from configs.topology import Topology
from models.placement.plan.applications import BlockApplication
from pipelines.placement.code import JobCode
from tidecast.spark.progress import COUNTED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

KEY = "key"
"""Column by which an operator's records are spread over the partitions of a topic, where it has such a column."""
_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}  # fmt: skip
"""Times as they are written; to read them Spark needs no format, and takes any number of digits without one."""


def block_frame(
    block: BlockApplication, topology: Topology, code: JobCode, schemas: Mapping[str, StructType],
    read: Callable[[str], DataFrame],
) -> DataFrame:  # fmt: skip
    """Return what a block writes: columns topic, key (text, may be null) and value (JSON).

    Args:
        block: with its operators, in their order.
        topology: of the job.
        code: of its operators.
        schemas: columns of every source's and operator's records.
        read: from a topic to a DataFrame of Kafka's columns.
    """
    frames = {name: counted(decoded(read(topic), schemas[name]), name) for name, topic in block.reads.items()}
    for own in block.operators:
        frames[own] = counted(code.operators[own](*(frames[other] for other in topology.operators[own].of)), own)
    return reduce(lambda one, other: one.unionByName(other), [
        encoded(frames[own], topic) for own, topic in block.writes.items()
    ])  # fmt: skip


def decoded(records: DataFrame, schema: StructType) -> DataFrame:
    """Return the records of a topic by their columns; values that are no JSON of these are columns of nulls."""
    from pyspark.sql import functions as F

    parsed = F.from_json(F.col("value").cast("string"), schema)
    return records.select(parsed.alias("record")).select("record.*")


def counted(records: DataFrame, name: str) -> DataFrame:
    """Return records whose number is in the progress of each batch, under the name of who makes them."""
    from pyspark.sql import functions as F

    return records.observe(f"{COUNTED}{name}", F.count(F.lit(1)).alias("n"))


def encoded(records: DataFrame, topic: str) -> DataFrame:
    """Return records as they are written to a topic."""
    from pyspark.sql import functions as F

    key = F.col(KEY).cast("string") if KEY in records.columns else F.lit(None).cast("string")
    value = F.to_json(F.struct("*"), _TIMES)
    return records.select(F.lit(topic).alias("topic"), key.alias("key"), value.alias("value"))
