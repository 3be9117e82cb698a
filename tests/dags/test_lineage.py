"""What OpenLineage is told: by real DAG runs, to a real receiver, in its own words."""

from __future__ import annotations

import copy
import importlib
import inspect
import pkgutil
import re
from datetime import datetime
from uuid import UUID

import pytest

from configs.settings import ROOT
from pipelines.ingest.columns import KINDS
from pipelines.lake.tables import QUARANTINE
from pipelines.registry import AgentRegistry, Registry
from pipelines.registry.placements import PerformanceRegistry, PlacementRegistry
from tidecast.connection.transport import TOPICS

TABLES = (*KINDS, QUARANTINE)
LAKE, BROKER, MODELS = "hdfs://namenode:8020", "kafka://kafka-1:9092", "mlflow://mlflow:5000"


@pytest.fixture
def named(found):
    """What `dags.lineage` says, asked in a fork: with it comes Airflow, whose import takes seconds."""
    return found["named"]


@pytest.fixture
def told(found):
    """What `lineage.py` beside this file found; a copy, which one of the tests takes apart."""
    return copy.deepcopy(found["lineage"])


def event(told, kind, job):
    (found,) = [e for e in told["events"] if (e["eventType"], e["job"]["name"]) == (kind, job)]
    return found


def names(of):
    return [(d["namespace"], d["name"]) for d in of]


def versions(of):
    facets = {d["name"].rpartition("/")[2]: d.get("facets", {}) for d in of}
    return {name: f["version"]["datasetVersion"] for name, f in facets.items() if "version" in f}


def test_a_run_says_what_it_read_and_wrote_and_in_which_version(told):
    assert told["states"]["ingest_metrics"] == told["states"]["retrain_forecaster"] == "success"
    began, ended = (event(told, kind, "ingest_metrics.ingest") for kind in ("START", "COMPLETE"))
    for one in (began, ended):
        assert names(one["inputs"]) == [(BROKER, f"team.{topic}") for topic in KINDS]
        assert names(one["outputs"]) == [(LAKE, f"/tidecast/lake/{table}") for table in TABLES]
    assert versions(began["outputs"]) == {} and versions(ended["outputs"]) == {"metrics": "4"}

    trained = event(told, "COMPLETE", "retrain_forecaster.one_job.train")
    assert (LAKE, "/tidecast/lake/metrics") in names(trained["inputs"])
    assert names(trained["outputs"]) == [(MODELS, "orders-forecaster")]
    judged = event(told, "COMPLETE", "retrain_forecaster.one_job.judge")
    assert versions(judged["outputs"]) == {"orders-forecaster": "7"}


def test_a_task_does_not_wait_for_an_endpoint_and_none_fails_without_one(told):
    """Each start was answered after its task had run; later nobody listened at all."""
    assert told["ran first"] and all(told["ran first"])
    assert told["states"]["without a receiver"] == "success"


def facet_classes():
    """OpenLineage's own classes of facets, by name."""
    from openlineage.client import generated

    found = {}
    for module in pkgutil.iter_modules(generated.__path__, f"{generated.__name__}."):
        found |= dict(inspect.getmembers(importlib.import_module(module.name), inspect.isclass))
    return found


