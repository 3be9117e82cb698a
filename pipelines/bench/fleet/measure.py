"""The parts of the pipeline with so many jobs: how late they are, what they take, and how many jobs fill a core."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from configs.settings import Settings
from pipelines.bench.fleet.batch_work import measure_batch_work
from pipelines.bench.fleet.jobs import STEP_S, send_past, write_champions, write_contracts
from pipelines.bench.fleet.second_core import second_core_from, shares_of
from pipelines.bench.fleet.told import CLOSING_S
from pipelines.bench.fleet.usage import usage_of
from pipelines.kafka.topics import create_topics
from pipelines.stack import state
from pipelines.stack.context import StackError
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.processes import ProcessError
from pipelines.stack.stack import Stack

WARM_S = 90.0
"""Seconds that do not count: until all jobs are known, and their first forecasts made."""
READY_S, READY_S_PER_JOB = 120.0, 2.0
"""Seconds that the server may take to begin, and to make a job's champion ready."""


def measure_fleet(settings: Settings, sizes: Sequence[int], minutes: float) -> dict[str, Any]:
    """Measure each number of jobs in turn, on a broker of its own; blocks for `minutes` and some five more each.

    Each job reports a second of metrics every second and a batch every other, as an agent does, and follows its
    decisions; a forecast of each is due every minute, at the same moment. Then what they have sent is ingested, and one
    of them trained. Contracts, state and logs stay in
    `var/bench/fleet`; those of an earlier call are removed.

    Args:
        settings: without an address of a broker, registry or Airflow.
        sizes: numbers of jobs.
        minutes: that count, for each.

    Returns:
        `sizes`: by number of jobs (text) what `measure_size` returns, and `second_core`, from
        how many jobs on each part needs one; `minutes`.

    Raises:
        SettingsError: such an address is configured.
        StackError, ProcessError, PortError, JavaError, JarsError, OSError: a process does not start or ends, a file is
            not writable.
        BrokerError: the broker does not answer.
    """
    own = isolated_settings(settings, "bench")
    found = {}
    for jobs in sizes:
        size = measure_size(own, jobs, minutes)
        found[str(jobs)] = size | {"second_core": second_core_from(shares_of(size))}
        print(f"{format_size(size)}\n{format_work(found[str(jobs)])}", flush=True)
    return {"sizes": found, "minutes": minutes}


def measure_size(settings: Settings, jobs: int, minutes: float) -> dict[str, Any]:
    """Measure one number of jobs.

    Args:
        settings: of the bench, as `isolated_settings` has them.
        jobs: how many.
        minutes: that count.

    Returns:
        `jobs`; `decision` and `forecast`: p50_s, p95_s, p99_s from a metric to what was made of it, as its agent has
        it, and `count`; `autoscaler`, `serving`, `broker`, `agents`: `cores` and `megabytes`; `megabytes` of the first
        two together; `late_s`, by which the agents' process was late itself; `records_per_job_s`, that it sent;
        `forecasts_per_s`, see the function; and what `measure_batch_work` returns.
    """
    var = settings.var_dir / "fleet" / str(jobs)
    if state.running(var) is not None:
        raise StackError(f"a stack runs on {var} already: another call measures. Wait for its end.")
    shutil.rmtree(var, ignore_errors=True)
    write_contracts(var / "contracts", jobs)
    training = settings.training.model_copy(update={"step_s": STEP_S})
    write_champions(var / "champions", jobs, training)
    serving = settings.serving.model_copy(update={"path": "stream"})
    changed = {"var": var, "contracts": var / "contracts", "training": training, "serving": serving}
    with Stack(settings.model_copy(update=changed), {"broker", "mlflow"}) as stack:
        kafka = stack.settings.kafka
        create_topics(kafka)
        now = time.time()
        send_past(kafka, jobs, now)
        checkpoint = ["--checkpoint", str(var / "query")]
        autoscaler = stack.spawn("autoscaler", [sys.executable, "-m", "tidecast", "autoscale", *checkpoint])
        serving = _spawn(stack, "serving", "server", str(var / "champions"))
        ready = partial(_champions, serving.log, jobs)
        serving.wait_until(ready, f"serve {jobs} champions", READY_S + READY_S_PER_JOB * jobs)
        out, seconds = var / "waits.json", minutes * 60
        agents = _spawn(stack, "agents", "told", str(out), str(jobs), str(now), str(WARM_S), str(seconds))
        time.sleep(WARM_S)
        with usage_of({name: process.pid for name, process in stack.processes.items()}) as usage:
            time.sleep(seconds)
        for process in (autoscaler, serving):
            if not process.running():
                raise ProcessError(f"{process.name} has ended:\n{process.last_lines()}")
        with suppress(subprocess.TimeoutExpired):
            agents.wait(CLOSING_S + READY_S)
        if not out.is_file():
            raise ProcessError(f"agents: no waits were written:\n{agents.last_lines()}")
        told = json.loads(out.read_text())
        work = measure_batch_work(stack)
    return {
        "jobs": jobs, "decision": _quantiles(told["decisions"]), "forecast": _quantiles(told["forecasts"]),
        **{name: used._asdict() for name, used in usage.items()}, "late_s": told["late_s"],
        "records_per_job_s": round(told["sent"] / (WARM_S + seconds) / jobs, 3),
        "forecasts_per_s": forecasts_per_s(jobs, _quantiles(told["forecasts"])),
        "megabytes": usage["autoscaler"].megabytes + usage["serving"].megabytes, **work,
    }  # fmt: skip


