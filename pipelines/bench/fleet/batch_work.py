"""What is not live of a fleet: an ingest of what its jobs have sent, and a training of one, in processes of their own.

Run it as `python -m pipelines.bench.fleet.batch_work ingest FILE` or `... training FILE JOB`; the file has the figures
then, and the process waits, so that what it took can be read.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipelines.bench.fleet.jobs import contract_of
from pipelines.bench.fleet.usage import usage_of
from pipelines.stack.stack import Stack
from pipelines.whole_file import write_json

LONGEST_S = 1800.0


def measure_batch_work(stack: Stack) -> dict[str, Any]:
    """Ingest all that lies on a stack's topics, as the DAG's task does, and train the first job; the servers end first.

    Returns:
        `ingest`: `records` read of all topics; `training`: of the job. Of both `seconds`, `cpu_s` and `megabytes`, with
        the start of the process, of Spark and of what is imported, as a task of a DAG has it.

    Raises:
        ProcessError: one ended, or takes longer than LONGEST_S.
    """
    for server in ("autoscaler", "serving"):
        stack.end(server)
    return {"ingest": _measure(stack, "ingest"), "training": _measure(stack, "training", contract_of(0).job)}


def _measure(stack: Stack, name: str, *arguments: str) -> dict[str, Any]:
    out = stack.settings.var_dir / f"{name}.json"
    words = [sys.executable, "-m", "pipelines.bench.fleet.batch_work", name, str(out), *arguments]
    process = stack.spawn(name, words, {"OMP_NUM_THREADS": "1"})
    with usage_of({name: process.pid}) as usage:
        begun = time.monotonic()
        process.wait_until(out.is_file, f"end its {name}", LONGEST_S)
        took = time.monotonic() - begun
    stack.end(name)
    used = usage[name]
    figures = {"seconds": round(took, 1), "cpu_s": round(used.cores * took, 1), "megabytes": used.megabytes}
    return {**json.loads(out.read_text()), **figures}


def ingest_all() -> dict[str, int]:
    """Take everything from the topics into the lake; returns how many `records` were read.

    Raises:
        OffsetsError: a topic could not be taken.
        Exception: as `pipelines.ingest.ingest`.
    """
    from pipelines.ingest import ingest, partition, refuse_troubles

    counts, _ = ingest(partition.default_name(None, datetime.now(UTC)))
    refuse_troubles(counts)
    return {"records": sum(one["read"] for one in counts.values())}


def train_job(job: str) -> dict[str, str]:
    """Train a job's forecaster on the lake; returns the `job`.

    Raises:
        Exception: as `pipelines.train.forecaster.run.train`.
    """
    from pipelines.train.forecaster import run as forecaster

    forecaster.train(job)
    return {"job": job}


_WORK: dict[str, Any] = {"ingest": ingest_all, "training": train_job}


def main(name: str, file: str, *arguments: str) -> None:
    """Do one piece of work, write what it came to, and wait for SIGTERM."""
    write_json(Path(file), _WORK[name](*arguments))
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
