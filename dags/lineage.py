"""What every task reads and writes, for OpenLineage: topics, tables of the lake and registered models.

The plugin `tidecast_lineage` imports this where Airflow is told where events go, and nobody does otherwise. It names
datasets as OpenLineage's naming conventions do, so that they are those that Spark's, Kafka's or dbt's events name; for
models there is no convention: the registered model's name, under the address of MLflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow.providers.openlineage.extractors import OperatorLineage
from airflow.providers.openlineage.extractors.base import BaseExtractor
from airflow.providers.openlineage.extractors.manager import ExtractorManager
from openlineage.client.event_v2 import Dataset
from openlineage.client.facet_v2 import dataset_version_dataset

from configs.settings import Settings
from dags.defaults import JOBS, SETTINGS

_INGESTED = ("metrics", "forecasts", "decisions", "outcomes", "contracts")
_LAKE = (*_INGESTED, "quarantine")
_TRAINED_ON = ("metrics", "forecasts", "outcomes")
_OF_JOBS = ("forecaster", "agent")


@dataclass(frozen=True)
class Touched:
    """What a task reads or writes: names of topics and of the lake's tables, and kinds of registered models."""

    topics: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


_NOTHING = Touched()
_FORECASTER, _AGENT = (Touched(models=(kind,)) for kind in ("forecaster", "agent"))
TASKS: Mapping[str, tuple[Touched, Touched]] = {
    "ingest_metrics.ingest": (Touched(topics=_INGESTED), Touched(tables=_LAKE)),
    "ingest_metrics.name_troubles": (_NOTHING, _NOTHING),
    "maintain_lake.maintain": (Touched(tables=_LAKE), Touched(tables=_LAKE)),
    "maintain_lake.trim_models": (_NOTHING, _NOTHING),
    "retrain_forecaster.enough": (Touched(tables=("metrics",)), _NOTHING),
    "retrain_forecaster.one_job.train": (Touched(tables=_TRAINED_ON, models=("forecaster",)), _FORECASTER),
    "retrain_forecaster.one_job.judge": (_FORECASTER, _FORECASTER),
    "retrain_forecaster.one_job.won": (_NOTHING, _NOTHING),
    "approve_champion.promote": (_NOTHING, _FORECASTER),
    "retrain_agent.learnable": (Touched(tables=("metrics",)), _NOTHING),
    "retrain_agent.one_agent.train": (Touched(tables=_TRAINED_ON, models=("agent",)), _AGENT),
    "retrain_agent.one_agent.judge": (_AGENT, _AGENT),
    "backtest_policies.replayable": (Touched(tables=("metrics",)), _NOTHING),
    "backtest_policies.replay": (Touched(tables=_TRAINED_ON), _NOTHING),
    "serve_forecasts.serve": (
        Touched(topics=("metrics", "control"), models=("forecaster",)),
        Touched(topics=("forecasts", "heartbeats", "control")),
    ),
    "backfill.plan": (Touched(topics=("metrics", "outcomes", "forecasts", "control", "replays")), _NOTHING),
    "backfill.dear": (_NOTHING, _NOTHING),
    "backfill.order": (
        Touched(topics=("metrics", "outcomes", "forecasts", "control", "replays")), Touched(topics=("control",)),
    ),
    "backfill.follow": (Touched(topics=("control", "replays")), Touched(topics=("control",))),
    "backfill.end": (Touched(topics=("control",)), Touched(topics=("control",))),
    "plan_placement.begun": (_NOTHING, _NOTHING),
    "plan_placement.plan": (Touched(topics=("metrics",)), _NOTHING),
    "plan_placement.learn": (Touched(topics=("metrics",)), Touched(models=("placement", "performance"))),
    "plan_placement.propose": (Touched(topics=("metrics",), models=("placement",)), _NOTHING),
    "plan_placement.differs": (_NOTHING, _NOTHING),
    "plan_placement.apply": (Touched(topics=("metrics",)), _NOTHING),
}  # fmt: skip
"""What is read and written, by DAG and task; a test demands that all tasks are here."""


