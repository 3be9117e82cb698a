"""What is said of a run's backfill: a sentence, tiles, and what went wrong. `b` is the summary's `backfill`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pipelines.html.document import Tile
from pipelines.html.numbers import number, number_of, share


def backfill_sentence(b: dict[str, Any]) -> str:
    """Say what a backfill came to: windows corrected, the live promise meanwhile, and when it was done against plan.

    Raises:
        KeyError: an entry of `summarize_backfill` is missing.
    """
    kept = "live promise kept"
    if not b["live_promise_kept"]:
        kept = f"live promise broken meanwhile ({b['late_s']} of {b['produced_s']} s late)"
    of = f"The backfill of {_clock(b, 'from')} to {_clock(b, 'to')}, beside live records,"
    if not b["done"]:
        return f"{of} was not done: {_state(b)}{f'; {kept}' if b['took_s'] else ''}."
    fixed = f"corrected {_windows(b)}"
    return f"{of} {fixed}, {kept}, done at {_clock(b, 'done_at')} {_against_plan(b)}."


def backfill_failures(b: dict[str, Any] | None) -> list[str]:
    """Say in words what went wrong with a backfill, one sentence each: not done, or results that are not right.

    [] where nothing did, and for None: a run without one. A missed deadline is told like a broken promise, by
    `backfill_sentence`, and is no failure: on a slow computer results come late, and are right.

    Raises:
        KeyError: an entry of `summarize_backfill` is missing.
    """
    if b is None:
        return []
    found = []
    if not b["done"]:
        found.append(f"the backfill was not done: {_state(b)}")
    if b["windows_differed"] is None:
        found.append("nobody counted what the backfill corrected")
    elif b["windows_corrected"] < b["windows_differed"] or b["windows_wrong"]:
        fixed = f"of {number_of(b['windows_differed'], 'window')} to correct {_are(b['windows_corrected'])} right"
        found.append(f"{fixed}, and of all {_are(b['windows_wrong'])} wrong")
    elif not b["windows_differed"]:
        found.append("the backfill had nothing to correct: no window differed")
    return found


def backfill_tiles(b: dict[str, Any]) -> list[Tile]:
    """Return four figures of a backfill: windows, end against plan, live latency beside it, late seconds meanwhile.

    Raises:
        KeyError: an entry of `summarize_backfill` is missing.
    """
    beside, alone = b["latency_s"]["beside"], b["latency_s"]["alone"]
    lent = f"; {number(b['executor_s'])} executor-seconds asked for it" if b["executor_s"] else ""
    exact = b["windows_corrected"] == b["windows_differed"] and not b["windows_wrong"] and b["done"]
    return [
        Tile(
            "Windows corrected", number(b["windows_corrected"]), f"of {number(b['windows_differed'])} that differed",
            f"{number_of(b['records'], 'record')} read again; "
            f"of the day's results {_are(b['windows_wrong'])} wrong now",
            exact,
        ),
        Tile(
            "Backfill done", _clock(b, "done_at") if b["done"] else "no", "of the trace" if b["done"] else b["state"],
            f"planned by {_clock(b, 'planned_end')}, deadline {_clock(b, 'deadline')}; {number(b['took_s'])} s from "
            f"its order, {number(b['rps'], 1)} records/s{lent}",
            b["as_planned"],
        ),
        Tile(
            "Live latency beside it, 99 %", number(beside["p99"], 1), "s",
            f"median {number(beside['p50'], 1)} s; without it, at other hours, {number(alone['p99'], 1)} s and "
            f"{number(alone['p50'], 1)} s",
        ),
        Tile(
            "Live seconds late meanwhile", str(b["late_s"]), f"of {b['produced_s']} s",
            f"{share(b['late_share'], 1)}; {_relief(b['highest_step'])}",
            b["live_promise_kept"],
        ),
    ]  # fmt: skip


def _are(many: int | None) -> str:
    return f"{number(many)} {'is' if many == 1 else 'are'}"


def _relief(step: str) -> str:
    return "no relief was needed" if step == "none" else f"relief went as far as the step “{step}”"


def _windows(b: dict[str, Any]) -> str:
    corrected, differed = b["windows_corrected"], b["windows_differed"]
    if differed is None:
        return "windows that nobody counted"
    some = number_of(differed, "window")
    return some if corrected == differed else f"{number(corrected)} of {some}"


def _against_plan(b: dict[str, Any]) -> str:
    planned = _clock(b, "planned_end")
    if b["as_planned"]:
        return f"as planned (by {planned})"
    late = f", and after its deadline {_clock(b, 'deadline')}" if not b["in_time"] else ""
    return f"instead of {planned} as planned{late}"


def _state(b: dict[str, Any]) -> str:
    return f"{b['state']}, {b['reason']}" if b["reason"] else str(b["state"])


def _clock(b: dict[str, Any], name: str) -> str:
    """A moment as the day's clock shows it; on another day than the range's begin with the weekday."""
    at, first = datetime.fromisoformat(b[name]), datetime.fromisoformat(b["from"])
    return f"{at:%H:%M}" if at.date() == first.date() else f"{at:%a %H:%M}"
