"""The live part of a run: the managed job and the autoscaler under a replayed load, watched to its end."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from configs.contract import load_contract
from configs.settings import Settings
from pipelines.demo.champion import DemoError
from pipelines.demo.computer_use import ComputerUse
from pipelines.demo.correction import Correction, begin_correction, judge_windows
from pipelines.demo.progress import LiveFigures, Screen
from pipelines.jobs.truth import compare_counts, read_counts
from pipelines.kafka.broker import Follower
from pipelines.kafka.connection import BrokerError
from pipelines.report.recorded.backfill import write_backfill
from pipelines.report.recorded.dump import dump_topics
from pipelines.stack.processes import Process
from pipelines.stack.stack import Stack
from tidecast.messages import Decision, Forecast, MessageError, MetricSample, decode
from tidecast.orders import ReplayProgress

_KINDS: dict[str, Any] = {
    "metrics": MetricSample, "forecasts": Forecast, "decisions": Decision, "replays": ReplayProgress,
}  # fmt: skip
PATIENCE_S = 300.0
"""Wall seconds waited for what is slow but has not failed: with a fifth of a core per process it takes minutes."""
AFTER_S = 100.0
"""Wall seconds after a backfill is to have read all within which it may still end; then the run goes on without it."""
WARM_UPS = 6
"""Small counted batches before the load: the first batches of a cold driver take seconds."""


@dataclass
class LiveReplay:
    """One live replay on a running stack; everything it leaves is in `run_dir`.

    Attributes:
        stack: on which the processes are started.
        settings: the stack's, addresses filled in.
        run_dir: folder of the run.
        screen: where progress is shown.
        began: epoch seconds; older records on the topics are not the run's.
        environment: of the processes that it starts, by name, beyond the stack's.
        use: of the computer, while the load is replayed.
    """

    stack: Stack
    settings: Settings
    run_dir: Path
    screen: Screen
    began: float = field(default_factory=time.time)
    environment: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    _started: list[Process] = field(default_factory=list)
    use: ComputerUse = field(default_factory=ComputerUse)
    _correction: Correction | None = None
    _autoscaler: Process | None = None

    def start_autoscaler(self) -> Process:
        """Start the autoscaler, unless this was done, without waiting for it; until there is load it decides nothing.

        Raises:
            AbandonedError, ProcessError, OSError: as `start`.
        """
        if self._autoscaler is None:
            checkpoint = str(self.run_dir / "autoscaler")
            self._autoscaler = self._spawn("autoscaler", "tidecast", "autoscale", "--checkpoint", checkpoint)
        return self._autoscaler

    def start(self) -> None:
        """Start the autoscaler, the managed job and `job.also`, and warm them up; returns when the first two are ready.

        Each of its 14 waits (where the job begins; six times a warm-up load and the job's taking it; the autoscaler)
        may take `PATIENCE_S` (300 s). What was started goes on running, after an error too, until `stop` or the stack's
        end.

        Raises:
            DemoError: a warm-up load failed.
            subprocess.TimeoutExpired: a warm-up load did not end in time.
            AbandonedError: the stack was stopped.
            ProcessError: a program cannot be executed, ended, or was not ready in time, or the keeper is gone.
            OSError: a log or a file of the run cannot be read or written.
        """
        name, folder = self.settings.job.name, str(self.run_dir)
        autoscaler = self.start_autoscaler()
        job = self._spawn(name, f"pipelines.jobs.{name}", "--run-dir", folder)
        for other in self.settings.job.also:
            self._spawn(other, f"pipelines.jobs.{other}", "--run-dir", folder)
        # What is produced from now on is the job's: it has written down where the topic ended.
        job.wait_until((self.run_dir / f"{name}.start.json").exists, "write down where it begins", PATIENCE_S)
        for _ in range(WARM_UPS):
            rows = self._rows()
            warm_up = self._spawn("warm-up", "pipelines.jobs.load_generator", "--run-dir", folder, "--warm-up")
            if warm_up.wait(PATIENCE_S) != 0:
                raise DemoError(f"the warm-up failed:\n{warm_up.last_lines()}")
            job.wait_until(lambda rows=rows: self._rows() > rows, "take the warm-up records", PATIENCE_S)  # type: ignore[misc]
        autoscaler.wait_until(lambda: "ready" in autoscaler.log.read_text(errors="replace"), "get ready", PATIENCE_S)

    def replay(self) -> None:
        """Replay the live load and show its figures until the job has counted every record.

        Where the load withholds records of an hour, its backfill is ordered meanwhile. Blocks for about
        `live_hours * 3600 / speed` wall seconds, then `replay.backfill_after_s` and at most 100 s (`AFTER_S`) for the
        end of the backfill and 300 s (`PATIENCE_S`) for records not counted yet (after that it returns all the same),
        then 3 s for the outcome of the last batch.

        Raises:
            DemoError: the load generator failed.
            BrokerError: the broker does not answer, or a topic is missing.
            AbandonedError, ProcessError: the stack was stopped, or a program cannot be executed or the keeper is gone.
            OSError: a log or `truth.json` cannot be read or written.
        """
        with closing(Follower(self.settings.kafka, list(_KINDS), start="latest")) as follower:
            generator = self._spawn("load-generator", "pipelines.jobs.load_generator", "--run-dir", str(self.run_dir))
            begun, view = time.monotonic(), LiveFigures()
            self.use.begin_load()
            self._correction = begin_correction(self.settings, self.began)
            length = self.settings.replay.live_hours * 3600 / self.settings.replay.speed
            while generator.running():
                view = self._watch(follower, view, (time.monotonic() - begun) / length)
            self.use.end_load()
            if generator.wait(1) != 0:
                raise DemoError(f"the load generator failed:\n{generator.last_lines()}")
            given_up, correction = time.monotonic() + self.settings.replay.backfill_after_s + AFTER_S, self._correction
            while correction and not correction.over and time.monotonic() < given_up:
                view = self._watch(follower, view, 1.0)
            deadline = time.monotonic() + PATIENCE_S
            while not self._all_counted() and time.monotonic() < deadline:
                view = self._watch(follower, view, 1.0)
            deadline = time.monotonic() + 3  # the last batch's outcome is still on its way
            while time.monotonic() < deadline:
                view = self._watch(follower, view, 1.0)

    def stop(self) -> dict[str, int]:
        """Stop what was started, all at once, and write `counts.json` and the topics' records of the run to `run_dir`.

        With a backfill, `backfill.json` too. The records go to one `<topic>.jsonl` for each topic in
        `pipelines.report.recorded.dump.DUMPED`. A process has 8 s from SIGTERM to SIGKILL.

        Returns:
            `produced`, `counted`, `lost`, `duplicated`: numbers of records.

        Raises:
            BrokerError: the broker does not answer, or a topic is missing.
            OSError, KeyError, ValueError: `truth.json` is missing or malformed, or a file cannot be written.
            subprocess.TimeoutExpired: a process still runs 10 s after SIGKILL.
        """
        with ThreadPoolExecutor() as pool:  # each takes its JVM seconds to end
            list(pool.map(Process.stop, self._started))
        truth, found = self._truth(), read_counts(self.settings.kafka)
        counts = compare_counts(truth, found)
        (self.run_dir / "counts.json").write_text(json.dumps(counts, indent=1))
        if self._correction is not None:
            self._correction.stop()
            write_backfill(self.run_dir, replace(self._correction.told, windows=judge_windows(truth, found)))
        dump_topics(self.settings.kafka, self.run_dir, self.began)
        return counts

    def _watch(self, follower: Follower, view: LiveFigures, share: float) -> LiveFigures:
        try:
            records = follower.poll(0.5)
        except BrokerError:
            return view
        for record in records:
            try:
                message = decode(_KINDS[record.topic], record.value, time.time())
            except MessageError:
                continue  # whoever acts on it rejects it
            if message.job == self.settings.job.name:
                before, view = view.last_change, view.updated_by(message)
                if view.last_change != before and isinstance(message, Decision):
                    self.screen.note(view.last_change)
        for text in self._correction.notes() if self._correction else ():
            self.screen.note(text)
        self.use.look()
        self.screen.live(share, view)
        return view

    def _all_counted(self) -> bool:
        """Whether the job's results are known to hold every record; a look that the broker does not answer says no."""
        try:
            return not compare_counts(self._truth(), read_counts(self.settings.kafka))["lost"]
        except BrokerError:
            return False

    def _truth(self) -> dict[str, Any]:
        return dict(json.loads((self.run_dir / "truth.json").read_text()))

    def _rows(self) -> int:
        path = self.run_dir / f"{self.settings.job.name}.progress.jsonl"
        lines = path.read_text().splitlines() if path.exists() else ()
        return sum(json.loads(line)["numInputRows"] for line in lines if line.endswith("}"))

    def _spawn(self, name: str, module: str, *arguments: str) -> Process:
        process = self.stack.spawn(name, [sys.executable, "-m", module, *arguments], self.environment.get(name))
        self._started.append(process)
        return process


def write_run_json(settings: Settings, run_dir: Path, began: float, versions: dict[str, str]) -> None:
    """Write `run.json`, replacing an older one: id, policy, job, contract and settings of a run without results yet.

    Args:
        settings: in force.
        run_dir: folder of the run; its name is the run's id.
        began: epoch seconds.
        versions: of the models that serve, by `champion` (forecaster) and `agent`; "none" for none.

    Raises:
        SettingsError: the job has no contract (YAML of latency target and executor bounds), or a wrong one.
        OSError: the file cannot be written.
    """
    contract = load_contract(settings.job.name, settings.contracts_dir)
    known = {
        "id": run_dir.name,
        "policy": settings.autoscaler.policy,
        "serving": settings.serving.path,
        "job": settings.job.name,
        "replay": settings.replay.model_dump(mode="json"),
        "job_settings": settings.job.model_dump(mode="json"),
        "event_partitions": settings.kafka.event_partitions,
        "time_scale": settings.replay.speed,
        "contract": contract.model_dump(mode="json"),
        "started": began,
        "versions": versions,
    }
    (run_dir / "run.json").write_text(json.dumps(known, indent=1))


def wait_for_forecast(follower: Follower, log: Path) -> None:
    """Wait until a follower of the topic `forecasts` has a record, then close it, after an error, too.

    Raises:
        DemoError: none came within `PATIENCE_S` (300 s); it names `log`, the file or folder of serving's log.
    """
    with closing(follower):
        deadline = time.monotonic() + PATIENCE_S
        while not follower.poll(0.5):
            if time.monotonic() > deadline:
                raise DemoError(f"no forecast came within {PATIENCE_S:.0f} s. Serving says why in {log}.")
