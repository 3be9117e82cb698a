"""What more jobs and more partitions cost: CPU for each metric of a job, and whether decisions are the same ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from configs.settings import Settings
from models.policy.live.replay import parse_contracts, replay_decision
from pipelines.bench.fleet.measure import format_size, measure_size
from pipelines.bench.fleet.partitions import EVERY_S, compare_partitions
from pipelines.kafka.broker import read_records
from pipelines.spark.session import local_session
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack

SIZES, PARTITIONS = (500, 2000), (1, 4)
TRIGGER = "8 seconds"
"""Of the autoscaler: longer than a micro-batch of any of the four takes. Where the next follows at once, the quicker
one makes more of them, and its CPU says nothing of what a job costs."""


def measure_spread(settings: Settings, minutes: float) -> dict[str, Any]:
    """Measure each number of jobs on each number of partitions, on a broker of its own; some six minutes each.

    Args:
        settings: without an address of a broker, registry or Airflow.
        minutes: that count, for each.

    Returns:
        `every_s`; `runs`: by number of jobs and of partitions (text) what `measure_size` returns, with `decided`
        decisions and `again`, of which executors, reason and codes come out of what they name alone; the sums of both;
        and `log`, what `compare_partitions` returns of one recorded log.

    Raises:
        Exception: as `measure_fleet` and `compare_partitions`.
    """
    own = isolated_settings(settings, "bench")
    runs: dict[str, dict[str, Any]] = {}
    for jobs in SIZES:
        for cores in PARTITIONS:
            autoscaler = own.autoscaler.model_copy(update={"cores": cores, "trigger": TRIGGER})
            there = own.model_copy(update={"autoscaler": autoscaler})
            found = measure_size(there, jobs, minutes, EVERY_S, decided_again)
            runs.setdefault(str(jobs), {})[str(cores)] = found
            print(f"{cores} partitions: {format_size(found)}; {found['cpu_ms']} ms for a metric", flush=True)
    all_runs = [one for of_size in runs.values() for one in of_size.values()]
    sums = {name: sum(one[name] for one in all_runs) for name in ("decided", "again")}
    return {"every_s": EVERY_S, "runs": runs, "log": _on_one_log(own.var_dir / "fleet" / "log"), **sums}


def _on_one_log(folder: Path) -> dict[str, int]:
    """After the runs, beside which this process would have a JVM."""
    shutil.rmtree(folder, ignore_errors=True)
    spark = local_session("spread", cores=max(PARTITIONS))
    try:
        found = compare_partitions(spark, folder, PARTITIONS)
    finally:
        spark.stop()
    print(
        f"one log of {found['jobs']} jobs: {found['decisions']} decisions, {found['differ']} differ by partitions",
        flush=True,
    )
    return found


def decided_again(stack: Stack) -> dict[str, int]:
    """Make each decision of a stack's topic again of what it names, whichever partition it was made on.

    A hold for want of metrics names nothing, and is left out.
    """
    kafka = stack.settings.kafka
    contracts = parse_contracts(json.loads(record.value) for record in read_records(kafka, "contracts"))
    sent = [json.loads(record.value) for record in read_records(kafka, "decisions")]
    made = [one for one in sent if "no_metrics" not in one["codes"]]
    same = [replay_decision(one, contracts) == (one["executors"], one["reason"], one["codes"]) for one in made]
    return {"decided": len(same), "again": sum(same)}
