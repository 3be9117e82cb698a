"""A session for small data."""

import pytest

SMALL = {
    "spark.sql.shuffle.partitions": "1",  # a task and a state store less per operator
    # Compiling takes longer than running.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


@pytest.fixture
def one_partition(spark):
    """The session, for queries of many operators on few records."""
    before = {name: spark.conf.get(name, None) for name in SMALL}
    for name, value in SMALL.items():
        spark.conf.set(name, value)
    yield spark
    for name, value in before.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)
