"""`tidecast bench backfill`: all cells of some rows in turn, each kept, on a broker and cluster of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psutil

from configs.errors import SettingsError
from configs.settings import ROOT, Settings
from pipelines.bench.backfill.arrangement import EXECUTORS, TRIGGER_S
from pipelines.bench.backfill.cells import Found, MeasuredCell, forget, keep, read_kept
from pipelines.bench.backfill.faults import FaultySession
from pipelines.bench.backfill.loads import PARTITIONS
from pipelines.bench.backfill.outages import OutageSession
from pipelines.bench.backfill.rows import TableRow, choose_rows, limit_of, plan_cells, summarise
from pipelines.bench.backfill.session.faults import measure_faults
from pipelines.bench.backfill.session.outage import measure_outage
from pipelines.bench.backfill.session.recorded import read_session
from pipelines.bench.backfill.session.run import run_session
from pipelines.bench.backfill.session.workload import measure_workload
from pipelines.bench.backfill.text import describe_cell
from pipelines.bench.backfill.workloads import WorkloadSession
from pipelines.figures.form import read_figure
from pipelines.figures.written import find_commit
from pipelines.kafka.topics import create_topics
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack

LOOK_S = 5.0  # how long the cores are watched before a session, wall seconds
OVERHEAD_S = 160.0
"""What a session takes beside its minutes, until one was run."""
MOST_OFFSETS, NEVER_S = 2000, 86_400.0
CONTROLLER = ROOT / "docs" / "figures" / "controller.json"
"""Figure of `tidecast bench controller`, which measures what a decision costs."""


def measure_backfills(
    settings: Settings, names: Sequence[str], minutes: float | None, resume: bool,
    save: Callable[[dict[str, Any]], None] = lambda figures: None, before: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Run the cells of some rows for real; blocks, for hours where all are run, and prints a line per cell.

    Starts a broker and a Spark cluster with their state in `var/bench/backfill` and ends them. Finished cells stay
    there; figures are made of all that are kept, whichever rows were asked for.

    Args:
        settings: without an address of a broker, Spark master, registry or Airflow.
        names: of rows; none: all.
        minutes: of each cell; None: as the rows say. Shorter cells than those are kept and told, and not judged.
        resume: keep what earlier calls measured of these rows, and run only what is left.
        save: called with the figures after each cell.
        before: figures of an earlier call, perhaps on another computer: what they say of rows of which no cell is kept
            here is taken over.

    Returns:
        As `rows.summarise`, with `controller`, from its own figure.

    Raises:
        SettingsError: no such row, or an address is configured.
        StackError, ProcessError, PortError, JavaError, JarsError, OSError: broker, Spark or a job does not start, a
            stack runs on the folder already, or a job ended.
        BrokerError, kafka.errors.KafkaError: the broker does not answer.
        RunError, KeyError, ValueError: what a session left is broken.
    """
    planned = plan_cells(choose_rows(names), minutes)
    settings = own_settings(settings)
    folder = settings.var_dir / "cells"
    kept = read_kept(folder)
    left = [cell for cell in planned if not resume or cell not in kept]
    if left:
        with Stack(settings, {"broker", "spark"}) as stack:
            if not resume:  # only now nobody else measures there
                forget(folder, {(cell.row, cell.load) for cell in left})
                kept = read_kept(folder)
            create_topics(stack.settings.kafka)
            spent: list[tuple[MeasuredCell, float]] = []
            for number, cell in enumerate(left, 1):
                began = time.monotonic()
                kept[cell] = _run(stack, cell, planned[cell], kept)
                spent.append((cell, time.monotonic() - began))
                line = describe_cell(cell, kept[cell])
                print(f"cell {number} of {len(left)}, {line}; {_rest(left[number:], spent, planned)}", flush=True)
                save(_figures(kept, before))
    return _figures(kept, before)


def own_settings(settings: Settings) -> Settings:
    """Return settings with state, contracts and services of the bench's own, and a cluster of EXECUTORS cores.

    Raises:
        SettingsError: an address of a broker, Spark master, registry or Airflow is configured.
    """
    if settings.spark.master:
        raise SettingsError(
            f"TIDECAST_SPARK__MASTER={settings.spark.master}: all arms are measured on a cluster of the bench's own. "
            "Unset it for this command."
        )
    settings = isolated_settings(settings, "bench")
    var = settings.var_dir / "backfill"
    sections = {
        "kafka": {"event_partitions": PARTITIONS}, "spark": {"worker_cores": EXECUTORS},
        "job": {"trigger": f"{TRIGGER_S} seconds", "max_offsets_per_trigger": MOST_OFFSETS, "state_partitions": 2},
        "autoscaler": {"policy": "mpc", "mode": "act", "alias_poll_s": NEVER_S},  # there is no registry to look at
    }  # fmt: skip
    changed = {name: getattr(settings, name).model_copy(update=values) for name, values in sections.items()}
    return settings.model_copy(update={"var": var, "contracts": var / "contracts", **changed})


def _run(stack: Stack, cell: MeasuredCell, row: TableRow, kept: Mapping[MeasuredCell, Found]) -> Found:
    folder, how = stack.settings.var_dir / "cells", row.arrange(cell)
    shutil.rmtree(folder / cell.name, ignore_errors=True)  # of a session that was broken off
    busy = psutil.cpu_percent(LOOK_S) / 100
    if isinstance(how, OutageSession):
        showed = measure_outage(stack, cell, how, folder / cell.name)
    elif isinstance(how, FaultySession):
        showed = measure_faults(stack, cell, how, folder / cell.name)
    elif isinstance(how, WorkloadSession):
        showed = measure_workload(stack, cell, how, folder / cell.name)
    else:
        run_session(stack, cell, how, limit_of(kept, cell, row), folder / cell.name)
        showed = read_session(folder / cell.name, how)
    found = {**showed, "commit": find_commit(), "busy_before": busy}
    keep(folder, cell, found)
    return found


def _figures(kept: Mapping[MeasuredCell, Found], before: Mapping[str, Any] | None) -> dict[str, Any]:
    controller = read_figure(CONTROLLER)
    return {**summarise(kept, before), "controller": {**controller.data, "commit": controller.commit}}


def _rest(
    left: Sequence[MeasuredCell], spent: Sequence[tuple[MeasuredCell, float]], planned: Mapping[MeasuredCell, TableRow]
) -> str:
    """How many cells are left, and about how long they take."""
    if not left:
        return "none left"
    beside = [seconds - planned[cell].arrange(cell).expected_s for cell, seconds in spent]
    overhead_s = max(sum(beside) / len(beside), 0.0) if beside else OVERHEAD_S
    seconds = sum(planned[cell].arrange(cell).expected_s + overhead_s for cell in left)
    return f"{len(left)} left, about {seconds / 60:.0f} min"
