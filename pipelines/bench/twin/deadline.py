"""`tidecast bench deadline`: are deadlines of backfills kept as surely as was asked for, and for how much."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from models.backfill.plan import DeadlineError
from models.backfill.replan import Tolerance
from models.twin.backfill.follow import all_at_once, clairvoyant_hours, first_plan, follow, own_executors_hours
from pipelines.bench.twin.deadline_draw import draw_backfill
from pipelines.bench.twin.drawn import half_of

JOBS = {"scaled": False, "fixed": True}
COUNT = 200
"""Backfills, in turn beside each of the loads."""
FEW_HOURS = 0.1
"""Executor-hours under which the clairvoyant's cost is too little to be divided by."""
VARIANTS = {"replanned": Tolerance(), "held": None, "rescued": Tolerance(save=0.0, aim=1.0)}
"""How plans are followed: by the default tolerance, as they were made, and with executors only ever added."""


def measure_deadlines(
    loads: Sequence[str], count: int, sure: float, kept: Path | None = None,
    save: Callable[[dict[str, Any]], None] = lambda figures: None,
) -> dict[str, Any]:  # fmt: skip
    """Plan drawn backfills beside loads in the twin and follow them, the executors chosen by forecasts alone.

    Args:
        loads: names or paths, as `read_load` takes them.
        count: of backfills, the n-th beside load n modulo their number.
        sure: probability that is asked for.
        kept: file of a figure of this command; backfills that it has are taken from there.
        save: called after each load's turn with what there is by then.

    Returns:
        What `judge_deadlines` makes of all; `halves`, the same of either half of the loads (by a hash of their names);
        `jobs`, of live jobs that scale and of those of a fixed size; `variants`, of schedules that are never replanned
        (`held`), and of those that never give executors back (`rescued`); and `parts`, one per backfill.

    Raises:
        SeriesError, TraceError: a load cannot be read.
        OSError, ValueError: `kept` cannot be read.
    """
    known = json.loads(kept.read_text())["data"] if kept is not None and kept.is_file() else {}
    asked = [(loads[n % len(loads)], n // len(loads)) for n in range(count)]
    done = {(part["load"], part["number"]): part for part in known.get("parts", []) if part["sure"] == sure}
    parts = []
    for n, (load, number) in enumerate(asked):
        part = done.get((load, number))
        if part is None:
            part = judge_backfill(load, number, sure)
            print(_line(part), flush=True)
        parts.append(part)
        if n % len(loads) == len(loads) - 1:
            save(_figures(parts, sure))
    return _figures(parts, sure)


def judge_backfill(load: str, number: int, sure: float) -> dict[str, Any]:
    """Plan one backfill and follow it in each of the `VARIANTS`; where it was refused, `why` and nothing else."""
    case, facts = draw_backfill(load, number)
    part: dict[str, Any] = {"load": load, "number": number, "sure": sure, **facts, "why": ""}
    try:
        plan = first_plan(case, sure)
    except DeadlineError as error:
        return {**part, "why": str(error), "refused_executors": error.executors}
    once = all_at_once(case, plan)
    part |= {
        "told_hours": plan.schedule.hours, "told_chance": plan.schedule.chance, "at_once_hours": once.hours,
        "own_hours": own_executors_hours(case), "clairvoyant_hours": clairvoyant_hours(case),
    }  # fmt: skip
    for name, tolerance in VARIANTS.items():
        found = asdict(follow(case, plan, tolerance))
        part[name] = {**found, "finish_s": found["finish_s"] if math.isfinite(found["finish_s"]) else None}
    return part


def judge_deadlines(parts: Sequence[dict[str, Any]], variant: str = "replanned") -> dict[str, Any]:
    """Judge backfills together.

    Returns:
        `n`, planned ones; `refused`; `kept`, share; `distance`, Kolmogorov's, of the places of the finishing times in
        the distributions that were told from the uniform one, and `noise`, its 95 % quantile if they were uniform;
        `beside_once`, executor-hours ÷ those of all executors at once, median, and `beside_own`, ÷ those of executors
        of its own; `beside_clairvoyant`, ÷ the bound of who knows all, median over the `n_paid` where that is at least
        `FEW_HOURS`; `sum_` before these: of sums; `busiest`; `changes` and `moves`, mean; `places`, in tenths. None
        where there are none.
    """
    planned = [part for part in parts if not part["why"]]
    if not planned:
        return {"n": 0, "refused": len(parts)}
    found = [part[variant] for part in planned]
    hours = np.array([one["hours"] for one in found])
    costs = ("at_once_hours", "own_hours", "clairvoyant_hours")
    once, own, least = (np.maximum([part[name] for part in planned], 1e-9) for name in costs)
    paid = least >= FEW_HOURS
    places = np.sort([one["place"] for one in found])
    return {
        "n": len(planned), "refused": len(parts) - len(planned), "kept": float(np.mean([one["kept"] for one in found])),
        "distance": kolmogorov_distance(places), "noise": 1.358 / math.sqrt(len(places)),
        "beside_once": float(np.median(hours / once)), "beside_own": float(np.median(hours / own)),
        "sum_beside_once": float(hours.sum() / once.sum()), "n_paid": int(paid.sum()),
        "beside_clairvoyant": float(np.median(hours[paid] / least[paid])) if paid.any() else None,
        "sum_beside_clairvoyant": float(hours.sum() / least.sum()),
        "clairvoyant_beside_once": float(np.median(least / once)),
        "busiest": max(one["busiest"] for one in found),
        "changes": float(np.mean([one["changes"] for one in found])),
        "moves": float(np.mean([one["moves"] for one in found])),
        "places": np.histogram(places, np.linspace(0, 1, 11))[0].tolist(),
    }  # fmt: skip


def kolmogorov_distance(places: Any) -> float:
    """Return the largest distance of (N,) rising numbers' distribution from the uniform one on 0 to 1."""
    at, count = np.arange(len(places)), len(places)
    return float(np.maximum((at + 1) / count - places, places - at / count).max())


def _figures(parts: list[dict[str, Any]], sure: float) -> dict[str, Any]:
    halves = {str(half): judge_deadlines([part for part in parts if half_of(part["load"]) == half]) for half in (1, 2)}
    jobs = {name: judge_deadlines([part for part in parts if part["fixed"] == fixed]) for name, fixed in JOBS.items()}
    variants = {name: judge_deadlines(parts, name) for name in VARIANTS if name != "replanned"}
    told = {"sure": sure, "halves": halves, "jobs": jobs, "variants": variants}
    return {**judge_deadlines(parts), **told, "parts": list(parts)}


def _line(part: dict[str, Any]) -> str:
    where = f"{part['load']:24}{part['number']:3d} {part['work']:4.0%} by {part['ratio']:.1f} x {part['hours']:5.1f} h"
    if part["why"]:
        return f"{where}  refused: {part['why']}"
    found = part["replanned"]
    each = f"{found['hours']:7.2f} h (at once {part['at_once_hours']:.2f}, clairvoyant {part['clairvoyant_hours']:.2f})"
    kept = "".join("yes"[: 3 * part[name]["kept"]].ljust(4, "-") for name in VARIANTS)
    return f"{where}  kept {kept} place {found['place']:.2f} {each} {found['changes']} changes"
