"""JSON files that are written whole or not at all, whatever ends the process or the host."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write_json(file: Path, data: Any) -> None:
    """Write JSON to a file atomically: readers see the old or the new content. Creates the folder if need be.

    Raises:
        OSError: the folder or the file (first `.<name>` beside it) cannot be written.
        TypeError: `data` holds a value that JSON does not know; the file is as before.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}")
    with new.open("w") as written:
        written.write(json.dumps(data))
        written.flush()
        os.fsync(written.fileno())  # else a crash of the host may leave it empty under its new name
    os.replace(new, file)
