"""The core: thinking without I/O, clock or globals; here alone, where numba keeps what it has compiled of it.

Numba looks for changes only in the file of a compiled function, not in the constants, functions and classes that it
has from others: after an edit or a move elsewhere it would go on with old code, or fail to find a module. So each state
of these sources has a folder of its own.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path


def kept_in(sources: Path, beside: Path) -> Path:
    """The folder for what is compiled of the Python files under `sources` as they are now; those of others go."""
    digest = hashlib.sha256()
    for source in sorted(sources.rglob("*.py")):
        seen = source.stat()
        digest.update(f"{source.relative_to(sources)} {seen.st_size} {seen.st_mtime_ns}\n".encode())
    folder = beside / f"compiled-{digest.hexdigest()[:16]}"
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        for stale in {*beside.glob("compiled-*")} - {folder}:
            shutil.rmtree(stale, ignore_errors=True)
    return folder


def _compile_apart() -> None:
    room = Path(__file__).parent
    if "NUMBA_CACHE_DIR" in os.environ or not os.access(room, os.W_OK):
        return
    os.environ["NUMBA_CACHE_DIR"] = str(kept_in(room, room / "__pycache__"))
    if "numba" in sys.modules:
        sys.modules["numba"].config.reload_config()


_compile_apart()
