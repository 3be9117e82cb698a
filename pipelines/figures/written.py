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


def write(path: Path | None, data: Any) -> None:
    """Write what a command measured where a file was given, in a new folder if need be; rows as `goals.yaml` asks.

    Args:
        path: of the file.
        data: JSON values; all that the command found.
    """
    if path is None:
        return
    said = command(sys.argv[1:])
    asked = goals.of(said)
    rows = asked.answered(data) if asked else []
    seconds = round(time.time() - psutil.Process().create_time(), 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure(said, commit(), date.today().isoformat(), machine(), seconds, rows, data)
    path.write_text(figure.text(), encoding="utf-8")


def command(words: list[str]) -> str:
    """The command line that measures again: without the files that it wrote."""
    kept, skip = ["tidecast"], False
    for word in words:
        if skip or word in OUTPUTS:
            skip = not skip
        elif not word.startswith(tuple(f"{name}=" for name in OUTPUTS)):
            kept.append(word)
    return shlex.join(kept)


def commit() -> str | None:
    """The code that measured, `-dirty` where it was changed since; None outside of a clone."""
    asked = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        return subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def machine() -> str:
    """Cores that this process may use, and the memory there is."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cores} cores, {psutil.virtual_memory().total / GIB:.0f} GB"
