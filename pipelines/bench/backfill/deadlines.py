"""Row: replays that are to be done by a deadline, drawn by seed, and where they ended in what was predicted of them."""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.optimize import brentq

from models.backfill.climb import Climb
from pipelines.bench.backfill.arrangement import (
    CAPACITY_RPS,
    EXECUTORS,
    INTERVAL_S,
    LEAD_S,
    SLOT_RPS,
    Arrangement,
    seed_of,
)
from pipelines.bench.backfill.cells import Found, MeasuredCell
from pipelines.bench.backfill.loads import STEADY, TAXI, mean_rps
from pipelines.bench.twin.deadline import kolmogorov_distance
from tidecast.replay.pace import SLOW_START_S

ROW, LOADS, ARM = "deadline", (STEADY, TAXI), "by"
MINUTES, COUNT = 1.0, 20
WORK, DEADLINE = (0.3, 1.0), (1.2, 4.0)
"""Work: of the cell's minutes with all executors, uniform in its logarithm; deadline: of the shortest time, uniform."""
IDLE = 0.15
"""Share of the capacity that stays free for live latency, as plans suppose."""
DAY_S = 720.0
"""Wall seconds of a taxi day beside which deadlines are met."""
LATE = 1.5
"""How long a replay is followed, in units of its deadline."""


def plan_cells(minutes: float) -> list[MeasuredCell]:
    """Plan the sessions: COUNT, the loads in turn."""
    return [MeasuredCell(ROW, LOADS[turn % len(LOADS)], ARM, turn, minutes) for turn in range(COUNT)]


def arrange_deadline(cell: MeasuredCell) -> Arrangement:
    """Arrange a cell: live records scale between one executor and all, a replay is ordered with a schedule."""
    random = np.random.default_rng(_seed(cell))
    work_s = 60 * cell.minutes * math.exp(random.uniform(*np.log(WORK)))
    ratio = float(random.uniform(*DEADLINE))
    free = (1 - IDLE) * CAPACITY_RPS - mean_rps(cell.load, DAY_S)
    by_s = round(ratio * (LEAD_S + shortest_s(work_s)), 1)
    return Arrangement(
        (1, EXECUTORS), True, "ordered", 0, None, round(free * work_s), DAY_S, LATE * by_s, True, seed_of(cell), by_s
    )


def shortest_s(work_s: float) -> float:
    """Return the seconds that a replay takes whose capacity is known, on executors that are there.

    Args:
        work_s: that it would take at all that live records leave, from the first moment on.
    """
    climb, longest_s = Climb.admitted(INTERVAL_S, lambda level: SLOT_RPS), SLOW_START_S + 2 * work_s + 60.0

    def read_s(until_s: float) -> float:
        return until_s * float(climb.admitted_rps(np.array([until_s]), until_s, np.ones(1), np.zeros(1))[0])

    return float(brentq(lambda until_s: read_s(until_s) - work_s, 1e-3, longest_s))


def summarise(kept: Mapping[MeasuredCell, Found]) -> dict[str, Any]:
    """Summarise the sessions of MINUTES or more.

    Returns:
        `n`, sessions; `kept` of them, `refused`; `judged`, `kept` once there are COUNT; `places` (of finishing times in
        what was predicted, 0 to 1, rising) and their Kolmogorov `distance` from uniform, once there are COUNT, with
        `noise`, its 95 % quantile if they were uniform; `each`, a row per session.
    """
    cells = [cell for cell in kept if cell.row == ROW and cell.minutes >= MINUTES]
    each = [_judge(cell, kept[cell]) for cell in sorted(cells, key=lambda cell: cell.turn)]
    places = sorted(one["place"] for one in each if one["place"] is not None)
    in_time, whole = sum(one["kept"] for one in each), len(each) >= COUNT
    return {
        "n": len(each), "kept": in_time, "refused": sum(bool(one["refused"]) for one in each),
        "judged": in_time if whole else None, "places": places, "told": len(places),
        "distance": float(kolmogorov_distance(np.array(places))) if whole and places else None,
        "noise": 1.358 / math.sqrt(len(places)) if places else None, "each": each,
    }  # fmt: skip


def _judge(cell: MeasuredCell, found: Found) -> dict[str, Any]:
    """One session: what was refused is not kept, and has no place; what did not end while it was followed ends last."""
    by_s, done_s, planned = arrange_deadline(cell).by_s, found["done_s"], found["planned"]
    assert by_s is not None
    place = None
    if planned is not None:
        place = 1.0 if done_s is None else bisect_right(planned, done_s) / found["futures"]
    return {
        "load": cell.load, "turn": cell.turn, "by_s": by_s, "done_s": done_s, "place": place,
        "kept": done_s is not None and done_s <= by_s, "refused": found["refused"],
    }  # fmt: skip


def _seed(cell: MeasuredCell) -> int:
    return int.from_bytes(hashlib.sha256(f"{cell.load} by {cell.turn}".encode()).digest()[:4], "big")
