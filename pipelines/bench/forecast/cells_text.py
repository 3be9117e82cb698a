"""The table of many cells as plain text."""

from __future__ import annotations

from typing import Any

from pipelines.bench.forecast.cells import LARGE
from pipelines.html.columns import aligned

Cells = list[dict[str, Any]]


def table(cells: Cells, sums: dict[str, dict[str, Any]]) -> str:
    """A line per cell, and under them what each model came to."""
    models = list(sums)
    titles = ["cell", "test rows", "best naive", "RMSE", *(f"{name} ÷" for name in models)]
    titles += ["95 % interval", "chosen", "published", *(f"{name} ÷" for name in models), "pinball ÷", "train s"]
    lines = [titles, *(_line(cell, models) for cell in cells)]
    rows = aligned(lines, left={0, 2, 5 + len(models)})
    return "\n".join([*rows, "", *(said for name in models for said in _sum(name, sums[name]))])


def _line(cell: dict[str, Any], models: list[str]) -> list[str]:
    rows, last = cell["models"], models[-1]
    low, high = rows.get(last, {}).get("between") or (float("nan"),) * 2
    said = cell["published"]
    return [
        cell["cell"],
        f"{cell['test_steps']:,}" + ("" if cell["large"] else " *"),
        cell["best_naive"],
        f"{rows[cell['best_naive']]['rmse']:,.4g}",
        *(_of(rows, name, "ratio") for name in models),
        f"{low:.2f}–{high:.2f}",
        cell["champion"],
        f"{said['rmse']:,}" if said else "",
        *(_of(rows, name, "published_ratio") for name in models),
        _of(rows, last, "pinball_ratio"),
        f"{rows[last]['train_s']:.1f}" if last in rows else "",
    ]


def _of(rows: dict[str, Any], name: str, key: str) -> str:
    value = rows.get(name, {}).get(key)
    return "" if value is None else f"{value:.3f}"


def _sum(name: str, found: dict[str, Any]) -> list[str]:
    if not found["cells"]:
        return [f"{name}: could be fitted to no cell"]
    said = [
        f"{name}, geometric means over {found['cells']} cells: one-step RMSE {found['ratio']:.3f} × best naive, mean "
        f"pinball loss {found['pinball_ratio']:.3f} × best naive",
    ]
    if found["worst"]:
        said.append(f"  worst cell of ≥ {LARGE} test rows: {found['worst']['cell']}, {found['worst']['ratio']:.3f}")
    said.append(f"  smaller cells (*) worse at 95 %: {', '.join(found['worse']) or 'none'}")
    if found["published_ratio"]:
        said.append(f"  {found['published_ratio']:.3f} × the best published method, scored as its authors did")
    for key, off in found["coverage"].items():
        if off:
            said.append(
                f"  {100 * float(key):g} % interval: off by {off['median']:.1f} points in the median, "
                f"{off['worst']:+.1f} at worst"
            )
    said.append(f"  longest training {found['train_s']:.1f} s, median prediction {found['predict_us']:.0f} µs")
    return said
