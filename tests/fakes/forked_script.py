"""A script that runs in a fork of the test's process, which has imported what a Python of its own takes seconds for."""

from __future__ import annotations

import io
import logging
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.fakes.waiting import PATIENCE_S

STREAMS = ("stdout", "stderr")


def run_script(script: str, folder: Path, *arguments: str) -> CompletedProcess[str]:
    """Run it in a folder as `python -c` would, to the end of its threads; what it sets in modules ends with it."""
    process = multiprocessing.get_context("fork").Process(target=_become, args=(script, folder, arguments))
    process.start()
    process.join(PATIENCE_S)
    if process.exitcode is None:
        process.kill()
        process.join()
        pytest.fail(f"it has not ended within {PATIENCE_S:g} s")
    return CompletedProcess([script, *arguments], process.exitcode, *((folder / name).read_text() for name in STREAMS))


def _become(script: str, folder: Path, arguments: Sequence[str]) -> None:
    os.chdir(folder)
    for number, name in enumerate(STREAMS, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
    streams = (io.FileIO(number, "w", closefd=False) for number in (1, 2))
    sys.stdout, sys.stderr = (io.TextIOWrapper(stream, write_through=True) for stream in streams)
    sys.argv = ["-c", *arguments]
    # What pytest would keep to itself of what goes wrong.
    threading.excepthook, sys.unraisablehook = threading.__excepthook__, sys.__unraisablehook__
    warnings.resetwarnings()
    warnings.showwarning = warnings._showwarning_orig
    logging.getLogger().handlers.clear()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    exec(compile(script, "<string>", "exec"), {"__name__": "__main__"})
