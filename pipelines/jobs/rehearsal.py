"""A rehearsal of the managed job with one executor, whose JVM writes the class archive when it leaves.

`python -m pipelines.jobs.rehearsal`, once per Java, Spark and class path (25 s); needs the stack. It sends warm-up
records to `events`; a run begins behind them, because it notes where the topics end when it starts.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from configs.contract import load_contract
from configs.errors import CorrectableError
from configs.settings import Settings, load
from pipelines.jobs import load_generator, word_count
from pipelines.jobs.running import Launch, fix_first_offsets
from pipelines.spark import class_archive
from pipelines.spark.session import cluster_session
from tidecast.spark.actuator import ActuatorError, ExecutorActuator
from tidecast.spark.cluster import Cluster

_BATCHES_S, _DUMP_S, _SETTLED_S = 60.0, 60.0, 2.0


def rehearse(settings: Settings) -> Path | None:
    """Run the job `word_count` briefly, so that its executor writes the class archive (AppCDS) that later ones use.

    Takes about 25 s; waits up to 120 s for acknowledgements, 60 s for batches and 60 s for the archive. Sends 6 warm-up
    records to each partition of `events`. An existing archive is replaced only when the new one is complete.

    Returns:
        Path of the archive; None if it was not complete within 60 s (executors then start more slowly).

    Raises:
        SettingsError: no contract (latency target and executor bounds) for `word_count`, or no Spark master.
        BrokerError: no broker, or a topic is not there.
        kafka.errors.KafkaTimeoutError: the broker stopped answering.
        JavaError, JarsError: Spark cannot start.
        TraceError: the trace of the settings cannot be used.
        tidecast.spark.actuator.ActuatorError: the cluster refused.
        OSError: a file of the archive or of the run cannot be written.
    """
    archive = class_archive.archive_path()
    archive.parent.mkdir(parents=True, exist_ok=True)
    fresh = archive.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    contract = load_contract(word_count.JOB, settings.contracts_dir)
    contract = contract.model_copy(update={"executors": contract.executors.model_copy(update={"min": 1, "max": 1})})
    with tempfile.TemporaryDirectory(dir=settings.var_dir) as folder:
        run_dir = Path(folder)
        start = fix_first_offsets(settings, run_dir, word_count.JOB)
        spark = cluster_session("tidecast rehearsal", settings, contract, archive_to=fresh)
        query = word_count.start_query(Launch(word_count.JOB, spark, settings, run_dir, start))
        sent = load_generator.warm_up(settings, run_dir)
        deadline = time.monotonic() + _BATCHES_S
        while time.monotonic() < deadline and sum(p["numInputRows"] for p in query.recentProgress) < sent:
            time.sleep(0.2)
        actuator = ExecutorActuator(Cluster(query))
        actuator.take_over(1)
        query.stop()
        # At an application's end its executors are killed after 10 s; one that is asked to leave ends by itself.
        actuator.set_target(0)
        written = _written(fresh)
        spark.stop()
    if not written:
        fresh.unlink(missing_ok=True)
        return None
    fresh.replace(archive)
    return archive


def _written(path: Path) -> bool:
    """Wait until the leaving JVM has written its archive to the end."""
    deadline, size, since = time.monotonic() + _DUMP_S, 0, time.monotonic()
    while time.monotonic() < deadline:
        now = path.stat().st_size if path.is_file() else 0
        if now != size:
            size, since = now, time.monotonic()
        if size and time.monotonic() - since > _SETTLED_S:
            return True
        time.sleep(0.1)
    return False


def main() -> int:
    """Write the executors' class archive by `rehearse`, unless it is already there; prints the result.

    Returns:
        0, also when no archive was written, because nothing depends on it; 1 if settings, trace, broker, Java, jars or
        cluster are wrong, which stderr says.

    Raises:
        kafka.errors.KafkaTimeoutError, OSError: as `rehearse`.
    """
    try:
        if class_archive.archive_path().is_file():
            return 0
        archive = rehearse(load())
    except (CorrectableError, ActuatorError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"class archive: {archive or 'none was written; executors start without'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
