"""A backfill in a run's folder of `tests.fakes.run_dir`: its record, and decisions of the real controller."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from configs.contract import Contract
from models.policy.core.batch_time import BatchTime
from models.policy.received.observation import Observation
from models.policy.replays.control import decide_rate
from models.policy.replays.kept import ReplayControl, with_latency, with_progress
from pipelines.report.recorded.backfill import RecordedBackfill, write_backfill
from tests.fakes import run_dir

HOUR = (run_dir.TRACE_START + 5 * 3600, run_dir.TRACE_START + 6 * 3600)
KNOWN = BatchTime.guess(run_dir.OVERHEAD_S, run_dir.PER_RECORD_S)


@dataclass(frozen=True)
class Filled:
    """What the folder must turn out to say: `done_s` is wall seconds since the run's start, None: it was not done."""

    done_s: float | None
    replayed: int
    highest_rps: float
    stopped: bool


def write(
    folder: Path, at: int = 70, records: int = 4000, seconds: int = 150, late: tuple[int, int] = (0, 0),
    lent: tuple[int, int] = (0, 0), windows: tuple[int, int, int] = (50, 50, 0), limit_s: float = 1e9,
) -> Filled:  # fmt: skip
    """Add a backfill of `records`, ordered at a second of the run, to its folder.

    In the seconds `late` live batches are said to take twice the target, in those of `lent` the backfill has an
    executor of its own; `windows` differed, were corrected, are wrong; it is given up after `limit_s`.
    """
    lines = (folder / "decisions.jsonl").read_text().splitlines()
    decisions, contract = [json.loads(line) for line in lines], Contract(job="word_count")
    control, done, words, rates, end = ReplayControl(), 0.0, [], [], None
    for second, decision in enumerate(decisions):
        now, state = decision["wall_time"], "running" if rates and rates[-1] > 0 else "waiting"
        if second < at or end is not None or second >= at + limit_s:
            continue
        done = min(done + (rates[-1] if rates else 0.0), records)
        if done >= records:
            end, state = now, "done"
        extra = 1 if lent[0] <= second < lent[1] else 0
        words.append({
            "wall_time": now, "state": state, "done": int(done), "admitted_rps": rates[-1] if rates else 0.0,
            "rps": 0.96 * rates[-1] if rates and rates[-1] > 0 else None, "executors": extra,
        })  # fmt: skip
        if end is not None:
            continue
        told = {"id": "fix", "state": state, "records": records, "done": int(done), "wall_time": now,
                "executors": extra}  # fmt: skip
        control = with_progress(control, told)
        slowest = 2 * contract.latency_target_s if late[0] <= second < late[1] else 2.4
        control = with_latency(control, {"latency_p50_s": slowest / 2, "latency_p95_s": slowest,
                                         "latency_max_s": slowest})  # fmt: skip
        executors = decision["executors"]
        control, rate = decide_rate(control, _seen(decision), contract, KNOWN, 0.002, executors, executors, None)
        decision["replay_rps"], decision["inputs"]["replay"] = rate.rps, rate.inputs
        decision["admission_rps"] = None if rate.relief is None else rate.relief["live_rps"]
        if rate.relief is not None:
            decision["inputs"]["relief"] = rate.relief
        rates.append(rate.rps)
    (folder / "decisions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in decisions))
    told = RecordedBackfill(
        "fix", *HOUR, due_at=run_dir.START + seconds, planned_at=run_dir.START + seconds, records=records,
        ordered_at=run_dir.START + at, begun_at=next((w["wall_time"] for w in words if w["done"]), None), done_at=end,
        state=words[-1]["state"], progress=words,
        windows=dict(zip(("differed", "corrected", "wrong"), windows, strict=True)),
    )  # fmt: skip
    write_backfill(folder, told)
    stops = any(a > 0 and b == 0 for a, b in pairwise(rates))
    return Filled(None if end is None else end - run_dir.START, int(done), max(rates), stops)


def _seen(decision: dict) -> Observation:
    inputs = decision["inputs"]
    return Observation(
        now_s=decision["wall_time"], since_s=1.0, job_s=decision["time"], scale=run_dir.SCALE,
        arrival_rps=inputs["arrival_rps"], lag_records=inputs["lag_records"], processed_rps=None, busy=None,
        in_batch=None, batch_s=None, executors=inputs["executors"], target=inputs["target"],
        tasks=run_dir.PARTITIONS, overhead_s=KNOWN.overhead_s, per_record_s=KNOWN.per_record_s, since_change_s=99.0,
    )  # fmt: skip
