"""A session for small data."""

import pytest

NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"


@pytest.fixture
def one_partition(spark):
    """The session, whose shuffles have one partition, without a last micro-batch that has no records."""
    spark.conf.set(NO_DATA, "false")
    yield spark
    spark.conf.unset(NO_DATA)
