"""A command's figures, written down: the one way in which `--json FILE` is answered."""

from __future__ import annotations

import functools
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
from pipelines.whole_file import write_text
from pipelines.workers import usable_cores

GIB = 1024**3
LOOP_STEPS = 100_000
OUTPUTS = ("--json", "--page")
FIGURES = "docs/figures"
RELEASED = ROOT / "COMMIT"
"""Written where a release is built, see `docker/release`."""


def write_figure(path: Path | None, data: Any) -> None:
    """Write what a command found to a file as a figure, with its goals; folders are made if need be.

    Command line and seconds are those of this process, date, commit and machine those of now; the rows come from
    `goals.yaml` and have `holds`.

    Args:
        path: of the file, replaced whole if it exists; None to write nothing.
        data: JSON values; all that the command found.

    Raises:
        FigureError: a goal judges something that is no number.
        TypeError: `data` holds something that is no JSON value.
        OSError: the file cannot be written.
    """
    if path is None:
        return
    command_line = format_command(sys.argv[1:])
    command_goals = goals.goals_of(command_line)
    rows = command_goals.fill_rows(data) if command_goals else []
    seconds = time.time() - psutil.Process().create_time()
    figure = Figure(**describe_source(command_line, seconds), rows=rows, data=data)
    write_text(path, figure.to_text())


def describe_source(command: str, seconds: float) -> dict[str, Any]:
    """Describe how, by which code, when and where something was measured, as a figure does.

    A part of a figure that is measured on its own keeps it as `source` in its data, and is shown with it.

    Args:
        command: the command line that measures it again.
        seconds: that it took.
    """
    return {
        "command": command, "commit": find_commit(), "date": date.today().isoformat(), "machine": describe_machine(),
        "seconds": round(seconds, 1),
    }  # fmt: skip


def format_command(words: list[str]) -> str:
    """Format the command line that measures again: "tidecast" and its arguments but `--json` and `--page`."""
    kept, skip = ["tidecast"], False
    for word in words:
        if skip or word in OUTPUTS:
            skip = not skip
        elif not word.startswith(tuple(f"{name}=" for name in OUTPUTS)):
            kept.append(word)
    return shlex.join(kept)


def find_commit() -> str | None:
    """Find the running code's commit, 40 digits: git is asked, else the file COMMIT of a released image; None: neither.

    With `-dirty` where files differ, but for figures: a bench writes its own after each cell.
    """
    changed = ["status", "--porcelain", "--untracked-files=no", "--", ".", f":(exclude){FIGURES}"]
    try:
        found, differ = (
            subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
            for words in (["rev-parse", "HEAD"], changed)
        )
    except (OSError, subprocess.CalledProcessError):
        return RELEASED.read_text().strip() if RELEASED.is_file() else None
    return f"{found}-dirty" if differ else found


@functools.cache
def describe_machine() -> str:
    """Describe the machine by usable cores, their speed and memory (GiB), e.g. "8 cores (30 M Python steps/s), 16 GB".

    The speed is that of a loop that adds squares, by CPU time, the best of five: seconds of two machines compare by it.
    """
    steps_s = max(LOOP_STEPS / _time_loop() for _ in range(5))
    return (
        f"{usable_cores()} cores ({steps_s / 1e6:.2g} M Python steps/s), {psutil.virtual_memory().total / GIB:.0f} GB"
    )


def _time_loop() -> float:
    began = time.process_time()
    total = 0
    for step in range(LOOP_STEPS):
        total += step * step
    return time.process_time() - began
