"""Row: serving and autoscaler of the release before are replaced by this one's beside a job under load, and back."""

from __future__ import annotations

import json
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from configs.sections import Kafka
from configs.settings import ROOT, Settings
from pipelines.airflow.rest import Orchestrator
from pipelines.bench.site.kept.held import Held, count_held, list_lost
from pipelines.bench.site.kept.older import check_out
from pipelines.bench.site.kept.silence import SETTLE_S, ReleaseChange, describe_change, list_faults, speaker
from pipelines.bench.site.rings import REPLAY, shortened
from pipelines.bench.site.servers import SiteError
from pipelines.demo.champion import live_window, run_ingest, train_first_champion
from pipelines.demo.live import PATIENCE_S, LiveReplay, wait_for_forecast, write_run_json
from pipelines.demo.progress import Screen
from pipelines.demo.run import create_run_dir
from pipelines.kafka.broker import Follower
from pipelines.registry import Registry
from pipelines.report.recorded.lines import json_lines
from pipelines.stack.processes import Process
from pipelines.stack.stack import Stack

PARTS = frozenset({"broker", "spark", "airflow", "mlflow"})
LIVE_HOURS, BEGIN_S = 18.0, 20.0
"""Of the load, three minutes; wall seconds of it before the first change."""
GRACE_S, RESTARTS = 30.0, 5
_TOPICS = "from configs.settings import load; from pipelines.kafka.topics import create_topics as c; c(load().kafka)"
_INGEST = "from pipelines.ingest import ingest, refuse_troubles; refuse_troubles(ingest('{hour:%Y-%m-%dT%H}')[0])"
CHANGED = {"serving": ("serve",), "autoscaler": ("autoscale", "--checkpoint", "{checkpoint}")}
"""Parts that are replaced, one after the other, by their commands."""
STANDS_BY, READY = "pipelines/scale/turn.py", "ready to take over"
"""File of a release whose autoscaler gets ready beside the one that decides, and what it says then."""


def upgrade_and_back(settings: Settings, folder: Path) -> dict[str, Any]:
    """Replace serving, then the autoscaler, by those of this release, and then by those of the release before.

    All else is of the release before all the time: topics, Airflow with its DAGs, the champion, the job with its agent.
    This release ingests once in between, and the release before at the end.

    Args:
        settings: without addresses of a person's own.
        folder: empty, for all that is written.

    Returns:
        `older` (commit of the release before) and `chosen` (why that one); `forth` and `back`, of each `silent_s` (the
        longest time without a decision or a heartbeat of the autoscaler), `no_forecast_s` (without one of serving),
        `decisions`, `on_forecasts` (those that used one) and `restarts`; `produced` and `counted` (records); `lost` (in
        words) and `losses`, their number.

    Raises:
        SiteError: the release before cannot be run, or a part did not come to speak.
        JarsError, JavaError, StackError, DemoError, ...: a service does not start, or a stage did not get through.
    """
    live = settings.replay.model_copy(update=REPLAY | {"live_hours": LIVE_HOURS})
    own = shortened(settings, folder, {"contracts": folder / "team" / "contracts", "replay": live})
    older, began, screen = check_out(own, folder), time.time(), Screen()
    shutil.copytree(older.code / "configs" / "contracts", own.contracts_dir)
    with Stack(own, PARTS, dags=older.code / "dags", given=older.environment()) as stack:
        if stack.spawn("topics", [sys.executable, "-c", _TOPICS]).wait(PATIENCE_S):
            raise SiteError(stack.processes["topics"].last_lines())
        dags = Orchestrator(stack.settings)
        train_first_champion(stack.settings, dags, screen)
        changes = _Changes(stack, create_run_dir(stack.settings), older.code)
        run = LiveReplay(stack, stack.settings, changes.run_dir, screen, began)
        version = Registry(stack.settings).champion_version(own.job.name) or "none"
        write_run_json(stack.settings, changes.run_dir, began, {"champion": version})
        forecasts = Follower(stack.settings.kafka, ["forecasts"])
        serving = stack.spawn("serving", [sys.executable, "-m", "tidecast", "serve"])
        run.start()
        wait_for_forecast(forecasts, serving.log)
        thread = threading.Thread(target=changes.make, daemon=True)
        thread.start()
        run.replay()
        thread.join(4 * PATIENCE_S)
        if changes.failed or len(changes.made) < 2:
            raise SiteError("; ".join(changes.failed) or "the changes did not come to an end")
        stack.end(changes.runs["autoscaler"], GRACE_S)
        stack.end(own.job.name, GRACE_S)
        counts = run.stop()
        dags.unpause("ingest_metrics")
        run_ingest(dags, *live_window(own))
        after = count_held(stack.settings, changes.run_dir)
        starts = [process for name, process in stack.processes.items() if name.startswith("autoscaler")]
        log = "".join(process.log.read_text(errors="replace") for process in starts)
    forth, back = changes.made
    said = {
        name: json_lines(changes.run_dir / f"{name}.jsonl")
        for name in ("decisions", "heartbeats", "forecasts", "rejects")
    }
    lost = list_lost(changes.before, after) + list_faults(counts, said, own.job.name, log)
    if rows := after.get("rows of the table quarantine"):
        lost.append(f"{rows} rows of the lake are in quarantine")
    return {
        "older": older.commit, "chosen": older.chosen,
        "forth": describe_change(said, own.job.name, forth), "back": describe_change(said, own.job.name, back),
        "produced": counts["produced"], "counted": counts["counted"], "lost": lost, "losses": len(lost),
    }  # fmt: skip


