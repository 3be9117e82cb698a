"""The same log through the autoscaler's query on one and on several partitions: the same decisions, in order."""

import pytest

from pipelines.bench.fleet.partitions import NO_DATA, compare_partitions

pytestmark = pytest.mark.spark


def test_decisions_of_a_log_are_the_same_on_more_partitions(spark, tmp_path):
    kept = ("spark.sql.shuffle.partitions", NO_DATA)
    before = [spark.conf.get(name) for name in kept]
    found = compare_partitions(spark, tmp_path, (1, 3), jobs=5, rounds=3, warm=1)
    assert found["decisions"] >= 10 and (found["jobs"], found["rounds"]) == (5, 3)
    assert (found["differ"], found["differ_alone"]) == (0, 0)
    assert min(found["cpu_ms"].values()) > 0 and set(found["cpu_ms"]) == {"1", "3"}
    assert [spark.conf.get(name) for name in kept] == before
