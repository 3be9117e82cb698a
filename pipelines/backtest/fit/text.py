"""A fit, its check and the recordings as plain text."""

from __future__ import annotations

from statistics import median_high
from typing import Any

from models.twin.calibration.fit import Fitted
from pipelines.html.columns import aligned

_UNITS = {"overhead_s": "s", "per_record_s": "s", "cold_s": "s", "startup_s": "s"}


def of_fit(found: Fitted) -> str:
    """The parameters with their intervals, and what the measurements do not tell apart."""
    lines = [f"fitted to {found.batches} warm batches and {found.startups} start-ups; 95 % intervals in brackets"]
    for name, (low, high) in found.between.items():
        value = getattr(found.job, name)
        middle, word = (median_high(value), " (median)") if isinstance(value, tuple) else (value, "")
        lines.append(f"  {name:14} {middle:.4g} {_UNITS.get(name, ''):1} [{low:.4g}, {high:.4g}]{word}")
    if found.unsure:
        lines.append(
            f"  not told apart: {', '.join(found.unsure)}: wider than half their value; runs at other loads and with "
            "other numbers of executors would tell"
        )
    return "\n".join(lines)


def of_runs(figures: list[dict[str, Any]]) -> str:
    """A line per run that the twin was not fitted to."""
    lines = [["run", "trace", "s", "lag", "latency", "executors", "over, s"]]
    for one in figures:
        errors = [f"{_share(one['error'][k])} ({_share(one['error_of_one'][k])})" for k in one["error"]]
        over = f"{one['over_target_s']['measured']} / {one['over_target_s']['twin']:g}"
        lines.append([one["run"], one["trace"][:18], str(one["seconds"]), *errors, over])
    return "\n".join([
        "each run against a twin fitted to the others: root mean square error / measured range, of the mean of the "
        "twin's runs (of one run)",
        *aligned(lines, left=(0, 1)),
    ])  # fmt: skip


def of_recordings(found: dict[str, list[dict[str, Any]]]) -> str:
    """Two lines per recording."""
    lines = ["share of seconds with latency over 2 s: fitted to one half, checked on the other"]
    lines += [
        f"{name:26} {part['checked_on']:6} half: measured {part['measured']:.4f}, twin {part['twin']:.4f} "
        f"± {part['twin_deviation']:.4f}, ratio {part['ratio']:.2f}  (down {part['down_s']:.1f} s, read again "
        f"{part['rewind_s']:.1f} s, catch-up {part['catch_up']:.2f} × load, workers^{part['scaling']:.2f})"
        for name, parts in found.items()
        for part in parts
    ]
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
