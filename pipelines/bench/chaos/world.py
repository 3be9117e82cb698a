"""A site under load: three brokers with logins, Spark, Airflow, a registry, the managed job and its autoscaler."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from pipelines.bench.chaos.damage import newest, spoil_all, spoil_database, spoil_middle, spoil_store
from pipelines.bench.chaos.shifted_clock import ShiftedClock
from pipelines.bench.site.brokers import NODES, Brokers
from pipelines.bench.site.servers import SiteError
from pipelines.spark.checkpoint.files import Checkpoint
from pipelines.stack.executors import find_executors, oldest_executor
from pipelines.stack.processes import Process, find_processes
from pipelines.stack.stack import Stack

NODE = 2
"""The broker of three to which things are done."""
SCHEDULER = "airflow-scheduler"
SERVICES = (SCHEDULER, "airflow-api-server", "airflow-dag-processor", "spark-master", "spark-worker")
"""Processes of the stack that are to run all the time, beside the job and its autoscaler."""
PATIENCE_S, WHOLE_S = 300.0, 60.0
"""Seconds within which a part is healthy, and within which all run that should."""
_SERVING = re.compile(r"serving(?: fast)?: epoch (\d+), process (\d+)")


@dataclass(frozen=True)
class World:
    """What runs in a session.

    Attributes:
        stack: Spark, Airflow, MLflow and what was started beside them.
        brokers: the three nodes.
        run_dir: folder of the run.
        job: name of the managed job.
        disk: folder of a file system that can be filled, on which a part keeps what it has; None: none has one.
        clock: of a part, or of all, that can be set; None: all have the computer's.
    """

    stack: Stack
    brokers: Brokers
    run_dir: Path
    job: str
    disk: Path | None = None
    clock: ShiftedClock | None = None

    def supervised(self, part: str) -> Process | None:
        """Return the process of a part that this computer's supervisor would start again; None: another part does it.

        A killed executor is replaced by Spark, and a server of forecasts by Airflow.
        """
        name = {"driver": self.job, "autoscaler": "autoscaler", "scheduler": SCHEDULER}.get(part)
        return None if name is None else self.stack.processes[name]

    def processes(self, part: str) -> list[psutil.Process]:
        """Return the processes of a part that get a signal; of the scheduler itself alone, not of its tasks.

        Raises:
            SiteError: there is none.
            psutil.NoSuchProcess: it has just ended.
        """
        if part == "broker":
            return [psutil.Process(self.brokers.pid(NODE))]
        if part == "serving":
            return [psutil.Process(self._server())]
        if part == "executor":
            return [self._executor()]
        process = self.supervised(part)
        assert process is not None
        return [psutil.Process(process.pid)] if part == "scheduler" else find_processes([process.pid])

    def bring_back(self, part: str) -> None:
        """Start a part again that has ended, as its supervisor would; the scheduler is waited for.

        Raises:
            StackError: the scheduler ended, or was not healthy in time.
        """
        if part == "broker":
            self.brokers.start(NODE)
        elif (process := self.supervised(part)) is not None:
            if part != "scheduler":  # what it has left running goes on serving
                self.stack.end(process.name, 0)
            process.wait(30)
            self.stack.respawn(process.name, PATIENCE_S)

    def executors(self) -> set[int]:
        """Return the process ids of all executors."""
        return {one.process.pid for one in find_executors(self.stack.id)}

    def ended(self) -> list[str]:
        """Name the parts that should run and do not, also after a minute."""
        deadline = time.monotonic() + WHOLE_S
        while (found := self._ended()) and time.monotonic() < deadline:
            time.sleep(1.0)  # a server of forecasts comes back with the next run of its DAG
        return found

    def _ended(self) -> list[str]:
        names = [self.job, "autoscaler", *SERVICES]
        found = [name for name in names if not self.stack.processes[name].running()]
        found += [f"broker {node}" for node in NODES if node not in self.brokers.running()]
        try:
            self._server()
        except SiteError:
            found.append("serving")
        return [f"{name} has ended" for name in found]

    def end(self, part: str) -> None:
        """End a part as its supervisor would, or where it has none by SIGTERM.

        Raises:
            SiteError, psutil.NoSuchProcess: as `processes`.
        """
        if part == "broker":
            self.brokers.stop(NODE)
        elif (process := self.supervised(part)) is not None:
            self.stack.end(process.name, 30)
        else:
            for one in self.processes(part):
                one.terminate()

    def local_folders(self) -> list[Path]:
        """Return the folders in which the oldest executor keeps blocks.

        Raises:
            SiteError: there is no executor.
        """
        return [Path(one) for one in self._executor().environ()["SPARK_EXECUTOR_DIRS"].split(":")]

    def spoil(self, part: str) -> None:
        """Damage what a part keeps (`cells.CORRUPTED`).

        Raises:
            SiteError: there is no executor.
            ValueError: it has kept nothing yet.
            OSError: a file cannot be written.
        """
        settings = self.stack.settings
        if part == "broker":
            topic = settings.kafka.topic("events")
            segments = self.brokers.data(NODE).glob(f"{topic}-*/*.log")
            spoil_middle(newest(segments, by=lambda file: file.stat().st_size))
        elif part == "executor":
            for folder in self.local_folders():
                spoil_all(folder)
        elif part == "serving":
            spoil_store(settings.store_dir / "hot" / "data.mdb")
        elif part == "scheduler":
            spoil_database(settings.var_dir / "airflow" / "airflow.db")
        else:
            checkpoint = self.run_dir / (f"{self.job}.checkpoint" if part == "driver" else "autoscaler")
            version = Checkpoint(checkpoint).commits[-1] + 1
            spoil_middle(newest((checkpoint / "state").rglob(f"{version}.changelog")))

    def _executor(self) -> psutil.Process:
        found = oldest_executor(self.stack.id, self.stack.processes[self.job].pid)
        if found is None:
            raise SiteError(f"{self.job} has no executor.")
        return found.process

    def _server(self) -> int:
        """Process of the newest server of forecasts that still runs, as the logs of its DAG say, or its own."""
        logs = [*(self.stack.settings.var_dir / "airflow" / "logs").rglob("*.log")]
        if (own := self.stack.processes.get("serving")) is not None:
            logs.append(own.log)
        told = (one for file in logs for one in _SERVING.findall(file.read_text(errors="replace")))
        running = [(int(epoch), int(pid)) for epoch, pid in told if psutil.pid_exists(int(pid))]
        if not running:
            raise SiteError("no server of forecasts runs.")
        return max(running)[1]
