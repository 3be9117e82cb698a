"""The cells of the table: six parts, and what is done to each; and what is done beyond it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

PARTS = ("broker", "driver", "executor", "autoscaler", "serving", "scheduler")
SITE = "site"
"""All parts together: brokers, Spark, Airflow, MLflow, the job, its load, and the autoscaler."""
FAULTS: Mapping[str, str] = {
    "kill": "SIGKILL",
    "pause": "SIGSTOP for 20 s",
    "restart": "SIGTERM, and started again",
    "corrupt": "killed, its state damaged, and started again",
}
CORRUPTED: Mapping[str, str] = {
    "broker": "64 bytes of the largest segment of `events`, on one node of three",
    "driver": "64 bytes of the changelog that its newest committed batch left, in its checkpoint",
    "executor": "every file in the local folder of the job's executors, while they run",
    "autoscaler": "64 bytes of the changelog that its newest committed batch left, in its checkpoint",
    "serving": "every page but the first two of its hot store (LMDB), on the fast path",
    "scheduler": "every page but the first of its database (SQLite)",
}


class FaultCell(NamedTuple):
    """A part, and what is done to it."""

    part: str
    fault: str

    @property
    def name(self) -> str:
        """As it is asked for."""
        return f"{self.part}-{self.fault}"


TABLE: Mapping[str, FaultCell] = {(cell := FaultCell(part, fault)).name: cell for fault in FAULTS for part in PARTS}
FURTHER: Mapping[FaultCell, str] = {
    FaultCell("driver", "cut"): "nothing passes between the job and all three brokers for 20 s",
    FaultCell("driver", "full"): "no room on the file system of its checkpoint for 20 s",
    FaultCell("autoscaler", "full"): "no room on the file system of its checkpoint for 20 s",
    FaultCell("serving", "full"): "no room on the file system of its stores for 20 s, on the fast path",
    FaultCell("driver", "clock"): "its wall clock is set back by an hour, and right again after 20 s",
    FaultCell("autoscaler", "clock"): "its wall clock is set back by an hour, and right again after 20 s",
    FaultCell("serving", "clock"): "its wall clock is set back by an hour, and right again after 20 s",
    FaultCell(SITE, "clock"): "the wall clock of all of it is set back by an hour, and right again after 20 s",
}
CELLS: Mapping[str, FaultCell] = {**TABLE, **{cell.name: cell for cell in FURTHER}}
