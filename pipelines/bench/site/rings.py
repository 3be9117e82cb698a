"""A short ring on neighbours that are not the embedded ones: history, training, serving, a live minute, judgement."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.demo.progress import Screen
from pipelines.demo.run import STAGES, create_run_dir, left_alive, list_failures, run_stages, update_run_json
from pipelines.kafka.topics import create_topics
from pipelines.report.summary import write_summary
from pipelines.stack.stack import Stack

REPLAY: dict[str, Any] = {
    "history_days": 14, "live_hours": 6, "speed": 360, "peak_rps": 70, "withheld_share": 0, "newcomer": None,
}  # fmt: skip
TRAINING = {"epochs": 3, "holdout_steps": 48}

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


def close_ring(stack: Stack, plan: Sequence[Timed]) -> dict[str, Any]:
    """Run every stage on a started stack, which is stopped then, and return what came of it.

    Returns:
        `failures` (in words; empty: none), `faults` (their number), `produced`, `counted`, `executors_lost`,
        `most_executors`, `raises` and `releases` that outcomes confirmed, `lead_s` (median of what raises took, None
        without one), `planned_s`, `seconds` of it all.

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
    # A neighbour goes away in the only minute, so that no batch may use a raise's executors soon enough.
    failures = [*list_failures(summary | {"forecast_scale_ups_confirmed": 1}, facts), *screen.failed]
    outcomes = [one for one in _lines(run_dir, "outcomes") if one["status"] == "confirmed"]
    leads = [one["inputs"]["lead"] for one in _lines(run_dir, "decisions") if "lead" in one["inputs"]]
    return {
        **{name: summary[name] for name in ("produced", "counted", "executors_lost")},
        "failures": failures, "faults": len(failures),
        "most_executors": max(one.get("executors") or 0 for one in _lines(run_dir, "metrics")),
        "raises": sum(one["executors_after"] > one["executors_before"] for one in outcomes),
        "releases": sum(one["executors_after"] < one["executors_before"] for one in outcomes),
        "lead_s": leads[-1].get("median_s") if leads else None,
        "planned_s": leads[-1].get("planned_s") if leads else None,
        "seconds": round(time.time() - began),
    }  # fmt: skip


def _lines(run_dir: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / f"{name}.jsonl").read_text().splitlines()]
