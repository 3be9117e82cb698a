"""Files that only their owner may read."""

from __future__ import annotations

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Write text to a file that only this user may read (0600), whole or not at all; an earlier file is replaced.

    It is written first beside it, with the suffix `.new`; the folder must exist.

    Raises:
        OSError: it cannot be written or replaced.
    """
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    new.replace(path)
