"""What Spark says of its executors and stages, read through Py4J (private API); nothing here changes anything."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

log = logging.getLogger("tidecast")

_STAGES_PER_LOOK = 200  # most stages read per batch, the newest of them
_SPREAD_TASKS = 1000
"""Most tasks of a stage whose spread is asked for: the status store sorts them for each of some forty quantities."""
_LABEL = re.compile(r"^runId = (\S+)\nbatch = (\d+)(?=:|$)", re.MULTILINE)
"""How Spark ends the description of the jobs of a streaming query; Delta's commands, as MERGE, go on behind a colon."""


class ClusterError(RuntimeError):
    """The query is not one whose driver runs in this process; the message says what to do."""


@dataclass(frozen=True)
class Stage:
    """One finished stage of a batch; seconds: `wall_s` from submission to completion, all others summed over its tasks.

    `wait_s` is what a task ran without using its core in the JVM, collecting garbage or fetching a shuffle: it waited
    for a sink, for Python, or for a core that something else used. `spilled_bytes` were written to disk for want of
    memory.
    """

    stage_id: int
    attempt: int
    tasks: int
    run_s: float
    wall_s: float
    gc_s: float = 0.0
    wait_s: float = 0.0
    spilled_bytes: int = 0


class Spread(NamedTuple):
    """Seconds that the median task and the slowest task of a stage ran."""

    task_median_s: float
    task_max_s: float


class Cluster:
    """Read-only view of the Spark application that runs a query.

    Raises:
        ClusterError: `query` is no classic (not Spark Connect) streaming query of this process, or Spark is not
            running.
    """

    def __init__(self, query: Any) -> None:
        from pyspark import SparkContext

        if not hasattr(query, "_jsq") or SparkContext._active_spark_context is None:
            raise ClusterError(
                f"{type(query).__name__} is no streaming query of this driver. Call attach in the process that started "
                "it; a Spark Connect client cannot reach the executors."
            )
        context = SparkContext._active_spark_context
        jvm: Any = context._jvm
        self.jvm = jvm
        self._gateway: Any = context._gateway
        self.jsc: Any = context._jsc.sc()
        self.jquery: Any = query._jsq
        self.application: str = context.applicationId
        self._store = self.jsc.statusStore()
        self._mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._mapper.registerModule(jvm.com.fasterxml.jackson.module.scala.DefaultScalaModule())
        self._next_stage: int = self.jsc.dagScheduler().nextStageId()
        self.cores_per_task = int(self.jsc.conf().get("spark.task.cpus", "1"))

    def slots_per_executor(self, job: str, cores: int | None) -> int:
        """Return how many tasks an executor runs at once, at least 1; warn where they are fewer than its cores.

        Args:
            job: for the warning.
            cores: of each; None: `spark.executor.cores` as configured, 1 where it is not set.
        """
        cores = cores or int(self.jsc.conf().get("spark.executor.cores", "1"))
        slots = max(cores // self.cores_per_task, 1)
        if slots < cores:
            log.warning(
                "%s: spark.task.cpus=%d, so an executor of %d cores runs %d tasks at once: its contract has to say so, "
                "executors: {cores: %d}", job, self.cores_per_task, cores, slots, slots,
            )  # fmt: skip
        return slots

    def executors(self) -> dict[str, int]:
        """Return the slots of every registered executor by id; in local mode the driver is the one executor."""
        found = self._read(self._store.executorList(True))
        return {e["id"]: e["totalCores"] // self.cores_per_task for e in found if e["id"] != "driver" or e["maxTasks"]}

    def batch_stages(self, run_id: str, batch_id: int) -> list[Stage]:
        """Return the complete stages of one finished batch, by rising stage id; ask for each batch once, in order.

        Stages older than the last call's are not read again, and at most the newest 200 are read. Left out are skipped
        and failed stages, and those that Spark's status store has dropped. Empty if none is left.

        Args:
            run_id: the query's, as in its progress.
            batch_id: of the batch.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
            KeyError: Spark describes a stage otherwise than this code expects.
        """
        from py4j.protocol import Py4JJavaError

        upto: int = self.jsc.dagScheduler().nextStageId()
        first, found = max(self._next_stage, upto - _STAGES_PER_LOOK), []
        self._next_stage = upto
        for stage_id in range(first, upto):
            try:
                stage = self._read(self._store.lastStageAttempt(stage_id))
            except Py4JJavaError:
                continue  # forgotten by the store, which keeps the newest thousand
            label = _LABEL.search(stage["description"] or "")
            if stage["status"] in ("ACTIVE", "PENDING") or (label and label[1] == run_id and int(label[2]) > batch_id):
                self._next_stage = min(self._next_stage, stage_id)  # of a batch that is yet to end
            elif stage["status"] == "COMPLETE" and label and (label[1], int(label[2])) == (run_id, batch_id):
                found.append(_stage(stage_id, stage))
        return found

    def task_spread(self, stage: Stage) -> Spread | None:
        """Return how far the run times of a stage's tasks lie apart; None for over 1000 tasks, or if it was dropped.

        Raises:
            py4j.protocol.Py4JError: the JVM does not answer.
        """
        if stage.tasks > _SPREAD_TASKS:
            return None
        levels = self._gateway.new_array(self.jvm.double, 2)
        levels[0], levels[1] = 0.5, 1.0
        found = self._read(self._store.taskSummary(stage.stage_id, stage.attempt, levels))
        return Spread(*(ms / 1000 for ms in found["executorRunTime"])) if found else None

    def executors_used(self, stages: list[Stage]) -> dict[str, float]:
        """Return the executors on which a task of these stages succeeded, with the seconds that all their tasks took.

        Raises:
            py4j.protocol.Py4JError: the status store has dropped a stage (Py4JJavaError), or the JVM does not answer.
        """
        took_s: dict[str, float] = {}
        for stage in stages:
            summary = self._read(self._store.executorSummary(stage.stage_id, stage.attempt))
            for executor, told in summary.items():
                if told["succeededTasks"] > 0:
                    took_s[executor] = took_s.get(executor, 0.0) + told["taskTime"] / 1000
        return took_s

    def kafka_source_options(self) -> list[Mapping[str, str]]:
        """Return the options of each Kafka source in the query's plan, as the user gave them, keys in lower case.

        Empty if there is none. Reads private API: any Py4J error comes through.
        """
        leaves = self.jquery.streamingQuery().analyzedPlan().collectLeaves()
        found: list[Mapping[str, str]] = []
        for i in range(leaves.size()):
            leaf = leaves.apply(i)
            if leaf.getClass().getSimpleName().startswith("StreamingRelationV2"):
                options = {str(k).lower(): str(v) for k, v in dict(leaf.extraOptions()).items()}
                if "kafka.bootstrap.servers" in options:
                    found.append(options)
        return found

    def _read(self, value: Any) -> Any:
        # One call that writes JSON costs a tenth of asking for every field.
        return json.loads(self._mapper.writeValueAsString(value))


def _stage(stage_id: int, told: dict[str, Any]) -> Stage:
    """A stage as Spark's status store describes it: CPU time in ns, other times in ms."""
    run_s, gc_s, fetch_s = (told[name] / 1000 for name in ("executorRunTime", "jvmGcTime", "shuffleFetchWaitTime"))
    wait_s = max(run_s - told["executorCpuTime"] / 1e9 - gc_s - fetch_s, 0.0)
    wall_s = (told["completionTime"] - told["submissionTime"]) / 1000
    return Stage(stage_id, told["attemptId"], told["numTasks"], run_s, wall_s, gc_s, wait_s, told["diskBytesSpilled"])
