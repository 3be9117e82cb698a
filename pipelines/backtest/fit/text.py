"""A fit, its check and the recordings as plain text."""

from __future__ import annotations

from typing import Any

from models.twin.calibration.fit import Fitted

_UNITS = {"overhead_s": "s", "per_record_s": "s", "cold_s": "s", "startup_s": "s"}


def of_fit(found: Fitted) -> str:
    """The parameters with their intervals, and what the measurements do not tell apart."""
    lines = [f"fitted to {found.batches} warm batches and {found.startups} start-ups; 95 % intervals in brackets"]
    for name, (low, high) in found.between.items():
        value = getattr(found.job, name)
        middle = sorted(value)[len(value) // 2] if isinstance(value, tuple) else value
        word = " (median)" if isinstance(value, tuple) else ""
        lines.append(f"  {name:14} {middle:.4g} {_UNITS.get(name, ''):1} [{low:.4g}, {high:.4g}]{word}")
    if found.unsure:
        lines.append(
            f"  not told apart: {', '.join(found.unsure)}: wider than half their value; runs at other loads and with "
            "other numbers of executors would tell"
        )
    return "\n".join(lines)


def of_runs(figures: list[dict[str, Any]]) -> str:
    """A line per run that the twin was not fitted to."""
    head = f"{'run':28} {'trace':18} {'s':>5} {'lag':>12} {'latency':>12} {'executors':>12} {'over, s':>12}"
    lines = [
        "each run against a twin fitted to the others: root mean square error / measured range, of the mean of the "
        "twin's runs (of one run)",
        head,
    ]
    for one in figures:
        cells = [f"{_share(one['error'][k])} ({_share(one['error_of_one'][k])})" for k in one["error"]]
        over = f"{one['over_target_s']['measured']} / {one['over_target_s']['twin']:g}"
        lines.append(
            f"{one['run']:28} {one['trace'][:18]:18} {one['seconds']:5} "
            + " ".join(f"{cell:>12}" for cell in cells)
            + f" {over:>12}"
        )
    return "\n".join(lines)


def of_recordings(found: dict[str, list[dict[str, Any]]]) -> str:
    """Two lines per recording."""
    lines = ["share of seconds with latency over 2 s: fitted to one half, checked on the other"]
    for name, parts in found.items():
        for part in parts:
            lines.append(
                f"{name:26} {part['checked_on']:6} half: measured {part['measured']:.4f}, twin {part['twin']:.4f} "
                f"± {part['twin_deviation']:.4f}, ratio {part['ratio']:.2f}  (down {part['down_s']:.1f} s, read again "
                f"{part['rewind_s']:.1f} s, catch-up {part['catch_up']:.2f} × load, workers^{part['scaling']:.2f})"
            )
    return "\n".join(lines)


def of_recovery(found: dict[str, dict[str, float]], profiled: tuple[float, int] | None) -> str:
    """A line per recording, and one for profiles."""
    lines = [
        f"{name}: {one['alone']} of {one['changes']} changes stand alone; caught-up rate ∝ load^{one['load']:.2f} · "
        f"workers^{one['workers']:.2f}"
        for name, one in found.items()
    ]
    if profiled:
        lines.append(f"profiles under back-pressure: throughput ∝ workers^{profiled[0]:.2f} ({profiled[1]} profiles)")
    return "\n".join(lines)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"
