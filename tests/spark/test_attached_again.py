"""What is attached in one driver, with real queries and no broker that answers."""

from types import SimpleNamespace

import pytest

from tests.fakes.waiting import wait_until
from tidecast import agent, attach
from tidecast.spark.actuator import ExecutorActuator
from tidecast.spark.cluster import Cluster

pytestmark = pytest.mark.spark

NOWHERE = "127.0.0.1:1"
IMPATIENT_MS = 1000
"""An agent that is told to end while it connects does so once it has given that up."""


@pytest.fixture
def start(spark, tmp_path, monkeypatch):
    """Start a query; all have ended with the test."""
    monkeypatch.setattr("tidecast.connection.transport.CONNECT_MS", IMPATIENT_MS)
    begun = []

    def start():
        rows = spark.readStream.format("rate").load().writeStream.format("noop")
        query = rows.option("checkpointLocation", str(tmp_path / f"{len(begun)}")).start()
        begun.append(query)
        return query

    yield start
    for query in begun:
        query.stop()


def test_a_job_has_one_agent_as_long_as_its_query_runs_and_others_have_their_own(start):
    query, before = start(), dict(agent._agents)
    first, other = (attach(query, name, bootstrap=NOWHERE) for name in ("orders", "payments"))
    refused = r"job .orders. has an agent.*stop\(\) first, or give this query a job name of its own"
    for again in (query, start()):
        with pytest.raises(ValueError, match=refused):
            attach(again, "orders", bootstrap=NOWHERE)
    first.stop(0.0)
    second = attach(query, "orders", bootstrap=NOWHERE)
    query.stop()
    third = attach(start(), "orders", bootstrap=NOWHERE)  # at once, before the one before has seen that
    for one in (second, third, other):
        one.stop(0.0)
    wait_until(lambda: agent._agents == before, "no agent that has ended is kept", every_s=0.1)


def test_an_executor_has_as_many_slots_as_tasks_run_on_its_cores(start, spark, caplog):
    conf, query = spark.sparkContext._jsc.sc().conf(), start()
    alike = Cluster(query)
    assert (alike.executors(), alike.slots_per_executor("orders", 4)) == ({"driver": 2}, 4)
    assert not caplog.text
    conf.set("spark.task.cpus", "2")
    try:
        job = attach(query, "orders", bootstrap=NOWHERE, cores_per_executor=4)
    finally:
        conf.remove("spark.task.cpus")
    job.stop(0.0)
    assert (job._job.limits.slots_per_executor, job._job.executors) == (2, {"driver": 1})
    assert "orders: spark.task.cpus=2, so an executor of 4 cores runs 2 tasks at once" in caplog.text


@pytest.mark.parametrize(
    ("master", "stated", "allowed"),
    [
        ("yarn", {}, 4),  # of two executors that it begins with
        ("yarn", {"spark.executor.maxNumFailures": "10"}, 10),
        ("k8s://https://there", {}, 4),
        ("spark://there:7077", {}, None),
    ],
)
def test_after_how_many_failed_executors_it_ends_is_what_spark_makes_of_how_many_it_begins_with(
    spark, master, stated, allowed
):
    conf = spark.sparkContext._jsc.sc().conf().clone().set("spark.executor.instances", "2")
    for name, value in stated.items():
        conf.set(name, value)
    context = SimpleNamespace(master=lambda: master, conf=lambda: conf, schedulerBackend=lambda: None)
    cluster = SimpleNamespace(jsc=context, jvm=spark._jvm, application=f"of {master}")
    assert ExecutorActuator(cluster, "orders").failures_allowed() == allowed
