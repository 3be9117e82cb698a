"""How a plan becomes a query: topics in as signed events, results out as records to merge by key, or into a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pipelines.jobs.launch import Launch
from pipelines.jobs.plans.merged import MergedJob, RangePlan
from pipelines.jobs.plans.records import signed_events
from pipelines.jobs.plans.results import to_records
from pipelines.jobs.running import run_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tidecast.signed import SignedFrame

Plan = Callable[..., "SignedFrame"]
"""A function of signed events, one frame per topic, to windowed results."""
ROOM = "plans"


def run_plan(job: str, plan: Plan, topics: Sequence[str] = ("events",)) -> int:
    """Run a plan as a managed job from the command line, as `run_job` does; its results go to `windows`.

    Its contract lies in the folder `plans` of the contracts: put it beside the others to have the job scaled.

    Args:
        job: name of the job, of its module in this folder and of its contract.
        plan: what is computed, of a frame per topic.
        topics: that it reads.
    """
    return run_job(job, partial(_start, plan, topics), topics=(*topics, "windows"), room=ROOM)


def run_merged(job: str, plan: Callable[[DataFrame], DataFrame], keys: Sequence[str], again: RangePlan) -> int:
    """Run a plan of the topic `events` as a managed job; its results are merged into a table of the run folder.

    Args:
        job: as in `run_plan`.
        plan: from records, with the columns of Spark's Kafka source, to totals in windows of one length.
        keys: columns of the totals' key, beside those of the window.
        again: the plan of a replay, as `MergedJob` takes it.
    """
    merged = MergedJob(plan, keys, again=again)
    return run_job(
        job,
        merged.start,
        topics=("events",),
        room=ROOM,
        replay=merged.replayable,
        merges=True,
        apart=partial(merged.apart, job),
    )


def _start(plan: Plan, topics: Sequence[str], launch: Launch) -> StreamingQuery:
    frames = [signed_events(launch.records(topic), topic) for topic in topics]
    return launch.to_kafka(to_records(plan(*frames), launch.job), "append", "windows")
