"""`tidecast bench team --parts real`: pairs of sessions on a broker and a cluster of their own, kept in the figure."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil

from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.bench.team.real.mix import (
    CORES,
    DAYS,
    FULL_BATCH,
    HOURS,
    SERVICE_S,
    SPEED,
    WEIGHTS,
    draw_load,
    known_shares,
)
from pipelines.bench.team.real.session import run_session
from pipelines.bench.team.real.sides import SIDES, STATIC
from pipelines.bench.team.real.summary import summarise
from pipelines.figures.written import find_commit
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.processes import ProcessError
from pipelines.stack.stack import Stack

PAIRS, LOOK_S = len(DAYS), 5.0
"""Pairs of sessions, and for how long the cores are watched before one, seconds."""


def measure_real(
    settings: Settings, earlier: Mapping[str, Any], save: Callable[[dict[str, Any]], None] = lambda found: None,
    hours: float = HOURS,
) -> dict[str, Any]:  # fmt: skip
    """Run every session of which none is kept; about twelve minutes each.

    Args:
        settings: without the address of a service.
        earlier: figures of an earlier call, whose sessions of the same length count; empty: all are run.
        save: called with the figures after each session.
        hours: of the loads' day.

    Returns:
        As `summary.summarise`, with the `commits` at which sessions were run, and these as `kept`.

    Raises:
        SettingsError: the address of a service is set.
        StackError, PortError, JavaError, JarsError: a service does not start. A session in which a process fails is
            said and left out.
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        OSError: a file cannot be written.
    """
    if settings.spark.master:
        raise SettingsError(
            f"TIDECAST_SPARK__MASTER={settings.spark.master}: both sides are measured on a cluster of the bench's own. "
            "Unset it for this command."
        )
    own = isolated_settings(settings, "bench")
    own = own.model_copy(update={
        "var": own.var_dir / "team", "spark": own.spark.model_copy(update={"worker_cores": CORES}),
        "job": own.job.model_copy(update={"service_ms": 1000 * SERVICE_S, "max_offsets_per_trigger": FULL_BATCH}),
        "replay": own.replay.model_copy(update={"speed": SPEED}),
    })  # fmt: skip
    order = [(pair, side) for pair in range(PAIRS) for side in (SIDES if pair % 2 == 0 else SIDES[::-1])]
    kept = {
        _cell(*cell): session for cell in order
        if (session := earlier.get("kept", {}).get(_cell(*cell))) and session["hours"] == hours
    }  # fmt: skip
    left = [cell for cell in order if _cell(*cell) not in kept]
    if left:
        with Stack(own, {"broker", "spark"}) as stack:
            for number, (pair, side) in enumerate(left, 1):
                began, busy = time.monotonic(), psutil.cpu_percent(LOOK_S) / 100
                found = _session(stack, pair, side, hours)
                if found is None:  # it is left to another call
                    continue
                kept[_cell(pair, side)] = {**found, "hours": hours, "commit": find_commit(), "busy_before": busy}
                cost = sum(WEIGHTS[job] * one["late_s"] for job, one in found["jobs"].items())
                print(f"pair {pair + 1}, {side}: late seconds by their weights {cost:.0f}; {len(left) - number} left, "
                      f"{time.monotonic() - began:.0f} s each", flush=True)  # fmt: skip
                save(figures(kept))
    return figures(kept)


def _session(stack: Stack, pair: int, side: str, hours: float) -> dict[str, Any] | None:
    folder = stack.settings.var_dir / "sessions" / _cell(pair, side)
    shutil.rmtree(folder, ignore_errors=True)  # of a session that was broken off
    loads = {job: draw_load(job, pair, hours) for job in WEIGHTS}
    shares = known_shares({job: load.trace for job, load in loads.items()})
    kafka = stack.settings.kafka.model_copy(update={"prefix": f"{_cell(pair, side)}."})
    try:
        found = run_session(stack, stack.settings.model_copy(update={"kafka": kafka}), folder, side, loads, shares)
    except ProcessError as error:
        print(f"pair {pair + 1}, {side}: {error}", flush=True)
        return None
    return {**found, "shares": shares if side == STATIC else None}


def figures(kept: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Summarise the pairs of which both sessions are there."""
    pairs = [
        {side: kept[_cell(pair, side)] for side in SIDES} for pair in range(PAIRS)
        if all(_cell(pair, side) in kept for side in SIDES)
    ]  # fmt: skip
    commits = sorted({one["commit"] or "unknown" for one in kept.values()})
    return {**summarise(pairs), "commits": commits, "kept": dict(kept)}


def _cell(pair: int, side: str) -> str:
    return f"{pair + 1}-{side}"
