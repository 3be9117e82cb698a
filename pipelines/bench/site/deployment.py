"""Row: the very `docker/compose.yaml` on stand-ins of the official images: a loop that closes, down and up again."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipelines.bench.site import outside
from pipelines.bench.site.containers import SECRETS, ComposeProject, podman, prepare
from pipelines.bench.site.leaks import Leaks
from pipelines.bench.site.servers import SiteError

PROJECT = "tidecast-bench"
UP_S, MOVED_S, COUNTED_S, SICK_S = 900.0, 400.0, 300.0, 600.0
"""Seconds after which it is given up: all healthy, a decision confirmed, all counted, a sick check."""
WAITS_S, LEAST_EVENTS = 10.0, 200
"""Seconds of load that the job has not read when all is taken down; records by which the load is past its warm-up."""
BUILD = "--pull=never --network=host --build-arg=TORCH= --ulimit=nproc=4000:4000 --ulimit=nofile=10000:10000"
"""Options of `podman build`, which goes by no configuration's limits; packages are PyPI's alone."""
AIRFLOW, MLFLOW = "airflow-api-server", "mlflow"
SWITCH_ON = ("tidecast", "switch-on")
"""As docs/deploy.md has it."""
LEARN = """
import json
from configs.settings import load
from pipelines.airflow.rest import Orchestrator
from pipelines.demo.champion import train_first_champion
from pipelines.demo.progress import Screen
print(json.dumps(train_first_champion(load(), Orchestrator(load()), Screen())))
"""
MOVED = """
import json
from configs.settings import load
from pipelines.kafka.broker import read_records, topic_offsets
from tidecast.messages import Outcome, decode
kafka = load().kafka
outcomes = [decode(Outcome, record.value) for record in read_records(kafka, "outcomes", 200)]
print(json.dumps({
    "moved": [[one.executors_before, one.executors_after] for one in outcomes if one.status == "confirmed"],
    "events": sum(end for _, end in topic_offsets(kafka, "events").values()),
}))
"""
COUNTED = """
import json
from pathlib import Path
from configs.settings import load
from pipelines.jobs.truth import compare_counts, read_counts
truth = json.loads(Path("/data/demo/truth.json").read_text())
print(json.dumps(compare_counts(truth, read_counts(load().kafka))))
"""
SEEN = """
import json
from pathlib import Path
import pyarrow.dataset
from configs.settings import load
from pipelines.airflow.rest import Orchestrator
from pipelines.kafka.broker import topic_offsets
from pipelines.lake.folder import lake_folder
from pipelines.lake.table_files import table_files
from pipelines.lake.tables import tables
from pipelines.registry import Registry
from pipelines.registry.tracking import open_store
settings = load()
dags, root = Orchestrator(settings), lake_folder(settings)
files = {name: table_files(root, name) for name in tables(root)}
client, _, experiment = open_store(settings)
print(json.dumps({
    "champion": Registry(settings).champion_version("word_count"),
    "ends": {
        topic: sum(end for _, end in topic_offsets(settings.kafka, topic).values())
        for topic in ("events", "results", "metrics", "forecasts", "decisions", "outcomes")
    },
    "batch": max(int(file.name) for file in Path("/data/autoscaler/offsets").iterdir() if file.name.isdigit()),
    "dags": {
        name: dags._get(f"dags/{name}/dagRuns", limit=1)["total_entries"]
        for name in ("ingest_metrics", "retrain_forecaster")
    },
    "lake": {
        name: {
            "version": found.version,
            "rows": pyarrow.dataset.dataset([str(path) for path in found.paths], format="parquet").count_rows(),
        }
        for name, found in files.items()
    },
    "runs": [run.info.run_id for run in client.search_runs([experiment], max_results=1000)],
}))
"""


def deploy(folder: Path) -> dict[str, Any]:
    """Bring the deployment up, train a champion by its DAGs, move an executor, take it down and bring it up again.

    The job is stopped a little before its load, so that records wait when all goes down; started again, it goes on from
    its checkpoint until all are counted. Builds images, which takes minutes and 15 GB; those stay. Containers, volumes
    and networks of the project are removed at the end.

    Returns:
        `up_s`, seconds until all is healthy, and `again_s`, the second time; `champion`, its version; `moved`,
        executors before and after each of the `decisions` that are confirmed; `produced`, records, of which `waited`
        so many for the job when all went down, and `counted`; `lost`, what was there before `down` and is not after
        it, in words, and `losses`, their number; `sick` and `mlflow_sick`, 1 if the check of Airflow's and of MLflow's
        server failed while their database stood still, else 0; `outside`, what was wrong with the listener of
        `docker/outside.yaml`, in words, and `outside_faults`, their number; `leaked`, where a planted secret stands in
        what all this left, in words, and `leaks`, their number, of so many `searched` logs, files and dumps.

    Raises:
        SiteError: a tool is missing, or something was not so in time.
        subprocess.CalledProcessError: podman or podman-compose failed.
    """
    prepare(folder)
    made, leaks = ComposeProject(PROJECT, folder), Leaks({**SECRETS, "KAFKA_OUTSIDE_PASSWORD": outside.PASSWORD})
    made.compose(f"--podman-build-args={BUILD}", "build", "mlflow")
    try:
        with made.checked():
            up_s = _up(made)
            _switch_on(made)
            champion = made.ask(LEARN)
            _switch_on(made)  # which pauses two of them: here they run as in a deployment
            made.compose("up", "-d", "word-count", "load", profile="demo")
            _wait("a decision moved an executor", lambda: _has_moved(made.ask(MOVED)), MOVED_S)
            podman("stop", "-t", "60", made.container("word-count"))
            time.sleep(WAITS_S)
            podman("stop", "-t", "60", made.container("load"))  # it notes what it has sent
            moved, waits, before = made.ask(MOVED)["moved"], made.ask(COUNTED), made.ask(SEEN)
            leaks.search_logs(made)  # they go with the containers
            made.compose("down", "-t", "60", profile="demo")
            again_s = _up(made)
            counts = _count_the_rest(made)
            after = made.ask(SEEN)
            sick = _list_sick(made)
            leaks.search_database(made)
            leaks.search_logs(made)
            opened = ComposeProject(PROJECT, folder, outside.FILE, told=outside.told(folder / "outside"))
            made.compose("down", "-t", "60", profile="demo")
            opened.compose("up", "-d", "--no-deps", "kafka")
            _wait("the broker is healthy", lambda: opened.health()["kafka"] == "healthy", UP_S)
            faults = outside.list_faults(folder / "outside")
            leaks.search_logs(opened)
            leaks.search_volumes(made)
    finally:
        made.compose("down", "-v", "-t", "20", profile="demo")
        podman("volume", "prune", "--force")  # of this store: those that images ask for and compose does not name
    lost = [*list_lost(before, after), *list_miscounted(counts)]
    return {
        "up_s": round(up_s), "again_s": round(again_s), "champion": champion, "moved": moved, "decisions": len(moved),
        "produced": counts["produced"], "waited": waits["lost"], "counted": counts["counted"], "lost": lost,
        "losses": len(lost), "sick": int(AIRFLOW in sick), "mlflow_sick": int(MLFLOW in sick), "outside": faults,
        "outside_faults": len(faults), "leaked": leaks.found, "leaks": len(leaks.found), "searched": leaks.searched,
    }  # fmt: skip


def list_lost(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Say in words what is less than it was, of what `SEEN` prints.

    Records of topics, champion, the autoscaler's batches, runs of DAGs, versions and rows of the lake's tables, and
    runs in MLflow.
    """
    found = [
        f"{topic}: {after['ends'].get(topic, 0)} records, {end} before"
        for topic, end in before["ends"].items()
        if after["ends"].get(topic, 0) < end
    ]
    if after["champion"] != before["champion"]:
        found.append(f"champion: {after['champion']}, {before['champion']} before")
    if after["batch"] < before["batch"]:
        found.append(f"the autoscaler's batch: {after['batch']}, {before['batch']} before")
    runs = ((dag, after["dags"].get(dag, 0), count) for dag, count in before["dags"].items())
    found += [f"runs of {dag}: {now}, {then} before" for dag, now, then in runs if now < then]
    for table, then in before["lake"].items():
        now = after["lake"].get(table, {"version": None, "rows": 0})
        if now["rows"] < then["rows"]:
            found.append(f"the lake's {table}: {now['rows']} rows, {then['rows']} before")
        if now["version"] is None or now["version"] < then["version"]:
            found.append(f"the lake's {table}: version {now['version']}, {then['version']} before")
    return found + [f"MLflow's run {run}" for run in before["runs"] if run not in after["runs"]]


