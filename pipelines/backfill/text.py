"""What is said of a replay in a terminal."""

from __future__ import annotations

from tidecast.orders import ReplayOrder, ReplayProgress

_BAR = 24  # characters


def describe_order(order: ReplayOrder) -> str:
    """Say what is ordered, in a line."""
    rate = "at what live records leave" if order.most_rps is None else f"at {order.most_rps:g} records/s at most"
    return f"{order.job}: replay {order.id}, {order.records:,} records, {rate}"


def describe_progress(said: ReplayProgress) -> str:
    """Say how far a replay is, in a line with a bar; with the time that is left at its present rate."""
    share = said.done / said.records if said.records else 1.0
    full = int(share * _BAR)
    parts = [f"[{'#' * full}{'.' * (_BAR - full)}] {share:4.0%} {said.state}", f"{said.done:,} of {said.records:,}"]
    if said.state == "running" and said.rps:
        parts.append(f"{said.rps:.0f} of {said.admitted_rps or 0:.0f} records/s")
        parts.append(f"{_span((said.records - said.done) / said.rps)} left")
    if said.reason:
        parts.append(said.reason)
    return ", ".join(parts)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
