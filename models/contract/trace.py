"""The trace of a controller as JSON lines, and its replay (unified batch-stream runtime paper, control traces).

Floats are written by `repr`, which is exact: a replay on the same platform must agree to the last bit, and where it
does not, the code or the contract is another one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from models.contract.controller import VERSION, close_interval
from models.contract.declared import TermsError, build, plain
from models.contract.signals import SharedPlan, Signals
from models.contract.state import ControllerState
from models.contract.terms import Terms, compile_terms

ROUGH = "response"
"""Part of a line in which two platforms agree within no small tolerance. Its least squares forget, so that the variance
of weights that nothing tells of grows to its bound: after two hours of a steady load a bit of rounding is a relative
1e-5. No control is made of it."""


class ControlTraceError(ValueError):
    """Lines that are no trace of this controller; the message names the line, what is wrong and the remedy."""


class TraceDifference(NamedTuple):
    """Where a replay and its trace part.

    Attributes:
        line: number in the trace; 1 is the header.
        field: dotted name within the line.
        logged, recomputed: values; None: there is none.
    """

    line: int
    field: str
    logged: Any
    recomputed: Any


def header(terms: Terms, plan: SharedPlan, state: ControllerState, models: Mapping[str, str] | None = None) -> str:
    """Return the first line of a trace: all that a replay starts from.

    Args:
        terms: the contract.
        plan: of the operators.
        state: before the first interval of the trace.
        models: versions of forecasters and whatever else made the signals, by name.
    """
    about = {
        "hash": terms.hash, "controller": VERSION, "models": dict(models or {}), "seed": terms.seed,
        "t0": state.began_s, "interval_s": terms.interval_s, "terms": plain(terms), "plan": plain(plan),
        "state": plain(state),
    }  # fmt: skip
    return trace_line(about)


def trace_line(line: Mapping[str, Any]) -> str:
    """Return a line of the trace, of `close_interval`, as JSON with sorted keys and without a line break."""
    return json.dumps(line, sort_keys=True, separators=(",", ":"))


def replay(lines: Iterable[str], tolerance: float = 0.0) -> TraceDifference | None:
    """Compute every interval of a trace again from its signals, and find the first value that differs.

    Args:
        lines: header first.
        tolerance: largest difference of floats, relative or absolute; 0 on the platform that wrote the trace, 1e-9 on
            others, where what was learned of the job's response is left out.

    Returns:
        None where all agree.

    Raises:
        ControlTraceError: a line is not JSON or lacks a part, the contract is not the one whose hash it carries, or
            another version of the controller wrote it.
    """
    numbered = enumerate(lines, start=1)
    first = next(numbered, None)
    if first is None:
        raise ControlTraceError("line 1: missing. A trace begins with its header")
    terms, plan, state = _opened(_parsed(*first))
    for number, text in numbered:
        logged = _parsed(number, text)
        try:
            closed = close_interval(terms, plan, state, build(Signals, logged["y"]))
        except (KeyError, ValueError) as error:
            raise ControlTraceError(f"line {number}: {error}. Its signals are not as this code writes them") from None
        state, made = closed.state, json.loads(trace_line(closed.line))
        if tolerance:
            logged, made = ({key: line[key] for key in line if key != ROUGH} for line in (logged, made))
        if found := first_difference(logged, made, tolerance):
            return TraceDifference(number, *found)
    return None


def _parsed(number: int, text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ControlTraceError(f"line {number}: not JSON: {error}. A line that was cut off may be deleted") from None
    if not isinstance(line, dict):
        raise ControlTraceError(f"line {number}: {text[:40]!r} is no mapping")
    return line


def _opened(first: Mapping[str, Any]) -> tuple[Terms, SharedPlan, ControllerState]:
    if first.get("controller") != VERSION:
        wrote = first.get("controller")
        raise ControlTraceError(f"line 1: controller={wrote!r}, this is {VERSION}. Use the release that wrote it")
    try:
        terms, plan = compile_terms(first["terms"]), build(SharedPlan, first["plan"])
        state = build(ControllerState, first["state"])
        if terms.hash != first["hash"]:
            raise ControlTraceError(f"line 1: hash={first['hash']!r}, its contract's is {terms.hash}. It was edited")
    except (KeyError, TermsError) as error:
        raise ControlTraceError(f"line 1: {error}. It is no header as this code writes it") from None
    return terms, plan, state


def first_difference(logged: Any, found: Any, tolerance: float, field: str = "") -> tuple[str, Any, Any] | None:
    """Return the first place in which two JSON values differ: its dotted name, and both values; None where none does.

    Args:
        logged: value.
        found: the other; they are compared to the bit, -0.0 is not 0.0.
        tolerance: largest difference of two floats, relative or absolute: one that is 0 here may be 1e-16 elsewhere.
        field: name of the place at which they stand.
    """
    if isinstance(logged, dict) and isinstance(found, dict):
        pairs = [(str(key), logged.get(key), found.get(key)) for key in sorted({*logged, *found})]
    elif isinstance(logged, list) and isinstance(found, list) and len(logged) == len(found):
        pairs = [(str(at), *pair) for at, pair in enumerate(zip(logged, found, strict=True))]
    else:
        return None if _same(logged, found, tolerance) else (field, logged, found)
    parts = (first_difference(a, b, tolerance, f"{field}.{key}" if field else key) for key, a, b in pairs)
    return next((part for part in parts if part), None)


def _same(logged: Any, found: Any, tolerance: float) -> bool:
    if tolerance and isinstance(logged, float) and isinstance(found, float):
        near = math.isclose(logged, found, rel_tol=tolerance, abs_tol=tolerance)
        return near or (math.isnan(logged) and math.isnan(found))
    return type(logged) is type(found) and repr(logged) == repr(found)  # to the bit: -0.0 is not 0.0, and true not 1
