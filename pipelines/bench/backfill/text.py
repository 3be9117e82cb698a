"""Cells and figures of the measurement in lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.bench.backfill import deadlines, faults, finish, latency, limits, outages, workloads
from pipelines.bench.backfill.cells import Found, MeasuredCell
from pipelines.report.operation import MEANINGS


def describe_cell(cell: MeasuredCell, found: Found) -> str:
    """Say in a line what a cell showed."""
    parts = [f"live p99 {_number(found['p99_s'], '.2f')} s"] if "wrong" not in found else []
    if "back_s" in found:
        first = _number(found["began_s"], ".0f")
        parts.append(f"live back after {_number(found['back_s'], '.0f')} s, first batch after {first} s")
        parts.append(f"late for {_number(found['late_s'], '.0f')} s after that")
    if "wrong" in found:
        parts.append(f"{found['wrong']} of {found['windows']} windows wrong")
    if "carried" in found:
        parts.append(f"{len(found['carried'])} faults carried out, {len(found['missed'])} met nobody")
        parts.append(describe_report(found["operation"]))
    if found.get("filled_s") is not None:
        parts.append(f"all from before in the table after {found['filled_s']:.0f} s")
    if found["rps"] is not None:
        parts.append(f"replay {found['rps']:.0f} records/s")
    if found["done_s"] is not None:
        parts.append(f"done after {found['done_s']:.0f} s")
    if found["refused"]:
        parts.append(f"refused: {found['refused']}")
    if found["exact"] is False:
        parts.append("NOT JUST THE RANGE WAS READ")
    if found["differing"]:
        parts.append(f"{found['differing']} of {found['decisions']} decisions do not replay")
    return f"{cell.row} {cell.load} {cell.arm} turn {cell.turn + 1}: {', '.join(parts)}"


def format_figures(figures: Mapping[str, Any]) -> str:
    """Format what all kept cells come to, judged or not yet."""
    return "\n".join(
        [
            *_latency(figures),
            *_finish(figures),
            *_deadlines(figures),
            *_limits(figures),
            *_outages(figures),
            *_faults(figures),
            *_workloads(figures),
        ]
    )


def _latency(figures: Mapping[str, Any]) -> Iterator[str]:
    for load, one in figures[latency.ROW].items():
        if one["ratio"] is not None:
            told = "" if one["judged"] is not None else "; too short to be judged"
            best = "none keeps it" if one["none_keeps"] else _number(one["best_rps"], ".0f") + one["edge"] * " or more"
            yield (
                f"{load}: live p99 {one['ratio']:.3f} x live alone ({one['low']:.3f} to {one['high']:.3f}), replay "
                f"{_number(one['rps'], '.0f')} records/s, best fixed {best}{told}"
            )


def _finish(figures: Mapping[str, Any]) -> Iterator[str]:
    for load in finish.LOADS:
        for one in figures[finish.ROW][load]["arms"]:
            kept = {True: "kept", False: "not kept", None: "unknown"}[one["kept"]]
            yield (
                f"{load}, {one['arm']}: {one['median_s']:.0f} s, {one['finished']} of {one['n']} finished, "
                f"live p99 {_number(one['p99_s'], '.2f')} s, limit {kept}"
            )


def _deadlines(figures: Mapping[str, Any]) -> Iterator[str]:
    one = figures[deadlines.ROW]
    if one["n"]:
        yield f"deadlines: {one['kept']} of {one['n']} kept, {one['refused']} refused, places {_list(one['places'])}"


def _limits(figures: Mapping[str, Any]) -> Iterator[str]:
    for load in limits.LOADS:
        one = figures[limits.ROW][load]
        if one["n"]:
            more, ripple = _number(one["more_s"], ".1f"), _number(one["ripple"], ".3f")
            yield f"{load}: {more} s more over the limit, ripple {ripple}"


def _outages(figures: Mapping[str, Any]) -> Iterator[str]:
    for load, one in figures[outages.ROW].items():
        if one["n"]:
            each = ", ".join(f"{arm} {_number(back, '.0f')} s" for arm, back in one["back_s"].items())
            yield f"{load}, live within its target again after an outage: {each}; {one['wrong']} windows wrong"


def _faults(figures: Mapping[str, Any]) -> Iterator[str]:
    for load, one in figures[faults.ROW].items():
        if one["n"]:
            yield f"{load}, all faults at once: {_number(one['wrong'], 'd')} of {one['windows']} windows wrong"
        if (sampled := one.get("sampled")) and sampled["n"]:  # not in files of an earlier release
            within = _number(sampled["within"], ".4f")
            yield f"{load}, likewise, from a sample: {within} of {sampled['windows']} windows within their bound"


def _workloads(figures: Mapping[str, Any]) -> Iterator[str]:
    for load, one in figures[workloads.ROW].items():
        if one["n"]:
            wrong = f"{_number(one['wrong'], 'd')} of {one['windows']} windows wrong"
            yield f"{load} workload, {one['faults']} faults: {wrong}"
            yield f"  {describe_report(one['operation'])}"
        if one["sampled"]["n"]:
            within = _number(one["sampled"]["within"], ".4f")
            yield f"{load}, from a sample: {within} of {one['sampled']['windows']} windows within their bound"
            yield f"  {describe_report(one['sampled']['operation'])}"


def describe_report(told: Mapping[str, Any]) -> str:
    """Say in a line what the report of a session holds (`report.operation`)."""
    parts = []
    for key, (title, unit, _) in MEANINGS.items():
        value = told[key]
        each = value.items() if isinstance(value, dict) else [("", value)]
        known = " ".join(f"{name} {one:g}".strip() for name, one in each if one is not None)
        parts += [f"{title.lower()} {known} {unit}".strip()] if known else []
    return "; ".join([*parts, f"{told['executor_h']:g} executor-hours"])


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _list(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