class TaskLineage(BaseExtractor):
    """The datasets of our tasks; of other people's `@task`s nothing is looked at, and their extractor stays theirs."""

    others: ClassVar[type[BaseExtractor] | None] = None
    """The extractor of other people's `@task`s; None where they have none."""

    @classmethod
    def register(cls, manager: ExtractorManager) -> None:
        """Make a manager of extractors ask this one about every `@task`; an extractor that it asked before is kept."""
        for operator in cls.get_operator_classnames():
            before = manager.extractors.get(operator)
            if before is not cls:
                cls.others = before
                manager.add_extractor(operator, cls)

    @classmethod
    def get_operator_classnames(cls) -> list[str]:
        """Return what Airflow calls the operator of `@task`."""
        return ["_PythonDecoratedOperator"]

    def _execute_extraction(self) -> OperatorLineage[Any, Any] | None:
        """At the start of a task, before it has a result."""
        return self._told("extract")

    def extract_on_complete(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Return what the task has read and written, with the versions that its result names."""
        return self._told("extract_on_complete", task_instance)

    def extract_on_failure(self, task_instance: Any) -> OperatorLineage[Any, Any] | None:
        """Return the same of a task that has failed."""
        return self._told("extract_on_failure", task_instance)

    def _told(self, method: str, *instance: Any) -> OperatorLineage[Any, Any] | None:
        touched = TASKS.get(f"{self.operator.dag_id}.{self.operator.task_id}")
        if touched is not None:
            return self._lineage(*touched, *instance)
        if self.others is None:
            return OperatorLineage()
        other = self.others(self.operator)
        other.source_code_enabled = self.source_code_enabled
        told: OperatorLineage[Any, Any] | None = getattr(other, method)(*instance)
        return told

    def _lineage(self, reads: Touched, writes: Touched, instance: Any = None) -> OperatorLineage[Any, Any]:
        task = self.operator
        whose = named_jobs([*task.op_args, *task.op_kwargs.values()])
        result = None
        if instance is not None:
            whose = whose or named_jobs([dict(instance.get_template_context()["params"])])
            result = instance.xcom_pull(task_ids=task.task_id, map_indexes=instance.map_index)
        if not whose:
            whose, reads, writes = JOBS, of_all_jobs(reads), of_all_jobs(writes)
        written = [versioned(dataset, result) for dataset in datasets(writes, whose, SETTINGS)]
        return OperatorLineage(inputs=datasets(reads, whose, SETTINGS), outputs=written)


def of_all_jobs(touched: Touched) -> Touched:
    """Return what a task that names no job touches of every job: the other kinds of models are of topologies."""
    return replace(touched, models=tuple(kind for kind in touched.models if kind in _OF_JOBS))


def named_jobs(arguments: Iterable[Any]) -> list[str]:
    """Return the job, or topology, that a task's arguments are about; none where they name none.

    Args:
        arguments: a name itself, or a dict with the key `job` or `topology`; all else is passed over.
    """
    for argument in arguments:
        if isinstance(argument, str):
            return [argument]
        if isinstance(argument, dict) and (name := argument.get("job") or argument.get("topology")):
            return [str(name)]
    return []


def datasets(touched: Touched, jobs: Iterable[str], settings: Settings) -> list[Dataset]:
    """Name datasets as OpenLineage does: a topic by its broker, a table by its path, a model by MLflow's address.

    Args:
        touched: what is to be named.
        jobs: whose models.
        settings: where broker, lake and MLflow are. Of several brokers the first is named; topics without a broker are
            left out.
    """
    broker, lake, mlflow = settings.kafka.bootstrap, urlsplit(settings.lake_address), settings.mlflow.tracking_uri
    found = []
    if broker:
        first = broker.split(",")[0].strip()
        found += [Dataset(f"kafka://{first}", settings.kafka.topic(name)) for name in touched.topics]
    space = f"hdfs://{lake.netloc}" if lake.scheme else "file"
    found += [Dataset(space, f"{lake.path.rstrip('/')}/{name}") for name in touched.tables]
    at = urlsplit(mlflow or f"sqlite:///{settings.var_dir / 'mlflow' / 'mlflow.db'}")
    space = f"mlflow://{at.netloc.rpartition('@')[2] or '/' + at.path.lstrip('/')}"
    return found + [Dataset(space, f"{job}-{kind}") for kind in touched.models for job in jobs]


def versioned(dataset: Dataset, result: Any) -> Dataset:
    """Add the version that was written, where the task's result names it: of a model, or by the name of a table."""
    if not isinstance(result, Mapping):
        return dataset
    told: Any = result.get(dataset.name.rpartition("/")[2], result)
    version = told.get("version") if isinstance(told, Mapping) else None
    if version is None:
        return dataset
    facet = dataset_version_dataset.DatasetVersionDatasetFacet(datasetVersion=str(version))
    return Dataset(dataset.namespace, dataset.name, facets={"version": facet})