def list_miscounted(counts: dict[str, int]) -> list[str]:
    """Say in words which records the job has not counted, or twice, of what `compare_counts` returns."""
    said = {"lost": "not counted", "duplicated": "counted twice"}
    return [f"{counts[name]} of {counts['produced']} records {words}" for name, words in said.items() if counts[name]]


def _has_moved(seen: dict[str, Any]) -> bool:
    return bool(seen["moved"]) and seen["events"] >= LEAST_EVENTS


def _count_the_rest(made: ComposeProject) -> dict[str, int]:
    """Start the job again, from its checkpoint, and return its counts once nothing is missing or the time is over."""
    made.compose("up", "-d", "word-count", profile="demo")
    with suppress(SiteError):  # what is missing is told as lost
        _wait("every record is counted", lambda: not made.ask(COUNTED)["lost"], COUNTED_S)
    counts: dict[str, int] = made.ask(COUNTED)
    return counts


def _up(made: ComposeProject) -> float:
    began = time.monotonic()
    made.compose("up", "-d")
    _wait("all services are healthy", lambda: all(state == "healthy" for state in made.health().values()), UP_S)
    return time.monotonic() - began


def _switch_on(made: ComposeProject) -> None:
    """Switch the DAGs on, once Airflow has parsed them; which one it lacks, and why, the command says on stderr."""
    try:
        made.run("airflow-scheduler", *SWITCH_ON)
    except subprocess.CalledProcessError:
        lines = made.last_lines("airflow-dag-processor")
        raise SiteError(f"the DAGs are not switched on. The last lines of the DAG processor:\n{lines}") from None


def _list_sick(made: ComposeProject) -> set[str]:
    """List which of Airflow's and MLflow's servers are said to be sick while their database stands still."""
    found = set[str]()

    def both() -> bool:
        health = made.health()
        found.update(name for name in (AIRFLOW, MLFLOW) if health[name] == "unhealthy")
        return len(found) == 2

    podman("pause", made.container("postgres"))
    try:
        with suppress(SiteError):
            _wait("Airflow and MLflow are said to be sick", both, SICK_S)
    finally:
        podman("unpause", made.container("postgres"))
    return found


def _wait(what: str, holds: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise SiteError(f"{what}: not after {within_s:.0f} s")
        time.sleep(3)
