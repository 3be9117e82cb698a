"""By which name a checkpoint knows the operator of a query with keyed state in Python.

Spark has two, by whether the operator's rows come one by one or in frames of pandas. Its state is the same, and no
query goes on from a checkpoint of the other name. Releases up to November 2026 had frames, which cost more CPU.
"""

from __future__ import annotations

import os
from pathlib import Path

FRAMES, ROWS = "transformWithStateInPandasExec", "transformWithStateInPySparkExec"


def name_for_rows(checkpoint: Path) -> None:
    """Let a query by rows go on from a checkpoint, if there is one; nothing else may have it.

    Raises:
        OSError: a file cannot be read or written.
    """
    _rename(checkpoint, FRAMES, ROWS)


def name_for_frames(checkpoint: Path) -> None:
    """Leave a checkpoint as every release goes on from it, once its query has ended; raises as `name_for_rows`."""
    _rename(checkpoint, ROWS, FRAMES)


def _rename(checkpoint: Path, old: str, new: str) -> None:
    for file in (checkpoint / "state").glob("*/_metadata/v2/[0-9]*"):
        text = file.read_text()
        if old in text:
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # without one Hadoop checks nothing
            whole = file.with_name(f".{file.name}.renamed")
            whole.write_text(text.replace(old, new))
            os.replace(whole, file)
