"""How a plan becomes a query: topics in as signed events, results out as records to merge by key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pipelines.jobs.plans.records import signed_events
from pipelines.jobs.plans.results import to_records
from pipelines.jobs.running import Launch, run_job

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from tidecast.signed import SignedFrame

Plan = Callable[..., "SignedFrame"]
"""A function of signed events, one frame per topic, to windowed results."""


def run_plan(job: str, plan: Plan, topics: Sequence[str] = ("events",)) -> int:
    """Run a plan as a managed job from the command line, as `run_job` does; its results go to `windows`.

    Its contract lies in the folder `plans` of the contracts: put it beside the others to have the job scaled.

    Args:
        job: name of the job, of its module in this folder and of its contract.
        plan: what is computed, of a frame per topic.
        topics: that it reads.
    """
    return run_job(job, partial(_start, plan, topics), topics=(*topics, "windows"), room="plans")


def _start(plan: Plan, topics: Sequence[str], launch: Launch) -> StreamingQuery:
    frames = [signed_events(launch.records(topic), topic) for topic in topics]
    return launch.to_kafka(to_records(plan(*frames), launch.job), "append")
