"""Row: a job on YARN asks for executors for which its queue has no room; what is said, learned, and done with room."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from configs.settings import Settings
from pipelines.bench.site.hadoop import Hadoop
from pipelines.bench.site.rings import REPLAY
from pipelines.demo.live import LiveReplay, write_run_json
from pipelines.demo.progress import Screen
from pipelines.demo.run import create_run_dir
from pipelines.kafka.broker import Follower
from pipelines.kafka.topics import create_topics
from pipelines.report.recorded.lines import json_lines
from pipelines.scale.shown import describe_job, read_contract, see_job
from pipelines.stack.stack import Stack

REPLAY_OF_ROW = REPLAY | {"live_hours": 12, "peak_rps": 10}
POLICY = "static"
"""It asks for the six executors of the contract at once, whatever the load is."""
FULL_S, PATIENCE_S = 25.0, 300.0
"""Wall seconds for which the queue stays full once that was said, and within which it has to be said."""
NODES_MORE = 2
TOLD_S = 3.0
"""Wall seconds after which a decision knows what an outcome has said: one may be on its way."""


def full_queue(settings: Settings, folder: Path) -> dict[str, Any]:
    """Run a job on a YARN of one node, with room for two executors of six; two more nodes come when that was said.

    Args:
        settings: without addresses of a person's own.
        folder: empty, for all that is written.

    Returns:
        `produced` and `counted` (records); `said` (the agent's outcome, in words; "": none) and `shown` (lines of
        `tidecast job show` meanwhile); `decided`, the first decision that knows it, of so many that are `named`;
        `ups_until_room` (decisions that asked for more from TOLD_S after it was said until there was room); `executors`
        while it was full, and `most_executors` afterwards; `came` (outcomes of that raise once there was room),
        `starts` (raises of which the lead time was learned); `planned_s`, seconds, before it was full and after.

    Raises:
        JarsError, JavaError, StackError, DemoError, ...: a service or the job does not start or ends.
    """
    update = {
        "var": folder / "var", "replay": settings.replay.model_copy(update=REPLAY_OF_ROW),
        "spark": settings.spark.model_copy(update={"master": "yarn"}),
        "autoscaler": settings.autoscaler.model_copy(update={"policy": POLICY}),
    }  # fmt: skip
    own = settings.model_copy(update=update)
    began, shown = time.time(), list[str]()
    with Hadoop(folder / "hadoop") as hadoop:
        hadoop.add_node()
        with Stack(own, {"broker"}, given=hadoop.environment) as stack:
            create_topics(stack.settings.kafka)
            run_dir = create_run_dir(stack.settings)
            write_run_json(stack.settings, run_dir, began, {"champion": "none"})
            live = LiveReplay(stack, stack.settings, run_dir, Screen(), began)
            live.start()
            room = threading.Thread(target=_make_room, args=(stack.settings, hadoop, shown), daemon=True)
            room.start()
            live.replay()
            room.join(2 * PATIENCE_S)
            counts = live.stop()
    return {**{name: counts[name] for name in ("produced", "counted")}, "shown": shown, **judge(run_dir)}


def judge(run_dir: Path) -> dict[str, Any]:
    """Return what a run's decisions, outcomes and metrics say of a queue that was full; as `full_queue` has it.

    Raises:
        RunError: a file of the run is missing.
    """
    outcomes, decisions, metrics = (
        json_lines(run_dir / f"{name}.jsonl") for name in ("outcomes", "decisions", "metrics")
    )
    full = [one for one in outcomes if one["observed"].get("no_room")]
    came = [one for one in full if one.get("confirmed_at") is not None]
    known = [one for one in decisions if "no_room" in one["codes"]]
    until = came[0]["confirmed_at"] if came else float("inf")
    since = full[0]["wall_time"] if full else float("inf")
    leads = [one["inputs"]["lead"] for one in decisions if "lead" in one["inputs"]]
    return {
        "said": full[0]["reason"] if full else "", "decided": known[0]["reason"] if known else "",
        "ups_until_room": sum("up" in one["codes"] for one in decisions if since + TOLD_S < one["wall_time"] < until),
        "named": len(known),
        "executors": min((one["executors"] for one in metrics if since <= one["wall_time"] < until), default=None),
        "most_executors": max(one.get("executors") or 0 for one in metrics),
        "came": len(came), "starts": leads[-1]["starts"],
        "planned_s": [leads[0]["planned_s"], leads[-1]["planned_s"]],
    }  # fmt: skip


def _make_room(settings: Settings, hadoop: Hadoop, shown: list[str]) -> None:
    """Once it was said that the queue is full, let it stay so for FULL_S, and look; then start more nodes, and wait."""
    follower, job = Follower(settings.kafka, ["outcomes"], start="latest"), settings.job.name
    if _await(follower, came=False):
        time.sleep(FULL_S)
        seen, contract = see_job(settings.kafka, job), read_contract(settings, job)
        shown += describe_job(job, seen, contract, settings.kafka, time.time())
    for _ in range(NODES_MORE):
        hadoop.add_node()
    _await(follower, came=True)
    follower.close()


def _await(follower: Follower, came: bool) -> bool:
    """Wait until a raise for which there was no room is told of, or, at last, has its executors."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        told = (json.loads(record.value) for record in follower.poll(1.0) if record.value)
        if any(one["observed"].get("no_room") and (one.get("confirmed_at") is not None) == came for one in told):
            return True
    return False
