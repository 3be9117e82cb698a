"""A short ring on neighbours that are not the embedded ones: history, training, serving, a live minute, judgement."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from configs.settings import Settings
from models.policy.live.learned_lead import read_start
from pipelines.demo.progress import Screen
from pipelines.demo.run import STAGES, create_run_dir, left_alive, list_failures, run_stages, update_run_json
from pipelines.kafka.topics import create_topics
from pipelines.report.recorded.lines import json_lines
from pipelines.report.summary import write_summary
from pipelines.stack.stack import Stack

REPLAY: dict[str, Any] = {
    "history_days": 14, "live_hours": 6, "speed": 360, "peak_rps": 70, "withheld_share": 0, "newcomer": None,
}  # fmt: skip
WAVE: dict[str, Any] = {**REPLAY, "live_hours": 9, "peak_rps": 32, "surge": None}
"""For a load of `write_wave`: 90 wall seconds, of which the first 50 need more executors than the last 35."""
TRAINING = {"epochs": 3}

BEGIN, DAYS = datetime(2014, 10, 7), 16
"""Of a wave: more than the history, and to the end of the day on which the live load is."""
Timed = tuple[float, Callable[[], None]]
"""Wall seconds of the live load after which something is done."""


class FaultyScreen(Screen):
    """A screen that does things to neighbours while records are live.

    Attributes:
        failed: what raised, if something did.
    """

    def __init__(self, plan: Sequence[Timed]) -> None:
        super().__init__()
        self._plan, self._timers, self.failed = plan, list[threading.Timer](), list[str]()

    @contextmanager
    def stage(self, text: str, last: bool = False) -> Iterator[None]:
        """Show a stage; the plan begins with that of the live load."""
        if text.startswith("live:"):
            for after_s, act in self._plan:
                timer = threading.Timer(after_s, self._guarded, (act,))
                timer.daemon = True
                timer.start()
                self._timers.append(timer)
        with super().stage(text, last):
            yield

    def give_up(self) -> None:
        """Do nothing of the plan any more, and wait for what is being done."""
        for timer in self._timers:
            timer.cancel()
            timer.join(60)

    def _guarded(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Exception as error:
            self.failed.append(f"{type(error).__name__}: {error}")


def write_wave(file: Path) -> Path:
    """Write a trace that rises and falls within the hours of the live load, each day alike; return its path.

    The shipped trace does not fall for 13 hours once it has risen in the morning, so that nothing would be released in
    a short ring. This one is high from 5:00 to 9:00, half-way in the half-hours before and after, and at 0.3 of that in
    the others; with 3 % of noise, from a seed.

    Raises:
        OSError: the file cannot be written.
    """
    noise = np.random.default_rng(7).normal(1.0, 0.03, (DAYS, 48))
    hours = np.arange(48) / 2
    shape = np.where((hours >= 5) & (hours < 9), 1.0, np.where((hours == 4.5) | (hours == 9), 0.65, 0.3))
    times = (BEGIN + timedelta(minutes=30 * step) for step in range(DAYS * 48))
    lines = (f"{time},{value:.0f}" for time, value in zip(times, (1000 * shape * noise).ravel(), strict=True))
    file.write_text("\n".join(["timestamp,value", *lines, ""]))
    return file


def shortened(settings: Settings, folder: Path, sections: Mapping[str, Any]) -> Settings:
    """Copy the settings with a short replay, quick trainings and all state in `folder/var`, and with other sections."""
    update = {
        "var": folder / "var", "replay": settings.replay.model_copy(update=REPLAY),
        "training": settings.training.model_copy(update=TRAINING), **sections,
    }  # fmt: skip
    return settings.model_copy(update=update)


def close_ring(stack: Stack, plan: Sequence[Timed]) -> dict[str, Any]:
    """Run every stage on a started stack, which is stopped then, and return what came of it.

    Returns:
        `failures` (in words; empty: none), `faults` (their number), `produced`, `counted`, `executors_lost`,
        `most_executors`, `raises` and `releases` that outcomes confirmed, `by_forecast` (raises among them that the
        forecast caused), `lead_s` (median of the lead time as learned, from `starts` raises), `took_s` (median of what
        raises took by their outcomes; None without one), `planned_s`, `seconds` of it all.

    Raises:
        DemoError, OrchestratorError, BrokerError, RegistryError, RunError, OSError: a stage did not get through.
    """
    began, screen = time.time(), FaultyScreen(plan)
    screen.total = STAGES
    create_topics(stack.settings.kafka)
    run_dir = create_run_dir(stack.settings)
    try:
        found = run_stages(stack, run_dir, screen, began)
    finally:
        screen.give_up()
    stack.stop()
    facts = update_run_json(run_dir, wall_end=time.time(), left_alive=left_alive(stack), **found)
    summary = write_summary(run_dir)
    # A neighbour goes away in the only minute, so that a raise by the forecast may end otherwise than it would.
    failures = [*list_failures(summary | {"forecast_scale_ups_confirmed": 1}, facts), *screen.failed]
    outcomes = [one for one in json_lines(run_dir / "outcomes.jsonl") if one["status"] == "confirmed"]
    took = [start.seconds for one in outcomes if (start := read_start(one)) is not None]
    leads = [one["inputs"]["lead"] for one in json_lines(run_dir / "decisions.jsonl") if "lead" in one["inputs"]]
    return {
        **{name: summary[name] for name in ("produced", "counted", "executors_lost")},
        "failures": failures, "faults": len(failures),
        "most_executors": max(one.get("executors") or 0 for one in json_lines(run_dir / "metrics.jsonl")),
        "raises": sum(one["executors_after"] > one["executors_before"] for one in outcomes),
        "releases": sum(one["executors_after"] < one["executors_before"] for one in outcomes),
        "by_forecast": summary["forecast_scale_ups_confirmed"],
        "lead_s": leads[-1].get("median_s") if leads else None, "starts": leads[-1].get("starts", 0) if leads else 0,
        "took_s": median(took) if took else None,
        "planned_s": leads[-1].get("planned_s") if leads else None,
        "seconds": round(time.time() - began),
    }  # fmt: skip
