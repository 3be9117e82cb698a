"""When a process began, by which it is told from a later one with the same number, whatever is done to the clock."""

from __future__ import annotations

from pathlib import Path

import psutil

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return what tells this boot of the computer from others; "" where the system does not say, as on macOS."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def began_s(pid: int) -> float:
    """Return when a process began, in seconds since the boot; where there is no `boot_id`, since 1970.

    Since 1970 the system reckons it from what the clock shows now: whoever sets that moves the beginning of all.

    Raises:
        psutil.Error: there is no such process, or this user may not inspect it.
    """
    created: float = psutil.Process(pid).create_time()
    booted: float = psutil.boot_time() if boot_id() else 0.0
    return created - booted
