"""`tidecast bench lake`: megabytes of a job's day in the lake, and memory of a training read whatever it reads.

Metrics as live jobs send them, an interval and a batch a second with every digit, are written as an ingest writes them;
then a process of its own reads each lake with Spark, as a training does of a lake on HDFS, and its memory is watched,
that of its JVM included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from pipelines.ingest.columns import spark_columns
from pipelines.lake.commit import commit_rows
from pipelines.lake.tables import Lake, Origin
from pipelines.spark.session import local_session
from tidecast.messages import MetricSample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY_S = 86_400
BEGIN = 1_760_000_400
STEP_S = 1800.0
FULL = {"1 job x 1 day": (1, 1), "1 job x 1 year": (1, 365), "500 jobs x 1 day": (500, 1)}
QUICK = {"1 job x 1 day": (1, 1), "1 job x 7 days": (1, 7), "10 jobs x 1 day": (10, 1)}
"""Jobs and days."""
LOOK_S = 0.02  # between two samples of memory
MB = 1e6  # bytes


def measure_reading(quick: bool = False) -> dict[str, Any]:
    """Measure the memory that a training's read of the lake takes, on three lakes of synthetic metrics; takes minutes.

    Each is read in a process of its own, whose memory is sampled every 0.02 s. The lakes lie in temporary folders,
    which are deleted; Spark sessions are started and ended.

    Args:
        quick: smaller lakes, QUICK in place of FULL.

    Returns:
        `reads`: by lake, e.g. "1 job x 1 day", `peak_mb` (highest resident memory of Python and JVM together, MB of 10⁶
        bytes), `seconds` (wall, the start of the process included) and `records` (in the lake); `spread`, (highest −
        lowest) ÷ lowest `peak_mb`; `mb_per_job_day`, MB of Parquet for one job's day.

    Raises:
        subprocess.CalledProcessError: the reading process failed.
        SettingsError, JavaError, JarsError: Spark does not start: a wrong setting, no Java, no jars of Delta.
        OSError, Py4JJavaError: a temporary folder cannot be made or filled, e.g. the disk is full.
    """
    figures: dict[str, Any] = {"reads": {}}
    for name, (jobs, days) in (QUICK if quick else FULL).items():
        with tempfile.TemporaryDirectory(prefix="tidecast-lake-") as folder:
            root = Path(folder)
            _fill(root, jobs, days)
            if (jobs, days) == (1, 1):
                size = sum(path.stat().st_size for path in (root / "metrics").glob("*.parquet"))
                figures["mb_per_job_day"] = round(size / MB, 2)
            peak, seconds = _read(root, jobs)
        figures["reads"][name] = {
            "peak_mb": round(peak / MB),
            "seconds": round(seconds, 1),
            "records": 2 * jobs * days * DAY_S,
        }
        print(f"{name:<18}{peak / MB:6.0f} MB at most, {seconds:5.1f} s")
    peaks = [read["peak_mb"] for read in figures["reads"].values()]
    figures["spread"] = round(max(peaks) / min(peaks) - 1, 3)
    print(
        f"largest ÷ smallest peak: {1 + figures['spread']:.2f}; a job's day of metrics: {figures['mb_per_job_day']} MB"
    )
    return figures


def _fill(root: Path, jobs: int, days: int) -> None:
    """One commit a day and fifty jobs, or fewer for the first lake: one an hour, as live."""
    spark = local_session("bench-lake", cores=2, delta=True)
    try:
        parts = 24 if (jobs, days) == (1, 1) else days
        for part in range(parts):
            seconds = days * DAY_S // parts
            begin, name = BEGIN + part * seconds, f"2025-10-09T{part:06}"
            rows = _records(spark, jobs, begin, seconds).selectExpr("*", f"'{name}' AS ingest_partition")
            commit_rows(root, "metrics", rows, Origin("metrics", "bench", name, {0: part}, {0: part + 1}, 0.0, 1, 0))
    finally:
        spark.stop()


def _records(spark: SparkSession, jobs: int, begin: int, seconds: int) -> DataFrame:
    """An interval and a batch per second and job, in the columns of the lake."""
    ids = spark.range(2 * jobs * seconds).selectExpr(
        "id",
        "id % 2 = 0 AS whole",
        f"concat('job-', (id div 2) % {jobs}) AS job",
        f"{begin} + id div {2 * jobs} AS second",
    )
    made = {
        "job": "job", "kind": "if(whole, 'interval', 'batch')", "time": "second + rand() / 100",
        "wall_time": "second + 1 + rand() / 100", "time_scale": "1D",
        "span_s": "if(whole, 0.99 + rand() / 50, round(rand(), 3))",
        "arrival_rps": "if(whole, round(200 + 100 * sin(second / 13750) + 10 * randn(), 3), NULL)",
        "processed_rps": "if(whole, NULL, round(200 + 30 * randn(), 3))", "lag_records": "bigint(400 * rand())",
        "batch_id": "if(whole, NULL, second)", "batch_rows": "if(whole, NULL, bigint(400 * rand()))",
        "batch_s": "if(whole, NULL, round(rand(), 3))", "stage_s": "if(whole, NULL, round(rand(), 3))",
        "executors": "2", "pending_executors": "0", "cores": "2", "task_ceiling": "8", "mode": "'act'", "schema": "1",
        "watermark_lag_s": "if(whole, NULL, round(rand(), 3))", "state_rows": "if(whole, NULL, 50)",
        **dict.fromkeys(("latency_p50_s", "latency_p95_s", "latency_max_s"), "if(whole, NULL, round(2 * rand(), 3))"),
        **dict.fromkeys(("planning_s", "offsets_s", "log_s", "state_commit_s"), "if(whole, NULL, round(rand(), 3))"),
        **dict.fromkeys(("run_s", "gc_s", "sink_wait_s"), "if(whole, NULL, round(8 * rand(), 3))"),
        **dict.fromkeys(
            ("task_median_s", "task_max_s", "busiest_s"), "if(whole OR rand() > 0.2, NULL, round(rand(), 3))"
        ),
        "spilled_bytes": "if(whole, NULL, 0)", "operator_rows": "NULL", "application": "'app-20261130090000-0001'",
    }  # fmt: skip
    fields = [f"CAST({made[name]} AS {kind}) AS `{name}`" for name, kind in spark_columns(MetricSample).items()]
    hour = "date_format(timestamp_seconds(second), \"yyyy-MM-dd'T'HH\") AS event_hour"
    return ids.selectExpr(*fields, hour, "0 AS kafka_partition", "id AS kafka_offset")


def _read(root: Path, jobs: int) -> tuple[int, float]:
    """Most memory of a process that reads the loads, in bytes, and the seconds it took."""
    began, peak = time.monotonic(), 0
    process = psutil.Popen([sys.executable, "-m", __name__, str(root), str(jobs)])
    while process.poll() is None:
        peak = max(peak, _resident(process))
        time.sleep(LOOK_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return peak, time.monotonic() - began


def _resident(process: psutil.Process) -> int:
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    except psutil.Error:
        pass  # ended between two looks
    return total


def _reads(root: Path, jobs: int) -> None:
    """What is watched: the loads of all jobs, as Spark reads them in an ingest, and for a training on HDFS."""
    spark = local_session("bench-lake", delta=True)
    found, _ = Lake(spark, root).read_loads([f"job-{job}" for job in range(jobs)], STEP_S)
    spark.stop()
    assert len(found) == jobs


if __name__ == "__main__":
    _reads(Path(sys.argv[1]), int(sys.argv[2]))