def test_events_are_openlineages(told):
    """Required fields and forms as in its specification; each facet is one of its classes, without another field."""
    from openlineage.client.event_v2 import Dataset, Job, Run, RunEvent, RunState

    kinds = facet_classes()
    assert len(told["events"]) >= 8
    for one in told["events"]:
        path = one.pop("path")
        assert path == "/api/v1/lineage" and re.search(r"/OpenLineage\.json#/\$defs/RunEvent$", one["schemaURL"])
        assert datetime.fromisoformat(one["eventTime"]).tzinfo and one["producer"].startswith("https://")
        UUID(one["run"]["runId"])
        made = [Dataset(**d) for d in (*one["inputs"], *one["outputs"])]
        RunEvent(
            eventType=RunState[one["eventType"]], eventTime=one["eventTime"], run=Run(**one["run"]),
            job=Job(**one["job"]), inputs=made, producer=one["producer"],
        )  # fmt: skip
        owners = [one["run"], one["job"], *one["inputs"], *one["outputs"]]
        for name, facet in (item for owner in owners for item in (owner.get("facets") or {}).items()):
            assert facet.pop("_producer").startswith("https://"), name
            schema = facet.pop("_schemaURL").rpartition("/")[2]
            if name.startswith("airflow"):  # Airflow's own, of which OpenLineage knows that they are facets of a run
                assert schema == "RunFacet" and one["run"]["facets"][name] is facet
            else:
                kinds[schema](**facet)


def test_every_task_of_ours_is_known(named, found_tasks):
    assert {*named["tasks"]} == found_tasks


@pytest.fixture
def found_tasks():
    """`DAG.task`, as the files of the DAGs define them: by `@task`, in groups where they are called in one."""
    groups = {"train": "one_", "judge": "one_", "won": "one_"}
    found = set()
    for file in sorted((ROOT / "dags").glob("*.py")):
        text = file.read_text()
        group = re.search(r"@task_group\n    def (\w+)", text)
        for name in re.findall(r"    @task(?:\([^\n]*\))?(?:  #[^\n]*)?\n    def (\w+)", text):
            inside = group is not None and groups.get(name, "-") == group[1][:4]
            found.add(f"{file.stem}.{group[1]}.{name}" if inside else f"{file.stem}.{name}")
    return found


def test_what_is_named_is_there(named):
    """Topics, tables and kinds of models that no other part knows would be nobody's datasets."""
    assert {*named["topics"]} <= {*TOPICS}
    assert {*named["tables"]} <= {*TABLES}
    kinds = {store.what for store in (Registry, AgentRegistry, PlacementRegistry, PerformanceRegistry)}
    assert {*named["models"]} == kinds
    assert Registry.model_name("orders") == "orders-forecaster"


def test_datasets_have_openlineages_names(named):
    assert named["alone"] == [
        ["file", "/alone/lake/metrics"],
        *[["mlflow:///alone/mlflow/mlflow.db", f"{job}-{kind}"] for kind in ("forecaster", "agent") for job in "ab"],
    ]
    assert named["given"] == [
        ["kafka://k:9092", "p.metrics"],
        ["file", "/lake/metrics"],
        ["mlflow://mlflow.example.com", "a-forecaster"],
        ["mlflow://mlflow.example.com", "a-agent"],
    ]


def test_a_job_is_found_among_a_tasks_arguments(named):
    assert named["jobs"] == [["orders"]] * 3
    assert named["no job"] == [[]] * 2


def test_a_task_that_names_no_topology_yet_is_told_of_no_model_of_one(named):
    """At its start it does not know its form: models of topologies that were named after jobs would not exist."""
    assert named["begun"]["of a topology"] == []
    assert named["begun"]["of every job"] == [f"{job}-forecaster" for job in named["all jobs"]] != []
    assert named["begun"]["of one"] == ["adverts-placement", "adverts-performance"]


def test_what_looks_at_a_running_job_reads_its_metrics(named):
    """A proposal is made of the last minutes, and what is put on trial is judged by those just before."""
    assert named["plans by metrics"] == ["plan", "learn", "propose", "apply"]


def test_tasks_of_other_people_are_not_looked_at_and_keep_their_extractor(named):
    assert named["others' tasks"] == {
        "untouched": [True, True, True],
        "by their extractor": [
            *["theirs of load, source code False"] * 2,
            "theirs of load, which failed",
        ],
    }


def test_a_version_is_that_of_the_table_or_of_the_model(named):
    assert named["versions"] == ["3", "7"]
    assert named["no version"] == [None] * 10
