"""How a managed job ends: agent, query and session in this order, and in words why it failed."""

from types import SimpleNamespace

import pytest

from pipelines.jobs.running import finish_query

LOG = SimpleNamespace(job="orders", totals={"batches": 7, "rows": 900, "late": 0})


@pytest.mark.parametrize("failure", [None, RuntimeError("the table is gone")])
def test_a_query_that_failed_is_told_by_its_job_and_how_far_it_came(capsys, failure):
    ended = []
    agent, query, spark = (
        SimpleNamespace(stop=lambda name=name: ended.append(name), exception=lambda: failure)
        for name in ("agent", "query", "spark")
    )
    assert finish_query(spark, query, agent, LOG) == int(failure is not None)
    assert ended == ["agent", "query", "spark"]
    told = "orders: its query has failed after 7 batches with 900 records. Started again it goes on from its checkpoint"
    assert capsys.readouterr().err == ("" if failure is None else f"{told}. the table is gone\n")
