"""Files that are written whole or not at all, whatever ends the process or the host."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any


def write_json(file: Path, data: Any) -> None:
    """Write JSON to a file atomically, see `write_text`.

    Raises:
        OSError: the folder or the file cannot be written.
        TypeError: `data` holds a value that JSON does not know; the file is as before.
    """
    write_text(file, json.dumps(data))


def write_text(file: Path, text: str) -> None:
    """Write text to a file atomically: readers see the old or the new content. Creates the folder if need be.

    A link is followed. What is no file, as `/dev/stdout`, is written to as it is.

    Raises:
        OSError: the folder or the file (first `.<name>.new` beside it) cannot be written; the file is as before.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists() and not file.is_file():
        file.write_text(text, encoding="utf-8")
        return
    file = file.resolve()
    new = file.with_name(f".{file.name}.new")
    try:
        with new.open("w", encoding="utf-8") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())  # else a crash of the host may leave it empty under its new name
        os.replace(new, file)
    except BaseException:
        with suppress(OSError):
            new.unlink()  # a full disk has no room for what is cut off
        raise
