"""A job whose backfills are planned: what its autoscaler knows, forecasts of a load that rises, and an order."""

import math
from dataclasses import replace

from configs.contract import Contract
from models.backfill.live.issued import read_issued
from models.backfill.live.known import KnownJob
from models.backfill.live.ordered import JobNow
from models.policy.live import memory as memories
from pipelines.backfill.ordering import plan_due, read_due
from tidecast.control import WALL
from tidecast.messages import Forecast
from tidecast.orders import ReplayOrder, ReplayProgress

NOW = 1_700_000_000.0
"""2023-11-14T22:13:20Z."""
STEP_S, STEPS = 600.0, 12
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
CONTRACT = Contract.model_validate(
    {"job": "orders", "latency_target_s": 10.0, "executors": {"min": 1, "max": 8, "cores": 1},
     "planning": {"overhead_s": 0.5, "per_record_s": 0.01, "lead_s": 90.0}}
)  # fmt: skip


def live_rps(wall):
    """The load, records/s: 100 now, 260 six hours later."""
    return 180 - 80 * math.cos(math.pi * (wall - NOW) / 21_600)


def forecast(begins, clock=WALL, **fields):
    """What is forecast when a step begins at a wall time; the step is STEP_S of wall time."""
    middles = [live_rps(begins + (h + 0.5) * STEP_S) for h in range(STEPS)]
    spread = (0.9, 0.97, 1.0, 1.03, 1.1)
    said = {
        "job": "orders", "time": clock.at(begins), "wall_time": begins + 1.0, "time_scale": clock.scale,
        "step_s": STEP_S * clock.scale, "levels": LEVELS, "quantiles": [[m * one for one in spread] for m in middles],
        "model": "blend", "version": "1", "alias": "champion", "kind": "blend", "history_steps": 99, "epoch": 1,
        "last_rps": live_rps(begins - STEP_S / 2),
    }  # fmt: skip
    return Forecast(**{**said, **fields})


def memory(executors=3, **fields):
    """What the autoscaler knows: a slot serves about 100 records/s."""
    fresh = memories.fresh(CONTRACT)
    known = {
        "executors": executors, "tasks": 64, "metric_time": NOW, "mode": "act", "scatter": 0.01,
    }  # fmt: skip
    return replace(fresh, **{**known, **fields})


def moment(clock=WALL, now_s=NOW, past=40, orders=(), progress=(), **fields):
    """A moment of the job, with so many forecasts, the newest 200 s ago."""
    begins = [now_s - 200 - n * STEP_S for n in range(past)]
    issued = read_issued([vars(forecast(at, clock)) for at in begins], clock)
    heard = {"arrivals": (live_rps(now_s),) * 3, "metric_at": now_s, **fields}
    known = KnownJob(CONTRACT, memory(**heard), issued, "mpc")
    return JobNow(known, clock, now_s, {o.id: o for o in orders}, {p.id: p for p in progress})


def order(name="fix", records=400_000, **fields):
    """An order of a range of the day before."""
    begin = (NOW - 86_400) * 1000
    said = {
        "id": name, "job": "orders", "wall_time": NOW - 5, "wanted": "run", "starts": {"events": {"0": 0}},
        "ends": {"events": {"0": records}}, "begin_ms": int(begin), "end_ms": int(begin + 3_600_000),
    }  # fmt: skip
    return ReplayOrder(**{**said, **fields})


def progress(name="fix", done=0, state="running", records=400_000, at=NOW, **fields):
    """What the agent says of it."""
    return ReplayProgress(name, "orders", at, at, 1.0, state, records, done, **fields)


def plan_at(asked, by, sure, zone, now):
    """Plan an order beside live records, from what is known at a moment, as `plan_cheapest` does first."""
    due, _ = read_due(asked, by, sure, zone, now.clock.at(now.now_s))
    return plan_due(due, zone, now)
