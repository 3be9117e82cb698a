"""Several runs on one page: every run in a table, medians per policy, and cost against broken promises as dots."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from configs.policies import POLICIES
from pipelines.html.document import NOWRAP, NUMBER, document, holder, row, section, table
from pipelines.html.numbers import number
from pipelines.report import charts
from pipelines.report.headline import Summary

_LIGHT = 'class="hold"'
SWEEP = "sweep"
"""`turn` of a run that only chose a setting: it is shown and not counted in the medians."""

_COLUMNS: list[tuple[str, tuple[str, ...], int]] = [
    ("over target, s", ("over_target_s",), 0),
    ("executor-s", ("executor_s",), 0),
    ("p50, s", ("latency_s", "p50"), 2),
    ("p95, s", ("latency_s", "p95"), 2),
    ("max, s", ("latency_s", "max"), 1),
    ("stopped, s", ("stopped_s",), 0),
    ("lost", ("lost",), 0),
    ("twice", ("duplicated",), 0),
    ("ups", ("scale_ups",), 0),
    ("by forecast", ("scale_ups_by_forecast",), 0),
    ("downs", ("scale_downs",), 0),
    ("stood in", ("stood_in",), 0),
    ("to use, s", ("decision_to_useful_s", "p50"), 1),
]


def render_comparison(runs: list[Summary], path: Path) -> Path:
    """Write one HTML page about runs (summaries, perhaps with `turn` and `target_utilisation`) to `path`.

    Raises:
        ValueError: there are no runs.
    """
    if not runs:
        raise ValueError("no runs to compare; give at least one summary")
    dots = "A dot is a run. Further left is cheaper, further down keeps the latency target better."
    every = "Latency as p50, p95 and max. Sweep runs only chose the target utilisation; the medians leave them out. "
    every += "A decision in which another policy stood in was not made by the one that the run is named for."
    body = "\n".join([
        "<h1>Tidecast: policies compared</h1>",
        f'<p class="verdict">{escape(verdict(runs))}</p>',
        section("Cost against broken promises", dots, holder("frontier", 420, "seconds over the target against cost")),
        section("Every run", every, _table(runs)),
    ])  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        document("Tidecast: policies compared", body, {"frontier": charts.frontier(runs)}), encoding="utf-8"
    )
    return path


def verdict(runs: list[Summary]) -> str:
    """The medians of every policy, and how the pairs of the first two policies came out."""
    counted = [r for r in runs if r.get("turn") != SWEEP] or runs
    said = []
    for policy in _policies(counted):
        mine = [r for r in counted if r["policy"] == policy]
        over, paid = (statistics.median(r[key] for r in mine) for key in ("over_target_s", "executor_s"))
        many = f"{len(mine)} runs" if len(mine) > 1 else "1 run"
        said.append(f"{policy}: {over:g} s over the target for {number(paid)} executor-seconds (median of {many}).")
        if stood := sum(r.get("stood_in", 0) for r in mine):
            said.append(
                f"In {stood} of {policy}'s {sum(r['decisions'] for r in mine)} decisions another policy stood in."
            )
    pairs = _pairs(counted)
    if pairs:
        first, second = pairs[0][0]["policy"], pairs[0][1]["policy"]
        fewer = sum(a["over_target_s"] < b["over_target_s"] for a, b in pairs)
        cheaper = sum(a["executor_s"] <= b["executor_s"] for a, b in pairs)
        said.append(
            f"Of {len(pairs)} pair{'s' * (len(pairs) != 1)}, {first} had fewer seconds over the target than {second} "
            f"in {fewer}, and took no more executor-seconds in {cheaper}."
        )
    return " ".join(said)


def _policies(runs: Iterable[Summary]) -> list[str]:
    return sorted({r["policy"] for r in runs}, key=POLICIES[::-1].index)


def _pairs(runs: list[Summary]) -> list[tuple[Summary, Summary]]:
    """Runs of the first two policies that had the same turn, or the same place in their policy's order."""
    names = _policies(runs)[:2]
    if len(names) < 2:
        return []
    first, second = ([r for r in runs if r["policy"] == name] for name in names)
    return list(zip(_by_turn(first), _by_turn(second), strict=False))


def _by_turn(runs: list[Summary]) -> list[Summary]:
    return sorted(runs, key=lambda r: str(r.get("turn", "")))


def _table(runs: list[Summary]) -> str:
    named = [("turn", "turn"), ("policy", "policy"), ("target_utilisation", "target"), ("id", "run")]
    keys = [(key, title) for key, title in named if any(key in r for r in runs)]
    kinds = [NOWRAP] * len(keys) + [NUMBER] * len(_COLUMNS)
    rows = [
        row(
            [*(escape(str(r.get(key, ""))) for key, _ in keys), *_cells(r)],
            kinds,
            _LIGHT if r.get("turn") == SWEEP else "",
        )
        for r in runs
    ]
    counted = [r for r in runs if r.get("turn") != SWEEP] or runs
    for policy in _policies(counted):
        mine = [r for r in counted if r["policy"] == policy]
        said = {"policy": policy, "id": f"median of {len(mine)}"}
        rows.append(row([*(said.get(key, "") for key, _ in keys), *_cells(_median(mine))], kinds, 'class="median"'))
    return table([title for _, title in keys] + [title for title, _, _ in _COLUMNS], kinds, rows, 'class="wide"')


def _cells(values: dict[str, Any]) -> list[str]:
    return [number(_at(values, path), digits) for _, path, digits in _COLUMNS]


def _median(runs: list[Summary]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _, path, _ in _COLUMNS:
        known = [v for v in (_at(r, path) for r in runs) if v is not None]
        middle = statistics.median(known) if known else None
        place = found if len(path) == 1 else found.setdefault(path[0], {})
        place[path[-1]] = middle
    return found


def _at(values: dict[str, Any], path: tuple[str, ...]) -> Any:
    for key in path:
        values = values[key]
    return values
