"""What Spark's status store says of a stage, and what the agent sends of a batch's stages."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from configs.contract import Contract, Executors
from models.policy.live.evaluation import most_of_use
from models.policy.live.memory import fresh, with_interval
from pipelines.serve.step.samples import fields_by_name
from tests.fakes import driver
from tidecast.messages import MetricSample
from tidecast.observer import Observer, sum_stages
from tidecast.spark.cluster import Cluster, Stage, _stage
from tidecast.spark.progress import Batch

TOLD = {
    "attemptId": 1, "numTasks": 8, "submissionTime": 1000, "completionTime": 3500, "executorRunTime": 9000,
    "jvmGcTime": 700, "executorCpuTime": 4_000_000_000, "shuffleFetchWaitTime": 300, "diskBytesSpilled": 5_000_000,
}  # fmt: skip


def test_a_stage_waited_for_as_long_as_it_neither_computed_nor_collected_nor_fetched():
    assert _stage(7, TOLD) == Stage(7, 1, 8, 9.0, 2.5, 0.7, pytest.approx(4.0), 5_000_000)
    assert _stage(7, {**TOLD, "executorCpuTime": 9_500_000_000}).wait_s == 0.0  # clocks that do not quite agree


def test_the_sink_is_the_last_stage_and_committing_state_is_no_waiting_for_it():
    stages = [Stage(8, 0, 3, 2.0, 1.0, 0.1, 1.5, 20), Stage(7, 0, 8, 9.0, 2.5, 0.7, 4.0, 5)]
    found = {"run_s": 11.0, "gc_s": pytest.approx(0.8), "sink_wait_s": 1.2, "spilled_bytes": 25}
    assert sum_stages(stages, 0.3) == found
    assert sum_stages(stages, 9.0)["sink_wait_s"] == 0.0


def test_an_executor_worked_as_long_as_its_tasks_of_all_stages_took():
    def told(ms, succeeded=1):
        return {"taskTime": ms, "succeededTasks": succeeded}

    summaries = {7: {"1": told(900), "2": told(2_400)}, 8: {"1": told(700), "2": told(0, succeeded=0)}}
    cluster = object.__new__(Cluster)  # what it needs of a driver is its status store alone
    cluster._store = SimpleNamespace(executorSummary=lambda stage, attempt: summaries[stage])
    cluster._mapper = SimpleNamespace(writeValueAsString=json.dumps)
    stages = [Stage(7, 0, 3, 3.3, 2.5), Stage(8, 0, 1, 0.7, 0.8)]
    assert cluster.executors_used(stages) == pytest.approx({"1": 1.6, "2": 2.4})
    assert cluster.executors_used([]) == {}


class Store:
    """Spark's status store with the stages of these descriptions, numbered from 0."""

    def __init__(self, *descriptions):
        self.descriptions = descriptions

    def lastStageAttempt(self, number):
        return {**TOLD, "status": "COMPLETE", "description": self.descriptions[number]}


def test_stages_of_a_batch_are_known_also_where_delta_merges_within_it():
    of = "orders\nid = 5f\nrunId = r\nbatch = "
    store = Store(
        f"{of}5",
        f"Delta: {of}5: MERGE operation - scanning files for matches",
        f"Delta: Delta: {of}5: MERGE operation - scanning files for matches: Filtering files for query",
        f"Delta: {of}6: MERGE operation - Rewriting 1 files",
        f"{of}55",
        "Delta: orders\nid = 5f\nrunId = other\nbatch = 5: MERGE operation - Rewriting 1 files",
        "Delta: MERGE operation - Rewriting 1 files",
        f"{of}init",
        None,
    )
    cluster = object.__new__(Cluster)
    cluster._store, cluster._next_stage = store, 0
    cluster._mapper = SimpleNamespace(writeValueAsString=json.dumps)
    cluster.jsc = SimpleNamespace(dagScheduler=lambda: SimpleNamespace(nextStageId=lambda: len(store.descriptions)))
    assert [stage.stage_id for stage in cluster.batch_stages("r", 5)] == [0, 1, 2]
    assert [stage.stage_id for stage in cluster.batch_stages("r", 6)] == [3]


def agent_of(stages):
    """An observer of a query over twelve partitions, whose batches have these stages."""
    job = driver.job(ends={("events", number): 0 for number in range(12)})
    cluster = SimpleNamespace(
        jquery=SimpleNamespace(lastProgress=lambda: None), batch_stages=lambda run_id, batch_id: stages,
        executors_used=lambda stages: {}, task_spread=lambda stage: None,
    )  # fmt: skip
    return job, Observer(job, cluster)


def ceilings(job, observer):
    """What it says before its first batch of records, and after each of four."""
    yield job.ceiling()
    for number in range(4):
        observer._handle(Batch(number, "r", 10.0 + number, 0.5, 100, {}, {}, {}, 9.0))
        yield job.ceiling()


def test_a_query_that_was_started_again_keeps_the_executors_that_its_tasks_fill():
    contract = Contract(job="orders", executors=Executors(min=2, max=8, cores=4))
    job, observer = agent_of([Stage(1, 0, 200, 3.0, 1.0), Stage(2, 0, 12, 1.0, 0.5)])
    memory = replace(fresh(contract), tasks=200)
    for ceiling in ceilings(job, observer):
        said = MetricSample("orders", "interval", 0.0, 1.0, arrival_rps=4500.0, executors=8, task_ceiling=ceiling)
        memory = with_interval(memory, fields_by_name(said))
        assert most_of_use(memory, contract) == 8  # by the twelve partitions it would be three
    assert memory.tasks == 200


def test_tasks_are_told_once_they_are_known_and_partitions_where_no_stage_is_shown():
    shown = agent_of([Stage(1, 0, 200, 3.0, 1.0), Stage(2, 0, 12, 1.0, 0.5)])
    assert [*ceilings(*shown)] == [None, None, None, None, 200]
    assert [*ceilings(*agent_of([]))] == [None, None, None, None, 12]
