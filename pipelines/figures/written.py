"""A command's figures, written down: the one way in which `--json FILE` is answered."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import psutil

from configs.settings import ROOT
from pipelines.figures import goals
from pipelines.figures.form import Figure

GIB = 1024**3
OUTPUTS = ("--json", "--page")


def write_figure(path: Path | None, data: Any) -> None:
    """Write a command's figure to a file; does nothing for None. Folders are made if need be.

    The command line is that of this process, the seconds are those since it began; rows and goals come from
    `goals.yaml`.

    Args:
        path: of the file.
        data: JSON values; all that the command found.

    Raises:
        FigureError: a goal judges something that is no number.
        OSError: the file cannot be written.
    """
    if path is None:
        return
    said = format_command(sys.argv[1:])
    asked = goals.goals_of(said)
    rows = asked.answered(data) if asked else []
    seconds = round(time.time() - psutil.Process().create_time(), 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(said, find_commit(), date.today().isoformat(), describe_machine(), seconds, rows, data)
    path.write_text(figure.text(), encoding="utf-8")


def format_command(words: list[str]) -> str:
    """Return the command line that measures again: "tidecast" and the words, without the options of `OUTPUTS`."""
    kept, skip = ["tidecast"], False
    for word in words:
        if skip or word in OUTPUTS:
            skip = not skip
        elif not word.startswith(tuple(f"{name}=" for name in OUTPUTS)):
            kept.append(word)
    return shlex.join(kept)


def find_commit() -> str | None:
    """Return the commit of the running code, with `-dirty` where files differ from it; None outside of a clone."""
    asked = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def describe_machine() -> str:
    """Return the number of usable cores and the memory of this machine as text, e.g. "8 cores, 16 GB"."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {psutil.virtual_memory().total / GIB:.0f} GB"
