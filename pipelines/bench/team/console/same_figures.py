"""Whether every figure of the console is the lake's, once the records that it was followed from are ingested."""

from __future__ import annotations

import itertools
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from configs.errors import FinalError
from configs.settings import Settings
from pipelines.bench.team.console.decided_jobs import stated_contract, told_seconds
from pipelines.bench.team.console.lake_figures import COLUMNS, STEPS, Figures, LakeFigures
from pipelines.console.follow import TopicsFollower
from pipelines.console.read.job import FollowedJob
from pipelines.console.shown import job_details
from pipelines.ingest.run import ingest_ranges, plan_ranges
from pipelines.kafka.broker import Record
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.lake.folder import lake_folder
from pipelines.stack.stack import TRANSIENT, Stack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOBS, SECONDS = 8, 1200
"""Jobs, and seconds of each, that are compared."""
LIVE_S, PAUSE_S = 10, 0.5
"""Newest of these that come second by second, and the pause after each."""
READ_S, CALM_S, MOST_TOLD = 120.0, 1.0, 40
"""Seconds within which the follower has read them, and in which nothing comes then; differences that are told."""
SAME = 2e-4
"""Share by which numbers may differ that are the same: charts are kept with five digits and less."""
NEAR = {"row.budget_left": 0.02, "row.burn_long": 0.1, "row.burn_short": 0.1}
"""By which figures may differ that are estimates: a share of the budget, or of a burn rate above 1; of a lower one the
rate itself. They go on from what the newest decision said, with four digits, and fade as if seconds came one by one."""


class FollowedError(FinalError):
    """The console did not read all that it was told."""


def measure_figures(settings: Settings, report: Callable[[str], None]) -> dict[str, Any]:
    """Compare on a broker of its own, in `var` of the settings, which is emptied of its tables; a minute or two.

    Returns:
        As `compare_figures`.

    Raises:
        StackError, PortError, JavaError, JarsError, SettingsError: broker or Spark do not start.
        BrokerError, FollowedError, LakeError: as `compare_figures`.
        OSError: a file cannot be written.
    """
    from pipelines.spark.session import local_session

    shutil.rmtree(settings.var_dir / "lake", ignore_errors=True)
    with Stack(settings, {"broker"}, fresh=TRANSIENT) as stack:
        report(f"{SECONDS} seconds of {JOBS} jobs, followed and ingested")
        create_topics(stack.settings.kafka)
        spark = local_session("tidecast-ingest", cores=2, delta=True)
        try:
            return compare_figures(spark, stack.settings, JOBS, SECONDS)
        finally:
            spark.stop()


def compare_figures(spark: SparkSession, settings: Settings, jobs: int, seconds: int) -> dict[str, Any]:
    """Let jobs tell empty topics so many seconds, follow and ingest them, and compare every figure of every job.

    The last seconds come one by one, after the follower has read the others.

    Returns:
        `compared`, how many figures, of these `differ` by more than `SAME`, or by more than `NEAR` where they are
        estimates; `estimates`, how many are, and by how much these differ at most (`budget_off`, a share of the
        budget, `burn_off`, of the rate); `differing`, at most 40 of them, in words; `jobs`, `seconds`, `records`.

    Raises:
        BrokerError: the broker does not answer.
        FollowedError: the follower has not read all within READ_S.
        LakeError: nothing was ingested.
        Exception: as pyspark raises it.
    """
    now = math.floor(time.time())
    begin = now - seconds
    told = sorted((one for n in range(jobs) for one in told_seconds(n, begin, seconds)), key=lambda one: one.timestamp)
    names = [stated_contract(number).job for number in range(jobs)]
    follower = TopicsFollower(settings.kafka)
    with closing(Publisher(settings.kafka, linger_ms=5)) as publisher:
        for second, part in itertools.groupby(told, lambda one: max(math.floor(one.timestamp), now - LIVE_S)):
            for one in (sent := [*part]):
                publisher.send_bytes(one.topic, (one.key or "").encode(), one.value, timestamp_s=one.timestamp)
            publisher.flush()
            if second == now - LIVE_S:
                _await(follower, names, sent, begin)
            time.sleep(PAUSE_S)
        _await(follower, names, sent, begin)
    ingest_ranges(spark, settings, plan_ranges(settings, time.strftime("%Y-%m-%dT%H%M%S", time.gmtime(now)), now + 60))
    lake, seen = LakeFigures(lake_folder(settings)), follower.look()
    found = compared({name: (shown_figures(seen.jobs[name], time.time()), lake.of_job(name)) for name in names})
    return {**found, "jobs": jobs, "seconds": seconds, "records": len(told)}