def format_size(size: dict[str, Any]) -> str:
    """Format what was measured of one number of jobs, for people."""
    used = ", ".join(f"{name} {size[name]['cores']:.2f} cores {size[name]['megabytes']:,.0f} MB" for name in _PARTS)
    decision, forecast = size["decision"], size["forecast"]
    return (
        f"{size['jobs']:>5} jobs: decisions p50 {decision['p50_s']} p95 {decision['p95_s']} s ({decision['count']}), "
        f"forecasts p50 {forecast['p50_s']} p95 {forecast['p95_s']} s ({forecast['count']}); {used}; the agents' "
        f"process was {size['late_s']} s late"
    )


def format_work(size: dict[str, Any]) -> str:
    """Format what was measured of the rest of one number of jobs, and from how many on a second core is needed."""
    ingest, training = size["ingest"], size["training"]
    took = "{seconds} s ({cpu_s} s of CPU, {megabytes:,.0f} MB)".format
    needed = ", ".join(f"{part} {'-' if many is None else f'{many:,}'}" for part, many in size["second_core"].items())
    return (
        f"      {size['forecasts_per_s']} forecasts/s; an ingest of {ingest['records']:,} records in {took(**ingest)}, "
        f"a training in {took(**training)}\n      jobs from which on a part needs a second core: {needed}"
    )


def forecasts_per_s(jobs: int, waits: dict[str, Any]) -> float | None:
    """Return how many forecasts the server makes in a second, by those of all jobs that are due at one moment.

    Args:
        jobs: how many.
        waits: `p95_s`, seconds until 95 in 100 of them are there; None: there were none.
    """
    return None if not waits["p95_s"] else round(0.95 * jobs / waits["p95_s"], 1)


_PARTS = ("autoscaler", "serving", "broker", "agents")


def _champions(log: Path, jobs: int) -> bool:
    return log.read_text().count("champion is version") >= jobs


def _spawn(stack: Stack, name: str, module: str, *arguments: str) -> Any:
    words = [sys.executable, "-m", f"pipelines.bench.fleet.{module}", *arguments]
    return stack.spawn(name, words, {"OMP_NUM_THREADS": "1"})


def _quantiles(waits: list[float]) -> dict[str, Any]:
    found = np.quantile(waits, [0.5, 0.95, 0.99]).round(3).tolist() if waits else [None] * 3
    return {**dict(zip(("p50_s", "p95_s", "p99_s"), found, strict=True)), "count": len(waits)}
