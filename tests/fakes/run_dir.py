"""A run's folder as a run leaves it, from a small simulation: a day of load, a scaler, batches, tasks, forecasts.

Plausible enough to look at, consistent in itself, and with what is known beforehand returned as `Facts`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from configs.contract import Contract
from configs.sections import Replay

START = 1_800_000_000.0
SCALE, STEP_S = 720.0, 1800.0
TRACE_START = datetime(2014, 10, 22, 4, tzinfo=UTC).timestamp()
PARTITIONS, OVERHEAD_S, PER_RECORD_S, REGISTERS_S, LEAVES_S = 8, 0.55, 0.0045, 1.2, 2.2
LEVELS = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
SPREAD = np.array([0.8, 0.85, 0.93, 1.0, 1.07, 1.15, 1.2])
QUERY, RUN, APP = "query-1", "run-1", "app-20261120-0000"


@dataclass(frozen=True)
class Facts:
    """What the folder must turn out to say."""

    produced: int
    scale_ups: int
    scale_downs: int
    stopped_s: int
    median_bias: float = 0.04


@dataclass
class Executor:
    name: str
    added: float
    removed: float = math.inf
    reason: str = ""


def rate(t: float) -> float:
    """Records per wall second `t` seconds into the run: a night, a morning ramp, a day and an evening peak."""
    hour = 4 + t * SCALE / 3600
    day = 0.5 - 0.5 * math.cos(2 * math.pi * (hour - 4.5) / 24)
    evening = math.exp(-(((hour % 24) - 19.5) ** 2) / 5)
    return 45 + 270 * day**1.3 + 110 * evening


def write(folder: Path, policy: str = "forecast", seconds: int = 150, stop: tuple[float, float] | None = None) -> Facts:
    """Write a run into a folder; with `stop` = (at, for how long), no task starts in that time."""
    rng = np.random.default_rng(7)
    folder.mkdir(parents=True, exist_ok=True)
    made = np.sort(np.concatenate([START + s + rng.random(rng.poisson(rate(s))) for s in range(seconds)]))
    partition = np.arange(len(made)) % PARTITIONS
    offset = 1 + np.arange(len(made)) // PARTITIONS  # offset 0 is the warm-up
    np.savez(folder / "produced.npz", partition=partition, offset=offset, produced_at=made)
    plan = _Plan(policy, seconds)
    batches, tasks = _batches(made, plan, stop)
    _lines(folder / "word_count.progress.jsonl", [_progress(b, made) for b in batches])
    outcomes = plan.outcomes(batches)
    _lines(folder / "outcomes.jsonl", outcomes)
    _lines(folder / "decisions.jsonl", plan.decisions)
    _lines(folder / "metrics.jsonl", _metrics(made, batches, plan, seconds))
    _lines(folder / "forecasts.jsonl", _forecasts(seconds) if policy == "forecast" else [])
    _lines(folder / "rejects.jsonl", [])
    _event_log(folder / "eventlog", tasks, plan.executors)
    total = len(made) + PARTITIONS
    _json(
        folder / "truth.json",
        {"produced": total, "late": 42, "wall_start": START, "wall_end": START + seconds},
    )
    _json(folder / "counts.json", {"produced": total, "counted": total, "lost": 0, "duplicated": 0, "late_dropped": 0})
    _json(folder / "run.json", _info(folder.name, policy, seconds))
    ups = sum(o["target"] > o["executors_before"] for o in outcomes)
    stopped = 0 if stop is None else int(stop[1])
    return Facts(total, ups, len(outcomes) - ups, stopped)


class _Plan:
    """Second by second: one decision, and executors that follow it."""

    def __init__(self, policy: str, seconds: int) -> None:
        self.executors = [Executor("0", START - 20)]
        self.decisions, self.changes = [], []
        target, changed, low = 1, -99.0, 0
        for s in range(seconds):
            now, ahead = rate(s), max(rate(s + d) for d in (4, 8, 14)) * (1.15 if s % 40 else 1.5)
            need = min(4, math.ceil((max(now, ahead) if policy == "forecast" else now) / 150))
            low = low + 1 if need < target else 0
            to, codes = target, ["hold"]
            if need > target and s - changed >= 4:
                to, codes = target + 1, ["up", "forecast" if now < 150 * target else "observed"]
            elif low > 8 and s - changed >= 4:
                to, codes = target - 1, ["down", "observed"]
            self._decide(s, policy, target, to, codes, now, ahead)
            if to != target:
                target, changed, low = to, s, 0

    def _decide(self, s: int, policy: str, target: int, to: int, codes: list[str], now: float, ahead: float) -> None:
        at, known = START + s + 0.4, policy == "forecast"
        inputs = {
            "metric_wall_time": START + s, "arrival_rps": now, "lag_records": int(now * 1.4),
            "executors": target, "target": target, "capacity_rps": capacity(target),
            "forecast_rps": ahead if known else None, "forecast_version": "2" if known else None,
        }  # fmt: skip
        word = {"up": f"up {target} → {to}", "down": f"down {target} → {to}", "hold": "hold"}[codes[0]]
        self.decisions.append({
            "id": f"word_count-{s}", "job": "word_count", "time": _trace(at), "wall_time": at, "time_scale": SCALE,
            "mode": "act", "policy": policy, "executors": to, "codes": codes, "inputs": inputs,
            "reason": f"{word}: {now:.0f} rec/s; {ahead:.0f} rec/s ahead",
            "expected": {"capacity_rps": capacity(to), "utilisation": now / capacity(to)},
            "admission_rps": None, "replay_rps": None, "schema": 1,
        })  # fmt: skip
        if to > target:
            self.executors.append(Executor(str(len(self.executors)), at + REGISTERS_S))
        elif to < target:
            leaving = [e for e in self.executors if e.removed == math.inf][-1]
            leaving.removed, leaving.reason = at + LEAVES_S, "Executor decommission: scale-in"
        if to != target:
            self.changes.append((self.decisions[-1], target, to))

    def running(self, at: float) -> list[Executor]:
        return [e for e in self.executors if e.added <= at < e.removed]

    def outcomes(self, batches: list[dict]) -> list[dict]:
        rows = []
        for decision, before, to in self.changes:
            at, up = decision["wall_time"], to > before
            confirmed = at + (REGISTERS_S if up else LEAVES_S)
            used = [b["committed"] for b in batches if b["started"] >= confirmed]
            useful = used[0] if up and used else None
            rows.append({
                "decision_id": decision["id"], "job": "word_count", "time": _trace(confirmed), "time_scale": SCALE,
                "wall_time": useful or confirmed, "status": "confirmed", "reason": f"{to} executors registered",
                "executors_before": before, "executors_after": to, "target": to, "decided_at": at,
                "applied_at": at + 0.05, "confirmed_at": confirmed, "useful_at": useful,
                "expected": decision["expected"], "observed": {"processed_rps": 0.97 * capacity(to)}, "schema": 1,
            })  # fmt: skip
        return rows


def capacity(executors: int) -> float:
    """Records/s of a batch of two seconds."""
    return (2 - OVERHEAD_S) * executors / PER_RECORD_S / 2


def _batches(made: np.ndarray, plan: _Plan, stop: tuple[float, float] | None) -> tuple[list[dict], list[tuple]]:
    batches, tasks, done, at, warm = [], [], 0, START, {"0"}
    while done < len(made):
        if stop and stop[0] <= at - START < sum(stop):
            at = START + sum(stop) + 0.1
        ready = int(np.searchsorted(made, at))
        rows, workers = min(ready - done, 1000), plan.running(at)
        number, share = len(batches), math.ceil(PARTITIONS / len(workers))
        each = rows * PER_RECORD_S / PARTITIONS + 0.02 + 0.8 * any(w.name not in warm for w in workers)
        warm |= {w.name for w in workers}
        begin = at + 0.1
        for p in range(PARTITIONS):
            since = begin + (p // len(workers)) * each
            tasks.append((number, 2 * number, workers[p % len(workers)].name, since, since + each))
        finish = begin + share * each
        tasks += [(number, 2 * number + 1, w.name, finish, finish + 0.2) for w in workers[:2]]
        committed = finish + OVERHEAD_S - 0.25
        batches.append({"id": number, "started": at, "committed": committed, "rows": rows, "done": done + rows})
        done += rows
        at = max(committed + 0.01, math.floor(at) + 1) if rows else math.floor(at) + 1
    return batches, tasks


def _progress(batch: dict, made: np.ndarray) -> dict:
    ends = {str(p): 1 + len(range(p, batch["done"], PARTITIONS)) for p in range(PARTITIONS)}
    stamp = datetime.fromtimestamp(batch["started"], UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "id": QUERY, "runId": RUN, "name": "word_count", "timestamp": stamp, "batchId": batch["id"],
        "numInputRows": batch["rows"],
        "durationMs": {"triggerExecution": round((batch["committed"] - batch["started"]) * 1000)},
        "sources": [{"startOffset": None, "endOffset": {"events": ends}}],
    }  # fmt: skip


def _metrics(made: np.ndarray, batches: list[dict], plan: _Plan, seconds: int) -> list[dict]:
    common = {"job": "word_count", "time_scale": SCALE, "schema": 1}
    history = [
        {**common, "kind": "interval", "time": TRACE_START - k * STEP_S, "wall_time": START - 60, "span_s": STEP_S,
         "arrival_rps": rate(-k * STEP_S / SCALE), "executors": None, "lag_records": None}
        for k in range(96, 0, -1)
    ]  # fmt: skip
    live = []
    for s in range(seconds):
        end = START + s + 1
        done = max((b["done"] for b in batches if b["committed"] <= end), default=0)
        live.append({
            **common, "kind": "interval", "time": _trace(START + s), "wall_time": end, "span_s": SCALE,
            "arrival_rps": float(((made >= end - 1) & (made < end)).sum()),
            "lag_records": int((made < end).sum()) - done, "executors": len(plan.running(end)),
            "task_ceiling": PARTITIONS,
        })  # fmt: skip
    return history + live


def _forecasts(seconds: int) -> list[dict]:
    """Every step, twelve steps ahead; the median is 4 % above what comes, before the noise of the arrivals."""
    rows = []
    for k in range(int(seconds * SCALE / STEP_S)):
        begin = k * STEP_S / SCALE
        means = [
            np.mean([rate(begin + (h + x) * STEP_S / SCALE) for x in (0.1, 0.3, 0.5, 0.7, 0.9)]) for h in range(12)
        ]
        wide = [1 + (SPREAD - 1) * (1 + 0.1 * h) for h in range(12)]
        rows.append({
            "job": "word_count", "time": TRACE_START + k * STEP_S, "wall_time": START + begin + 0.2,
            "time_scale": SCALE, "step_s": STEP_S, "levels": LEVELS,
            "quantiles": [(1.04 * m * w).tolist() for m, w in zip(means, wide, strict=True)],
            "model": "word_count-forecaster", "version": "2" if k < 40 else "3", "alias": "champion",
            "kind": "gru" if k < 40 else "seasonal_naive", "history_steps": 96 + k, "epoch": 1, "schema": 1,
        })  # fmt: skip
    return rows


def _event_log(folder: Path, tasks: list[tuple], executors: list[Executor]) -> None:
    folder.mkdir(exist_ok=True)
    stages: dict[int, set[int]] = {}
    for batch, stage, *_ in tasks:
        stages.setdefault(batch, set()).add(stage)
    timed = [(e.added, _event("ExecutorAdded", e.added, {"Executor ID": e.name})) for e in executors]
    for e in executors:
        if e.removed < math.inf:
            gone = {"Executor ID": e.name, "Removed Reason": e.reason}
            timed.append((e.removed, _event("ExecutorRemoved", e.removed, gone)))
    for batch, numbers in stages.items():
        begin = min(t[3] for t in tasks if t[0] == batch) - 0.01
        properties = {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": str(batch)}
        timed.append((begin, _event("JobStart", begin, {"Stage IDs": sorted(numbers), "Properties": properties})))
    for _, stage, executor, begin, end in tasks:
        times = {"Launch Time": round(begin * 1000), "Finish Time": round(end * 1000)}
        task = {"Executor ID": executor, **times, "Failed": False, "Killed": False}
        timed.append((end, _event("TaskEnd", end, {"Stage ID": stage, "Task Info": task})))
    lines = [json.dumps(event, separators=(",", ":")) for _, event in sorted(timed, key=lambda pair: pair[0])]
    (folder / APP).write_text("\n".join(lines) + "\n")


def _event(name: str, at: float, fields: dict) -> dict:
    return {"Event": f"SparkListener{name}", "Timestamp": round(at * 1000), **fields}


def _info(name: str, policy: str, seconds: int) -> dict:
    return {
        "id": name, "policy": policy, "job": "word_count", "time_scale": SCALE, "started": START - 90,
        "contract": Contract(job="word_count").model_dump(mode="json"), "replay": Replay().model_dump(mode="json"),
        "versions": {"champion": "2"}, "wall_end": START + seconds + 60, "peak_memory_mb": 6120, "cores": 2,
        "cores_busy": 0.72,
        "challenger": {
            "promoted": True, "reason": "promoted: loss 11.200 under the champion's 12.900", "version": "4",
            "champion": "3", "run": "run", "challenger_loss": 11.2, "champion_loss": 12.9, "naive_loss": 21.4,
        },
        "newcomer": {
            "job": "ride_count", "trace": "taxi 15min", "days": 5.0, "version": "2", "promoted": True,
            "chosen": "blend",
            "reason": "promoted: loss 1.700 under the champion's 2.100", "champion": "2", "source": "none",
            "why": "word_count (shape 0.23, kept under 0.5): RMSE adapted 0.315, unadapted 0.337: let in",
        },
    }  # fmt: skip


def _trace(wall: float) -> float:
    return TRACE_START + (wall - START) * SCALE


def _json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=1))


def _lines(path: Path, rows: list[dict]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