class _Changes:
    """Makes the two changes beside a load; `made` has them then, `before` what was held, `failed` what went wrong.

    `runs` has the names of the processes that run now, by part.
    """

    def __init__(self, stack: Stack, run_dir: Path, older: Path) -> None:
        self._stack, self.run_dir, self._older = stack, run_dir, older
        self.runs = {name: name for name in CHANGED}
        self.before, self.made, self.failed = Held(), list[ReleaseChange](), list[str]()

    def make(self) -> None:
        """Change the release to this one and back, beside the job; what goes wrong is in `failed`."""
        settings, ours = self._stack.settings, f"{self._stack.settings.var_dir / 'settings.yaml'}"
        this = ["/usr/bin/env", f"PYTHONPATH={ROOT}", f"TIDECAST_FILE={ours}"]
        try:
            time.sleep(BEGIN_S)
            self.before = count_held(settings, self.run_dir)
            self.made.append(self._change(this, ROOT))
            time.sleep(SETTLE_S)
            ingest = _INGEST.format(hour=live_window(settings)[0])
            if self._stack.spawn("ingest", [*this, sys.executable, "-c", ingest]).wait(PATIENCE_S):
                raise SiteError(self._stack.processes["ingest"].last_lines())
            self.made.append(self._change([], self._older))
            time.sleep(SETTLE_S)
        except Exception as error:
            self.failed.append(f"{type(error).__name__}: {error}")

    def _change(self, of: Sequence[str], code: Path) -> ReleaseChange:
        began, restarts = time.time(), 0
        for part, command in CHANGED.items():
            words = [word.format(checkpoint=self.run_dir / "autoscaler") for word in command]
            argv, runs = [*of, sys.executable, "-m", "tidecast", *words], self.runs[part]
            if part == "autoscaler" and (code / STANDS_BY).is_file():
                self.runs[part] = f"{part}-{len(self.made) + 1}"
                self._await_ready(self._stack.spawn(self.runs[part], argv))
                self._stack.end(runs, GRACE_S)
                ended = time.time()
            else:
                self.runs[part] = part
                self._stack.end(runs, GRACE_S)
                ended = time.time()
                self._stack.spawn(part, argv)
            restarts += self._await_word(self._stack.settings.kafka, part, ended)
        return ReleaseChange(began, time.time(), restarts)

    @staticmethod
    def _await_ready(process: Process) -> None:
        process.wait_until(lambda: READY in process.log.read_text(errors="replace"), "get ready", PATIENCE_S)

    def _await_word(self, kafka: Kafka, part: str, since: float) -> int:
        """Wait until a part has spoken, started again where it ends; return how often it was."""
        follower, restarts = Follower(kafka, ["decisions", "heartbeats", "forecasts"], start="latest"), 0
        deadline = time.monotonic() + PATIENCE_S
        while True:
            told = [(one.topic, json.loads(one.value)) for one in follower.poll(0.5) if one.value]
            if any(speaker(topic, said) == part and said["wall_time"] > since for topic, said in told):
                follower.close()
                return restarts
            name = self.runs[part]
            if not self._stack.processes[name].running() and restarts < RESTARTS:
                restarts += 1
                self._stack.respawn(name)
            if time.monotonic() > deadline:
                raise SiteError(f"{part} said nothing: {self._stack.processes[name].last_lines()}")
