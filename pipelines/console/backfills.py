"""Replays of all jobs as JSON values for the page of backfills: how far each is, and whether its deadline is kept."""

from __future__ import annotations

import math
from typing import Any

from pipelines.backfill.orders import SILENT_S, has_ended, standing_progress
from pipelines.console.read.fold import ReadModel
from pipelines.console.read.job import FollowedJob
from pipelines.console.read.replay import KnownReplay
from tidecast.orders import ReplayOrder

MOST_OVER = 100
"""Replays that are over which are shown."""


def backfill_rows(model: ReadModel, now: float) -> list[dict[str, Any]]:
    """Return a row per replay: those in trouble first, then those that go on, then the newest that are over.

    Args:
        model: what is known of all jobs.
        now: wall time, epoch seconds.
    """
    rows = [backfill_row(job, name, one, now) for job in model.jobs.values() for name, one in job.replays.items()]
    rows.sort(key=lambda row: (not row["trouble"], row["job"], row["id"]))
    over = sorted((row for row in rows if row["over"]), key=lambda row: -row["heard_at"])
    return [*(row for row in rows if not row["over"]), *over[:MOST_OVER]]


def backfill_row(job: FollowedJob, name: str, replay: KnownReplay, now: float) -> dict[str, Any]:
    """Return what the page shows of a replay; None for what is not known.

    Returns:
        Among others "state", as the agent said last; "ordered" before it has said one, and "over" where none was read;
        "begin" and "end" of the results that it may correct (the job's own time), "by", its deadline,
        "done_at", when it is done at its present rate, and "planned", when its newest plan had it done, a list of
        [probability, moment] (wall times), all in epoch seconds; "apart", executors of an application of its own;
        "over", and "trouble", why it needs a person ("" where it does not).
    """
    order, said = replay.order, standing_progress(*replay)
    ended = order is not None and order.wanted == "done"
    state = said.state if said else "over" if ended else "ordered"
    over = ended or (said is not None and has_ended(said))
    left_s = (said.records - said.done) / said.rps if said and said.rps and state == "running" else None
    by = _wall_time(job, order.by) if order and order.by is not None else None
    planned = [[level, _wall_time(job, at)] for level, at in order.finish] if order else []
    done_at = None if left_s is None or not math.isfinite(left_s) else now + left_s
    return {
        "job": job.job, "id": name, "state": state, "over": over, "reason": said.reason if said else "",
        "begin": _seconds(order.begin_ms) if order else None, "end": _seconds(order.end_ms) if order else None,
        "then": order and order.then, "wanted": order and order.wanted, "sure": order and order.sure,
        "records": said.records if said else order and order.records,
        "done": said.done if said else None if ended else 0,
        "rps": said and said.rps, "admitted_rps": said and said.admitted_rps,
        "executors": said and said.executors, "apart": order and order.apart, "by": by, "done_at": done_at,
        "planned": [one for one in planned if one[1] is not None], "heard_at": replay.heard_at,
        "trouble": "" if over else _trouble(state, by, done_at, now, replay.heard_at, order),
    }  # fmt: skip


def _trouble(
    state: str, by: float | None, done_at: float | None, now: float, heard_at: float, order: ReplayOrder | None
) -> str:  # fmt: skip
    if state == "compared" and (order is None or order.then == "compare"):
        return "waits until somebody publishes it"
    if by is not None and now > by:
        return "its deadline has passed"
    if by is not None and done_at is not None and done_at > by:
        return "late at its present rate"
    if now - heard_at <= SILENT_S:
        return "fails again and again" if state == "failed" else ""
    if order is None or order.apart is None:
        return "nothing is heard of the job's agent"
    rests = order.wanted == "pause" and state == "paused"  # its application has ended by that
    return "" if rests else "nothing is heard of its application"


def _wall_time(job: FollowedJob, job_time: float) -> float | None:
    newest = job.sample or job.batch
    if newest is None:
        return None
    at = newest.wall_time + (job_time - newest.time - newest.span_s) / newest.time_scale
    return at if math.isfinite(at) else None


def _seconds(millis: int | None) -> float | None:
    return None if millis is None else millis / 1000
