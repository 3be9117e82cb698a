"""A session: a site is started, one thing is done to one of its parts under live load, and all is counted."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from configs.contract import load_contract
from configs.settings import Settings
from models.policy.core.budget import Promise
from pipelines.airflow.rest import Orchestrator
from pipelines.bench.chaos.attack import Attack, attack, named_command, run_named
from pipelines.bench.chaos.cells import SITE, FaultCell
from pipelines.bench.chaos.judged import judge_account
from pipelines.bench.chaos.shifted_clock import ShiftedClock
from pipelines.bench.chaos.site_under_load import SERVICES, SERVING, fresh_brokers, live_site
from pipelines.bench.chaos.world import World
from pipelines.demo.champion import DAGS, dag_logs
from pipelines.demo.live import LiveReplay, wait_for_forecast
from pipelines.demo.run import left_alive
from pipelines.kafka.broker import Follower
from pipelines.kafka.librdkafka import GROUP
from pipelines.report.recorded.lines import json_lines
from pipelines.spark.checkpoint.repair import CheckpointError, diagnose
from pipelines.stack.context import StackError
from pipelines.stack.stack import Stack

FAST = (("serving", "corrupt"), ("serving", "full"))
"""Cells for which the fast path serves, which has stores."""
BEGIN_S = 20.0
"""Seconds of live load before something is done."""


def run_cell(prepared: Settings, folder: Path, cell: FaultCell) -> dict[str, Any]:
    """Run a session, and return what came of it.

    Args:
        prepared: of `prepare`.
        folder: for the brokers; emptied first.
        cell: what is done.

    Returns:
        `produced`, `counted`, `lost`, `duplicated` records (none of them where something failed before they were
        counted); `seconds` of the fault; `back_s`, from its end until the part was seen at work (None: it was not);
        `command`, which the part named when it refused (None: it did not refuse); `account` (as `judge_account`) with
        `late_s` of `counted_s`; `failed` (in words; empty: nothing); `left` (processes that outlived the site).

    Raises:
        Exception: the site does not come to its load.
    """
    for stale in prepared.var_dir.glob("airflow.damaged-*"):  # of an earlier session
        shutil.rmtree(stale, ignore_errors=True)
    serving = prepared.serving.model_copy(update={"path": "fast"} if cell in FAST else {})
    clock = ShiftedClock(prepared.var_dir / "clock") if cell.fault == "clock" else None
    around = clock.of_all() if clock is not None and cell.part == SITE else nullcontext()
    with around, fresh_brokers(prepared.model_copy(update={"serving": serving}), folder) as (settings, brokers):
        done, failed = list[Attack](), list[str]()
        if serving.path == "fast":
            brokers.allow_group(GROUP)
        with live_site(settings, brokers, cell, clock) as (world, live):
            counts = _attacked(world, live, cell, done, failed)
        if done and cell == ("scheduler", "corrupt"):
            with _told(failed):
                done[0] = _restart_refused(settings, done[0])
    found = done[0] if done else None
    return {
        **counts, **_back_of(found), **_promise(world, found), "failed": failed, "left": left_alive(world.stack),
        "fast_path": serving.path == "fast",
    }  # fmt: skip


def _attacked(world: World, live: LiveReplay, cell: FaultCell, done: list[Attack], failed: list[str]) -> dict[str, int]:
    """Replay the load while something is done to a part, and return the counts; what fails is told."""

    def act() -> None:
        with _told(failed):
            done.append(attack(world, cell))

    timer = threading.Timer(BEGIN_S, act)
    timer.start()
    try:
        with _told(failed):
            live.replay()
            timer.join()
            if cell != ("scheduler", "corrupt"):
                failed += world.ended()
            for name in ("autoscaler", world.job):  # also such as were started again; nothing is decided any more
                world.stack.end(name)
            failed += _damage(world)
            return live.stop()
    finally:
        timer.cancel()
        timer.join()
    return {}


def _damage(world: World) -> list[str]:
    """What is wrong with the job's checkpoint, which may have taken what was damaged elsewhere."""
    try:
        found = diagnose(world.run_dir / f"{world.job}.checkpoint")
    except CheckpointError as error:
        return [f"{error}"]
    return [] if found is None else [f"{len(found.damaged)} files of the checkpoint of {world.job} are damaged"]


@contextmanager
def _told(failed: list[str]) -> Iterator[None]:
    """Tell what fails in the block in words, and go on after it: a session that fails is a result."""
    try:
        yield
    except Exception as error:
        failed.append(f"{type(error).__name__}: {error}")


def _restart_refused(settings: Settings, found: Attack) -> Attack:
    """Start the site again on a database that was damaged: by name it is refused, and comes back by what it names.

    Raises:
        StackError: it names no command, or does not start after it.
    """
    command = None
    try:
        with Stack(settings, SERVICES, fresh=()):
            pass
    except StackError as error:
        command = named_command(str(error))
        if command is None:
            raise
        run_named(command)
    over = time.time()
    with Stack(settings, SERVICES, fresh=()) as stack:
        dags = Orchestrator(stack.settings)
        dags.wait_for_dags(DAGS)
        forecasts = Follower(stack.settings.kafka, ["forecasts"], "latest")
        dags.unpause(SERVING)
        wait_for_forecast(forecasts, dag_logs(stack.settings, SERVING))
        return found._replace(over_s=over, back_s=time.time() - over, command=command)


def _back_of(found: Attack | None) -> dict[str, Any]:
    if found is None:
        return {"seconds": None, "back_s": None, "command": None}
    back_s = None if found.back_s is None else round(found.back_s, 1)
    return {"seconds": round(found.over_s - found.began_s, 1), "back_s": back_s, "command": _general(found.command)}


def _general(command: str | None) -> str | None:
    """A command without this computer's folders."""
    if command is None:
        return None
    return " ".join(Path(word).name if word.startswith("/") else word for word in command.split())


def _promise(world: World, found: Attack | None) -> dict[str, Any]:
    settings, unknown = world.stack.settings, {"account": "unknown", "late_s": None, "counted_s": None}
    if found is None or not (world.run_dir / "decisions.jsonl").exists():
        return unknown
    metrics, decisions = (
        [one for one in json_lines(world.run_dir / f"{name}.jsonl") if one["job"] == world.job]
        for name in ("metrics", "decisions")
    )
    told = [one for one in decisions if "promise" in one["inputs"]]
    if not told:
        return unknown
    promise = Promise.of(load_contract(world.job, settings.contracts_dir))
    account, standing = judge_account(promise, metrics, told[-1], found.began_s), told[-1]["inputs"]["promise"]
    return {"account": account, "late_s": standing["late_s"], "counted_s": standing["seconds"]}
