"""The table of forecasters on every shipped series and step; a run that was broken off goes on cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.bench.forecast.cells import evaluate_shipped, map_in_processes
from pipelines.figures.form import read_figure
from pipelines.figures.written import write_figure
from pipelines.traces.shipped import list_shipped

Cells = list[dict[str, Any]]


def evaluate_all_shipped(
    models: Iterable[str], horizon: int, processes: int, report_progress: Callable[[str], None],
    file: Path | None = None, resume: bool = False,
) -> Cells:  # fmt: skip
    """Run `evaluate_shipped` on every shipped series and step.

    Args:
        models: names of the catalogue.
        horizon: steps ahead.
        processes: how many; 1 for this one.
        report_progress: is called with a line of progress as each is done.
        file: finished cells are written there, over what it held; None writes nothing.
        resume: take the cells that the file holds of an earlier run of the same models, and evaluate only the others.

    Raises:
        SettingsError: an unknown model.
        SeriesError: a series is too short for the horizon.
        FigureError, KeyError, TypeError: the file to resume from is no figure, or not of this command.
        OSError: the file cannot be read or written.
    """
    names, labels = list(models), [cell.label for cell in list_shipped()]
    kept: Cells = read_figure(file).data["cells"] if resume and file is not None and file.exists() else []
    known = {cell["cell"]: cell for cell in kept if set(names) <= {*cell["models"], *cell["skipped"]}}
    left = [label for label in labels if label not in known]
    if known:
        report_progress(f"{len(known)} cells are kept, {len(left)} are left")

    def keep(result: dict[str, Any]) -> None:
        known[result["cell"]] = result
        write_figure(file, {"cells": [known[label] for label in labels if label in known]})

    work = partial(evaluate_shipped, models=names, horizon=horizon)
    map_in_processes(work, left, processes, report_progress, keep)
    return [known[label] for label in labels]
