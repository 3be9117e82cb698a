"""A site for a session: three brokers, a stack beside them, a champion that was trained before, and the job's load."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from configs.settings import Settings
from pipelines.airflow.rest import Orchestrator
from pipelines.bench.chaos.cells import FaultCell
from pipelines.bench.chaos.disks import small_disk
from pipelines.bench.chaos.shifted_clock import ShiftedClock
from pipelines.bench.chaos.world import World
from pipelines.bench.site.brokers import Brokers
from pipelines.bench.site.rings import REPLAY, TRAINING
from pipelines.demo.champion import DAGS, dag_logs, train_first_champion
from pipelines.demo.live import LiveReplay, wait_for_forecast, write_run_json
from pipelines.demo.progress import Screen
from pipelines.demo.run import create_run_dir
from pipelines.jobs.history import publish_history
from pipelines.kafka.broker import Follower
from pipelines.kafka.topics import create_topics
from pipelines.registry import Registry
from pipelines.stack.addresses import environment_variable
from pipelines.stack.stack import Stack

SERVICES = {"spark", "airflow", "mlflow"}
SERVING = "serve_forecasts"


def prepare(settings: Settings, folder: Path) -> Settings:
    """Train a champion, if there is none in the registry below a folder, and return the settings of its sessions.

    Raises:
        StackError, DemoError, OrchestratorError, BrokerError, RegistryError: a service does not start or answer.
    """
    update = {
        "var": folder / "var", "replay": settings.replay.model_copy(update=REPLAY),
        "training": settings.training.model_copy(update=TRAINING),
        "serving": settings.serving.model_copy(update={"store": Path("fast")}),  # below `var`: it is emptied
    }  # fmt: skip
    own = settings.model_copy(update=update)
    with Stack(own, SERVICES | {"broker"}) as stack:
        registry = Registry(stack.settings)
        if registry.champion_version(own.job.name) is None:
            shutil.rmtree(own.lake_address, ignore_errors=True)  # of an earlier broker
            create_topics(stack.settings.kafka)
            train_first_champion(stack.settings, Orchestrator(stack.settings), Screen())
    return own


@contextmanager
def fresh_brokers(prepared: Settings, folder: Path) -> Iterator[tuple[Settings, Brokers]]:
    """Yield three brokers without a record, and the settings by which everybody reaches them.

    Args:
        prepared: of `prepare`; what it has of earlier brokers' records, in lake and store, is removed.
        folder: for the brokers; emptied first.

    Raises:
        SiteError: they do not start.
        OSError: a folder cannot be written.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with Brokers(folder / "brokers") as brokers:
        settings = prepared.model_copy(update={"kafka": prepared.kafka.model_copy(update=brokers.section())})
        for stale in (settings.store_dir, settings.lake_address):
            shutil.rmtree(stale, ignore_errors=True)
        yield settings, brokers


@contextmanager
def live_site(
    settings: Settings, brokers: Brokers, cell: FaultCell | None = None, clock: ShiftedClock | None = None
) -> Iterator[tuple[World, LiveReplay]]:  # fmt: skip
    """Yield a stack on which a champion serves the job, and the job's load, for which it is warm; `replay` begins it.

    Args:
        settings: of `fresh_brokers`.
        brokers: likewise.
        cell: what will be done, where that needs a disk that can be filled, or a way that can be cut.
        clock: that will be set, of the cell's part; None: of none.

    Raises:
        Exception: a part does not start, or does not get warm.
    """
    began = time.time()
    with Stack(settings, SERVICES, fresh=SERVICES - {"mlflow"}) as stack:
        own = stack.settings
        create_topics(own.kafka)
        dags, run_dir = Orchestrator(own), create_run_dir(own)
        version = Registry(own).champion_version(own.job.name) or "none"
        write_run_json(own, run_dir, began, {"champion": version})
        publish_history(own)
        dags.wait_for_dags(DAGS)
        forecasts = Follower(own.kafka, ["forecasts"])
        fault, part = ("", "") if cell is None else (cell.fault, cell.part)
        folders = {
            "driver": run_dir / f"{own.job.name}.checkpoint", "autoscaler": run_dir / "autoscaler",
            "serving": own.store_dir,
        }  # fmt: skip
        disk = folders[part] if fault == "full" else None
        world = World(stack, brokers, run_dir, own.job.name, disk, clock)
        given = {environment_variable("broker"): brokers.far} if fault == "cut" else {}
        if clock is not None:
            given = clock.environment
        with nullcontext() if world.disk is None else small_disk(world.disk):
            if (part, fault) == ("serving", "clock"):  # a process beside the DAG, for Airflow's clock stays right
                log = stack.spawn("serving", [sys.executable, "-m", "tidecast", "serve"], given).log
            else:
                log = dag_logs(own, SERVING)
                dags.unpause(SERVING)
            name = own.job.name if part == "driver" else part  # a way that is cut is the driver's
            live = LiveReplay(stack, own, run_dir, Screen(), began, {name: given})
            live.start()
            wait_for_forecast(forecasts, log)
            yield world, live
