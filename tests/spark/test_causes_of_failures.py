"""What has caused a query's end, where Spark's own words do not say it: of a state that a node may not write."""

import pytest
from pyspark.errors.exceptions.captured import convert_exception

from pipelines.scale.remedies import advice_on

pytestmark = pytest.mark.spark
DENIED = "/mnt/var/autoscaler/state/0/0/.8.changelog.tmp (Permission denied)"


def test_a_file_that_a_node_may_not_write_is_named_from_the_last_of_the_causes(spark):
    java = spark.sparkContext._jvm.java
    failure = java.io.FileNotFoundException(DENIED)
    for words in ("Failed to get the changelog writer", "An error occurred during loading state"):
        failure = java.lang.RuntimeException(words, failure)
    told = convert_exception(failure)
    assert DENIED not in str(told)
    advice = advice_on(told, lambda: "mv the checkpoint away")
    assert DENIED in advice and "as whom executors run" in advice and "mv the checkpoint" not in advice
