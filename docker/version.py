"""The version of what is built, read by the build (`tool.hatch.version` in pyproject.toml): it rises with each commit.

Of a clone the newest commit's time, with `+dirty` and the present one where a file of the wheel differs from it; of a
released tree, which is no clone, SOURCE_DATE_EPOCH (docker/release); where git does not answer and of neither, BASE.
"""

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

BASE = "0.1.0"
ROOT = Path(__file__).parent.parent
IN_WHEEL = ("tidecast", "LICENSE", "pyproject.toml", "docker/version.py")


def find_version(root: Path) -> str:
    """Return the version of the tree under a folder, as PEP 440 has it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    if (root / ".git").exists():
        with suppress(OSError, subprocess.CalledProcessError):
            committed, changed = git("log", "-1", "--format=%ct"), git("status", "--porcelain", "--", *IN_WHEEL)
            return f"{BASE}.post{_format(committed)}" + (f"+dirty.{_format()}" if changed else "")
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    return f"{BASE}.post{_format(epoch)}" if epoch else BASE


def _format(epoch: str | None = None) -> str:
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(None if epoch is None else int(epoch)))


__version__ = find_version(ROOT)
