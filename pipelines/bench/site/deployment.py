"""Row: the very `docker/compose.yaml` on stand-ins of the official images: a loop that closes, down and up again."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.bench.site import outside
from pipelines.bench.site.containers import ComposeProject, podman, prepare
from pipelines.bench.site.servers import SiteError

PROJECT = "tidecast-bench"
UP_S, PARSED_S, MOVED_S, SICK_S = 900.0, 300.0, 400.0, 600.0
"""Seconds after which it is given up: all healthy, DAGs switched on, a decision confirmed, a check that should fail."""
BUILD = "--pull=never --network=host --build-arg=TORCH= --ulimit=nproc=4000:4000 --ulimit=nofile=10000:10000"
"""Options of `podman build`, which goes by no configuration's limits; packages are PyPI's alone."""
WELL = ("healthy", "running")
DAGS = ("ingest_metrics", "retrain_forecaster", "serve_forecasts", "maintain_lake")
UNPAUSE = ("airflow", "dags", "unpause", "--yes", "--treat-dag-id-as-regex", "|".join(DAGS))
"""As docs/deploy.md has it."""
LEARN = """
import json
from configs.settings import load
from pipelines.airflow.rest import Orchestrator
from pipelines.demo.champion import train_first_champion
from pipelines.demo.progress import Screen
print(json.dumps(train_first_champion(load(), Orchestrator(load()), Screen())))
"""
SEEN = """
import json
from pathlib import Path
from configs.settings import load
from pipelines.airflow.rest import Orchestrator
from pipelines.kafka.broker import read_records, topic_offsets
from pipelines.registry import Registry
from tidecast.messages import Outcome, decode
settings = load()
kafka, dags = settings.kafka, Orchestrator(settings)
outcomes = [decode(Outcome, record.value) for record in read_records(kafka, "outcomes", 200)]
print(json.dumps({
    "moved": [[one.executors_before, one.executors_after] for one in outcomes if one.status == "confirmed"],
    "champion": Registry(settings).champion_version("word_count"),
    "ends": {
        topic: sum(end for _, end in topic_offsets(kafka, topic).values())
        for topic in ("metrics", "decisions", "outcomes")
    },
    "batch": max(int(file.name) for file in Path("/data/autoscaler/offsets").iterdir() if file.name.isdigit()),
    "dags": {
        name: dags._get(f"dags/{name}/dagRuns", limit=1)["total_entries"]
        for name in ("ingest_metrics", "retrain_forecaster")
    },
}))
"""


def deploy(folder: Path) -> dict[str, Any]:
    """Bring the deployment up, train a champion by its DAGs, move an executor, take it down and bring it up again.

    Builds images, which takes minutes and 15 GB; those stay. Containers, volumes and networks of the project are
    removed at the end.

    Returns:
        `up_s`, seconds until all is healthy, and `again_s`, the second time; `champion`, its version; `moved`,
        executors before and after each of the `decisions` that are confirmed; `lost`, what was there before `down` and
        is not after it, in words, and `losses`, their number; `sick`, whether Airflow's check failed while its database
        stood still; `outside`, what was wrong with the listener of `docker/outside.yaml`, in words.

    Raises:
        SiteError: a tool is missing, or something was not so in time.
        subprocess.CalledProcessError: podman or podman-compose failed.
    """
    prepare(folder)
    made = ComposeProject(PROJECT, folder)
    made.compose(f"--podman-build-args={BUILD}", "build", "mlflow")
    try:
        with made.checked():
            up_s = _up(made)
            _switch_on(made)
            champion = made.ask(LEARN)
            made.compose("up", "-d", "word-count", "load", profile="demo")
            _wait("a decision moved an executor", lambda: bool(made.ask(SEEN)["moved"]), MOVED_S)
            before = made.ask(SEEN)
            made.compose("down", "-t", "60", profile="demo")
            again_s = _up(made)
            after = made.ask(SEEN)
            sick = _is_seen_sick(made)
            opened = ComposeProject(PROJECT, folder, outside.FILE, told=outside.told(folder / "outside"))
            made.compose("down", "-t", "60", profile="demo")
            opened.compose("up", "-d", "--no-deps", "kafka")
            _wait("the broker is healthy", lambda: opened.health()["kafka"] == "healthy", UP_S)
            faults = outside.list_faults(folder / "outside")
    finally:
        made.compose("down", "-v", "-t", "20", profile="demo")
        podman("volume", "prune", "--force")  # of this store: those that images ask for and compose does not name
    lost = list_lost(before, after)
    return {
        "up_s": round(up_s), "again_s": round(again_s), "champion": champion, "moved": before["moved"],
        "decisions": len(before["moved"]), "lost": lost, "losses": len(lost), "sick": sick, "outside": faults,
    }  # fmt: skip


def list_lost(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Say in words what is less than it was: records of topics, champion, the autoscaler's batches, runs of DAGs."""
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
    return found + [f"runs of {dag}: {now}, {then} before" for dag, now, then in runs if now < then]


def _up(made: ComposeProject) -> float:
    began = time.monotonic()
    made.compose("up", "-d")
    _wait("all services are healthy", lambda: all(state in WELL for state in made.health().values()), UP_S)
    return time.monotonic() - began


def _switch_on(made: ComposeProject) -> None:
    """Unpause the DAGs as they come: those that are not parsed yet, Airflow does not know."""
    told = list[str]()

    def known() -> bool:
        told.append(made.run("airflow-scheduler", *UNPAUSE))
        return all(name in "".join(told) for name in DAGS)

    _wait("the DAGs are switched on", known, PARSED_S)


def _is_seen_sick(made: ComposeProject) -> bool:
    """Whether the check of Airflow's server fails while its database stands still."""
    podman("pause", made.container("postgres"))
    try:
        _wait("Airflow is said to be sick", lambda: made.health()["airflow-api-server"] == "unhealthy", SICK_S)
    except SiteError:
        return False
    finally:
        podman("unpause", made.container("postgres"))
    return True


def _wait(what: str, holds: Callable[[], bool], within_s: float) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            raise SiteError(f"{what}: not after {within_s:.0f} s")
        time.sleep(3)
