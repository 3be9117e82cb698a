"""What is said of a replay in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.html.numbers import number_of
from tidecast.orders import ReplayOrder, ReplayProgress

if TYPE_CHECKING:
    from pipelines.backfill.follow import FollowedOrder

_BAR = 24  # characters


def describe_order(order: ReplayOrder) -> str:
    """Say what is ordered, in a line."""
    rate = "at what live records leave" if order.most_rps is None else f"at {order.most_rps:g} records/s at most"
    weight = f", weight {order.weight:g}" if order.weighted else ""
    if order.apart is not None:
        rate = f"by {number_of(order.apart, 'executor')} of its own" + ("" if order.most_rps is None else f", {rate}")
    return f"{order.job}: replay {order.id}, {number_of(order.records, 'record')}, {rate}{weight}"


def describe_followed(new: FollowedOrder) -> str:
    """Say what is new of an order that is followed, in a line."""
    if new.silent and new.apart:
        return (
            "nothing is heard of the application that reads it: does it start? Its output is in log/JOB.replays.log "
            "under `var`, where it was started"
        )
    if new.silent:
        return "nothing is heard of the job's agent: does it run, attached with replay=, in mode act?"
    return new.note if new.said is None else describe_progress(new.said, new.finish)


def describe_progress(said: ReplayProgress, finish: str = "") -> str:
    """Say how far a replay is, in a line with a bar; with the time that is left at its present rate.

    Args:
        said: by its job's agent.
        finish: when it is done, in words, where a plan says so: then that is told in place of the time that is left.
    """
    share = said.done / said.records if said.records else 1.0
    full = int(share * _BAR)
    parts = [f"[{'#' * full}{'.' * (_BAR - full)}] {share:4.0%} {said.state}", f"{said.done:,} of {said.records:,}"]
    if said.state == "running" and said.rps:
        parts.append(f"{said.rps:.0f} of {said.admitted_rps or 0:.0f} records/s")
        if not finish:
            parts.append(f"{_span((said.records - said.done) / said.rps)} left")
    if finish and said.state in ("waiting", "running"):
        if said.executors:
            parts.append(f"{number_of(said.executors, 'executor')} more")
        parts.append(finish)
    if said.state == "compared":
        parts.append(f"waits for `tidecast backfill {said.job} --publish {said.id}`")
    if said.reason:
        parts.append(said.reason)
    return ", ".join(parts)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
