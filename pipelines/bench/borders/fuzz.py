"""Damaged inputs at every border: how many were accepted and refused, and which ended what reads them."""

from __future__ import annotations

import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.bench.borders.http import http_borders
from pipelines.bench.borders.mutants import make_mutants
from pipelines.bench.borders.read import Border, other_borders, topic_borders

INPUTS = 10_000
SHOWN = 300
"""Most characters of an input that is shown."""
KEPT = 40
"""Most kinds of faults that are kept for each border."""
_ALIKE = {"messages": "topic: ", "http": "HTTP: ", "yaml": "YAML: ", "artifacts": "artifact: "}


def fuzz_borders(count: int = INPUTS, seed: int = 7, say: Callable[[str], None] = print) -> dict[str, Any]:
    """Give damaged inputs to everything that reads what comes from outside; prints a line per border.

    Args:
        count: inputs for each border, at least; each kind of message is one.
        seed: of the damage.
        say: called with each line.

    Returns:
        `borders`: by name what `fuzz_border` returns; `inputs`, `crashed`, `unsound`, `slowest_s`: over all of them;
        `fewest`: inputs of the border that has the fewest; `shares`: inputs of `messages`, `http`, `yaml` and
        `artifacts`.
    """
    found = dict[str, dict[str, Any]]()
    with http_borders() as http:
        for name, border in {**topic_borders(time.time()), **other_borders(), **http}.items():
            found[name] = one = fuzz_border(border, count, seed)
            say(
                f"{name:<28}{one['inputs']:>8,} inputs, {one['accepted']:>7,} accepted, {one['crashed']} crashed, "
                f"{one['unsound']} unsound, slowest {one['slowest_s']:.2f} s"
            )
    totals = {what: sum(one[what] for one in found.values()) for what in ("inputs", "crashed", "unsound")}
    shares = {
        name: sum(one["inputs"] for border, one in found.items() if border.startswith(begin))
        for name, begin in _ALIKE.items()
    }
    return {
        "borders": found, "shares": shares, "fewest": min(one["inputs"] for one in found.values()),
        "slowest_s": max(one["slowest_s"] for one in found.values()), **totals,
    }  # fmt: skip


def fuzz_border(border: Border, count: int, seed: int) -> dict[str, Any]:
    """Give damaged inputs, and the right ones, to one border.

    Returns:
        `inputs`, `accepted`, `refused`, `crashed`, `unsound` (how many), `slowest_s`; `faults`: [what, input, why], one
        of each kind, where another error came out than by which the border may refuse, a right input was refused, or
        what was made of one does not hold.
    """
    figures: dict[str, Any] = {
        "inputs": 0, "accepted": 0, "refused": 0, "crashed": 0, "unsound": 0, "slowest_s": 0.0, "faults": {},
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as home:
        for number, raw in enumerate((*border.samples, *make_mutants(border.form, border.samples, count, seed))):
            _give(border, raw, Path(home), number < len(border.samples), figures)
    return {**figures, "faults": list(figures["faults"].values())}


def _give(border: Border, raw: bytes, folder: Path, right: bool, figures: dict[str, Any]) -> None:
    figures["inputs"] += 1
    begun, shown = time.perf_counter(), repr(raw)[:SHOWN]
    try:
        found = border.read(raw, folder)
    except border.refused as error:
        figures["refused"] += 1
        if right:
            _note(figures, "crashed", shown, f"refused, and right: {error}")
    except Exception as error:  # live, it would end what reads
        _note(figures, "crashed", shown, f"{error!r:.200} at {_place(error)}")
    else:
        figures["accepted"] += 1
        if (wrong := _unsound(border, found)) is not None:
            _note(figures, "unsound", shown, wrong)
    figures["slowest_s"] = max(figures["slowest_s"], round(time.perf_counter() - begun, 3))


def _unsound(border: Border, found: Any) -> str | None:
    try:
        return None if border.sound(found) else repr(found)[:SHOWN]
    except Exception as error:
        return f"{error!r}: {found!r}"[:SHOWN]


def _place(error: Exception) -> str:
    """Where it came from, as file:line; of equal ones one is enough to see."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{Path(last.filename).name}:{last.lineno}"


def _note(figures: dict[str, Any], what: str, shown: str, why: str) -> None:
    figures[what] += 1
    kind = what, why.rpartition(" at ")[2] if " at " in why else why[:40]
    if len(figures["faults"]) < KEPT:
        figures["faults"].setdefault(kind, [what, shown, why[:SHOWN]])
