"""Asks `dags.lineage` for names and versions of datasets, as Airflow's plugin does; writes what it said as JSON."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from airflow.providers.openlineage.extractors import OperatorLineage
from airflow.providers.openlineage.extractors.base import BaseExtractor
from airflow.providers.openlineage.extractors.manager import ExtractorManager

from configs.settings import Settings, load
from dags import lineage
from dags.defaults import JOBS

EVERY = lineage.Touched(topics=("metrics",), tables=("metrics",), models=("forecaster", "agent"))
TABLE, MODEL = lineage.Touched(tables=("metrics",)), lineage.Touched(models=("agent",))
ALONE = load(var="/alone")
GIVEN = load(
    kafka={"bootstrap": " k:9092, l:9092", "prefix": "p."}, lake={"address": "/lake"},
    mlflow={"tracking_uri": "https://ann:secret@mlflow.example.com/ml"},
)  # fmt: skip


def names(jobs: list[str], settings: Settings) -> list[tuple[str, str]]:
    """Of each dataset its namespace and its name in that."""
    return [(one.namespace, one.name) for one in lineage.datasets(EVERY, jobs, settings)]


def version(touched: lineage.Touched, result: Any) -> Any:
    """Of the only dataset, once a task has returned that; None where it gets none."""
    (dataset,) = lineage.datasets(touched, ["a"], load())
    facets = lineage.versioned(dataset, result).facets
    return facets["version"].datasetVersion if facets else None


def begun(name: str, *arguments: Any) -> list[str]:
    """Of models the names that are told at a task's start."""
    dag, _, task = name.partition(".")
    operator: Any = SimpleNamespace(dag_id=dag, task_id=task, op_args=arguments, op_kwargs={})
    told = lineage.TaskLineage(operator).extract()
    return [one.name for one in (*told.inputs, *told.outputs) if one.namespace.startswith("mlflow:")]


class Untouchable:
    """Another person's task, or its instance: whatever of it is asked for beside its name raises."""

    def __init__(self, **known: str) -> None:
        self.__dict__.update(known)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is no business of ours")


class Theirs(BaseExtractor):
    """An extractor of other people's tasks, as of Airflow's setting `extractors`."""

    @classmethod
    def get_operator_classnames(cls) -> list[str]:
        return ["_PythonDecoratedOperator"]

    def _execute_extraction(self) -> Any:
        return f"theirs of {self.operator.task_id}, source code {self.source_code_enabled}"

    def extract_on_failure(self, task_instance: Any) -> Any:
        return f"theirs of {self.operator.task_id}, which failed"


def foreign(manager: ExtractorManager) -> list[Any]:
    """What is told of another person's task: at its start, its end and its failure."""
    lineage.TaskLineage.register(manager)
    lineage.TaskLineage.register(manager)  # a plugin that is loaded twice
    operator: Any = Untouchable(dag_id="theirs", task_id="load", task_type="_PythonDecoratedOperator")
    made = manager._get_extractor(operator, source_code_enabled=False)
    assert isinstance(made, lineage.TaskLineage)
    return [made.extract(), made.extract_on_complete(Untouchable()), made.extract_on_failure(Untouchable())]


alone, kept = ExtractorManager(), ExtractorManager()
kept.add_extractor("_PythonDecoratedOperator", Theirs)
untouched = [told == OperatorLineage() for told in foreign(alone)]
delegated = foreign(kept)
touched = [one for pair in lineage.TASKS.values() for one in pair]
found = {
    "tasks": sorted(lineage.TASKS),
    "topics": sorted({name for one in touched for name in one.topics}),
    "tables": sorted({name for one in touched for name in one.tables}),
    "models": sorted({name for one in touched for name in one.models}),
    "alone": names(["a", "b"], ALONE),
    "given": names(["a"], GIVEN),
    "jobs": [lineage.named_jobs(told) for told in (["orders"], [None, {"job": "orders"}], [{"topology": "orders"}])],
    "no job": [lineage.named_jobs(told) for told in ([], [None, {"job": None}, 7, {"partition": "x"}])],
    "begun": {
        "of a topology": [*begun("plan_placement.learn"), *begun("plan_placement.propose", {"ask": False})],
        "of every job": begun("approve_champion.promote"),
        "of one": begun("plan_placement.learn", {"topology": "adverts"}),
    },
    "all jobs": JOBS,
    "plans by metrics": [
        name.partition(".")[2]
        for name, (reads, _) in lineage.TASKS.items()
        if name.startswith("plan_placement.") and "metrics" in reads.topics
    ],
    "others' tasks": {"untouched": untouched, "by their extractor": delegated},
    "versions": [version(TABLE, {"metrics": {"version": 3}}), version(MODEL, {"job": "a", "version": "7"})],
    "no version": [
        version(of, told)
        for of in (TABLE, MODEL)
        for told in (None, "run", {}, {"metrics": {"version": None}}, {"version": None})
    ],
}
Path(sys.argv[1]).write_text(json.dumps(found))
