"""A managed job's application of its own for backfills: a session of so many executors, and no live query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from configs.contract import Contract
from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.jobs.launch import why_not_read_again
from pipelines.kafka.signing import Signer
from pipelines.spark.session import cluster_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidecast.replay import Replayable

Apart = Callable[["SparkSession", Settings, Path], "Replayable"]
"""From a session, settings and the run's folder to how ranges of the job are read again without its live query."""


def read_apart(
    job: str, apart: Apart | None, executors: int, settings: Settings, contract: Contract, run_dir: Path,
    ended: Callable[[], bool], topics: Sequence[str],
) -> int:  # fmt: skip
    """Read what is ordered of a job apart from its live query, and end.

    Args:
        job: name of the job.
        apart: how; None: its results are not merged, and refused.
        executors: of the application.
        settings: with broker and master.
        contract: of the job: cores of an executor.
        run_dir: folder of the run, with the table of its results.
        ended: whether to end before that.
        topics: that the job reads.

    Returns:
        0 where each order came to an end that was wanted, else 1; stderr says which did not.

    Raises:
        SettingsError: the job's results are not merged, or not on a mounted file system; no master or no broker.
        JavaError, JarsError, OSError, LookupError, ConnectionError: no session can be started; the broker or its topic
            `control` does not answer.
    """
    if apart is None:
        raise SettingsError(
            f"{job}: its results are not merged into a table, so that its ranges are read beside its live query alone. "
            f"Leave backpressure.apart out of {job}.yaml"
        )
    from tidecast.replay.apart import replay_apart

    bounds = contract.executors.model_copy(update={"min": executors, "max": executors})
    session = cluster_session(
        f"tidecast {job} replays", settings, contract.model_copy(update={"executors": bounds}), delta=True
    )
    kafka = settings.kafka
    try:
        if why := why_not_read_again(session, job):
            raise SettingsError(f"{why}. Leave backpressure.apart out of {job}.yaml")
        states = replay_apart(
            job, apart(session, settings, run_dir), kafka.bootstrap, kafka.security, kafka.prefix,
            Signer.of(kafka).keys_of(job), ended, tuple(map(kafka.topic, topics)),
        )  # fmt: skip
    finally:
        session.stop()
    return _told(job, states)


def _told(job: str, states: Mapping[str, str]) -> int:
    print(f"{job}: " + (", ".join(f"replay {one} {state}" for one, state in states.items()) or "nothing was ordered"))
    failed = [one for one, state in states.items() if state == "failed"]
    for one in failed:
        print(f"{job}: replay {one} has failed; `tidecast backfill {job}` says why", file=sys.stderr)
    return 1 if failed else 0