def _await(follower: TopicsFollower, names: list[str], part: Sequence[Record], begin: float) -> None:
    """Wait until the follower has read a part, and the hours before; nothing more has come to it for a second then."""
    until, revision, since = time.monotonic() + READ_S, -1, time.monotonic()
    while time.monotonic() < until:
        model = follower.look()
        if model.revision != revision:
            revision, since = model.revision, time.monotonic()
        known = [job for name in names if (job := model.jobs.get(name)) is not None]
        last_at = max(one.timestamp for one in part if one.topic == "metrics")
        begun = len(known) == len(names) and all((job.coarse.oldest or math.inf) <= begin for job in known)
        heard = all(job.sample is not None and job.sample.wall_time > last_at - 3 for job in known)
        if begun and heard and time.monotonic() > since + CALM_S:
            return
        time.sleep(0.1)
    raise FollowedError(f"the console has not read all records within {READ_S:g} s; {follower.problem}")


def shown_figures(job: FollowedJob, now: float) -> Figures:
    """Return the figures on a job's row and page, by the names of `LakeFigures.of_job`; `now` is epoch seconds."""
    page = job_details(job, now, -math.inf)
    figures = {f"row.{name}": value for name, value in page["row"].items()}
    figures |= {f"forecast.{name}": value for name, value in (page["forecast"] or {}).items()}
    figures["decisions"] = len(page["decisions"])
    for place, made in enumerate(page["decisions"]):
        figures |= {f"decisions.{place}.{name}": value for name, value in made.items()}
    for name in STEPS:
        for at, *values in zip(*page[name], strict=True):
            figures |= {f"{name}.{at:.0f}.{column}": v for column, v in zip(COLUMNS, values, strict=True)}
    return figures


def compared(pairs: Mapping[str, tuple[Figures, Figures]]) -> dict[str, Any]:
    """Compare the figures of jobs, by their names: those of the console with those of the lake; see `compare_figures`.

    A figure that the lake has and the console has not differs.
    """
    differing, count, off = list[str](), 0, dict.fromkeys(NEAR, 0.0)
    for job, (shown, kept) in pairs.items():
        for name, value in kept.items():
            count += 1
            if name in NEAR and value is not None and shown.get(name) is not None:
                by = abs(shown[name] - value) / (1.0 if name == "row.budget_left" else max(value, 1.0))
                off[name], same = max(off[name], by), by <= NEAR[name]
            else:
                same = _same(shown.get(name, "nothing"), value)
            if not same:
                differing.append(f"{job}: {name} is {shown.get(name, 'nothing')}, in the lake {value}")
    return {
        "compared": count, "differ": len(differing), "differing": differing[:MOST_TOLD],
        "estimates": len(NEAR) * len(pairs), "budget_off": round(off["row.budget_left"], 5),
        "burn_off": round(max(off["row.burn_long"], off["row.burn_short"]), 5),
    }  # fmt: skip


def _same(shown: Any, kept: Any) -> bool:
    if isinstance(kept, list | tuple):
        alike = isinstance(shown, list | tuple) and len(shown) == len(kept)
        return alike and all(map(_same, shown, kept))
    if isinstance(kept, int | float) and isinstance(shown, int | float):
        return math.isclose(shown, kept, rel_tol=SAME, abs_tol=SAME)
    return bool(shown == kept)
