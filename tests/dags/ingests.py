"""Runs the ingest by hand, hourly, otherwise and as a repeat, on a topic that grows; writes what each did as JSON."""

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pipelines.ingest
from configs.errors import FinalError
from dags.assets import METRICS_STORED
from dags.defaults import JOBS
from dags.ingest_metrics import ingest_metrics
from pipelines.ingest.offsets import Topic, plan_range
from pipelines.lake.tables import Origin

HOUR = datetime.fromtimestamp(time.time(), UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
DAG: Any = ingest_metrics()
TASK: Any = DAG.get_task("ingest")


class Ingests:
    """The ingest with the real plan of offsets; what was committed is kept here."""

    def __init__(self) -> None:
        self.end, self.commits, self.told = 0, [], []

    def __call__(self, partition: str, skip_lost: bool, told: Any) -> Any:
        self.told = told
        taken = plan_range(Topic("metrics", "metrics", "id", {0: (0, self.end)}), partition, self.commits, 0.0)
        origin = Origin("metrics", "id", partition, taken.start, taken.end, 0.0, taken.records, 0)
        self.commits.insert(0, origin)
        offsets = [taken.start[0], taken.end[0]]
        return {"metrics": {"stored": taken.records, "again": taken.is_rerun, "offsets": offsets}}, []


class PastEvents(list[Any]):
    """An asset's events, oldest first, as Airflow's accessor gives them."""

    def ascending(self, ascending: bool) -> "PastEvents":
        """In one order or the other."""
        return self if ascending else PastEvents(self[::-1])

    def limit(self, most: int) -> "PastEvents":
        """The first so many."""
        return PastEvents(self[:most])


PAST = PastEvents(SimpleNamespace(extra=number) for number in range(100_000))


class Events:
    """Takes note of the asset events of one run."""

    def __init__(self) -> None:
        self.added: list[Any] = []

    def __getitem__(self, alias: Any) -> Any:
        return (
            SimpleNamespace(add=lambda asset, extra: self.added.append(asset.name)) if alias == METRICS_STORED else []
        )


def run(kind: str, at: datetime, partition: str | None = None, attempt: int = 1) -> dict[str, Any]:
    """One run of the task, as Airflow calls it; `at` is when it may begin."""
    ingests.end += 10
    events, interval = Events(), at - timedelta(hours=1)
    counts = TASK.python_callable(
        params={"partition": partition, "skip_lost": False},
        dag_run=SimpleNamespace(run_type=kind, data_interval_start=interval, run_after=at),
        ti=SimpleNamespace(try_number=attempt), inlet_events=dict.fromkeys(TASK.inlets, PAST), outlet_events=events,
    )  # fmt: skip
    return {**counts["metrics"], "told": events.added}


ingests = Ingests()
pipelines.ingest.ingest = ingests  # type: ignore[assignment]
found = [
    run("manual", HOUR + timedelta(minutes=20)),
    run("manual", HOUR + timedelta(minutes=40)),
    run("scheduled", HOUR + timedelta(hours=1)),
    run("operator_triggered", HOUR + timedelta(hours=1, seconds=1)),
    run("asset_triggered", HOUR + timedelta(hours=1, seconds=2)),
    run("backfill", HOUR + timedelta(hours=1)),
    run("manual", HOUR + timedelta(hours=1), f"{HOUR:%Y-%m-%dT%H}"),
    run("manual", HOUR + timedelta(hours=1), f"{HOUR:%Y-%m-%dT%H}", attempt=2),
]


def named(**troubles: str) -> str:
    """What the last task says of topics with these troubles; empty where it passes."""
    try:
        DAG.get_task("name_troubles").python_callable({topic: {"trouble": text} for topic, text in troubles.items()})
    except FinalError as error:
        return str(error)
    return ""


troubled = [named(metrics="", outcomes=""), named(metrics="", outcomes="offsets 1 to 2 were deleted")]
told = {"newest": ingests.told[0], "many": len(ingests.told), "jobs": len(JOBS)}
Path(sys.argv[1]).write_text(json.dumps({"runs": found, "troubled": troubled, "drifts": told}))
