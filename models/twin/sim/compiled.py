"""What numba keeps of compiled functions is dropped when a source that they have compiled in is newer.

Its cache watches only the file of the function itself, not the constants and functions that this file imports.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from models.policy.core import capacity

SOURCES = (Path(capacity.__file__), *sorted(Path(__file__).parent.glob("*.py")))


def forget_stale(functions: Iterable[Any], sources: Iterable[Path] = SOURCES) -> None:
    """Delete the kept code of `njit(cache=True)` functions that is older than a source; call it before they are."""
    newest = max(source.stat().st_mtime for source in sources)
    for function in functions:
        name = f"{function.__module__.rpartition('.')[2]}.{function.py_func.__qualname__}-*.nb[ci]"
        for kept in Path(function.stats.cache_path).glob(name):
            if kept.stat().st_mtime < newest:
                kept.unlink(missing_ok=True)
