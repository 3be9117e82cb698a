"""How much of the computer a live load takes: memory beyond what was in use before it, and how busy its cores are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import psutil


@dataclass
class ComputerUse:
    """What a load takes of the whole computer, whoever it is that takes it.

    Attributes:
        free_at_start: bytes of memory available when this was made.
        least_free: fewest bytes available at any `look`.
        cores_busy: share of all cores' time in which they were busy, 0 to 1; None before `end_load`.
    """

    free_at_start: int = field(default_factory=lambda: psutil.virtual_memory().available)
    least_free: int = field(default_factory=lambda: psutil.virtual_memory().available)
    cores_busy: float | None = None

    def begin_load(self) -> None:
        """Count the cores' time from now on; until the end nothing else here may call `psutil.cpu_percent`."""
        psutil.cpu_percent()

    def look(self) -> None:
        """Take note of the memory that is available now."""
        self.least_free = min(self.least_free, psutil.virtual_memory().available)

    def end_load(self) -> None:
        """Count the cores' time until now."""
        self.cores_busy = psutil.cpu_percent() / 100

    def facts(self) -> dict[str, Any]:
        """Return entries for `run.json`: `peak_memory_mb` (MiB beyond `free_at_start`), `cores` and `cores_busy`."""
        taken = max(0, (self.free_at_start - self.least_free) // 2**20)
        return {"peak_memory_mb": taken, "cores": psutil.cpu_count(), "cores_busy": self.cores_busy}
