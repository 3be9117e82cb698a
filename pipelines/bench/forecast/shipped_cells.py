"""The table of forecasters on every shipped series and step; a run that was broken off goes on cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.bench.forecast.cells import evaluate_shipped, map_in_processes
from pipelines.figures.resumed import read_resumed
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
        resume: take the cells that the file holds of an earlier run of the same models and horizon, and evaluate only
            the others.

    Raises:
        SettingsError: an unknown model, or the file to resume from is of other models, or of another horizon.
        SeriesError: a series is too short for the horizon.
        FigureError: the file to resume from is no figure.
        OSError: the file cannot be read or written.
    """
    labels = [cell.label for cell in list_shipped()]
    asked: dict[str, Any] = {"models": list(models), "horizon": horizon}
    known = {cell["cell"]: cell for cell in read_resumed(file if resume else None, asked).get("cells", [])}
    left = [label for label in labels if label not in known]
    if known:
        report_progress(f"{len(known)} cells are kept, {len(left)} are left")

    def keep(result: dict[str, Any]) -> None:
        known[result["cell"]] = result
        write_figure(file, {**asked, "cells": [known[label] for label in labels if label in known]})

    work = partial(evaluate_shipped, **asked)
    map_in_processes(work, left, processes, report_progress, keep)
    return [known[label] for label in labels]
