"""How many bytes a day one job leaves on the broker: the real servers beside a job that is only told of."""

from __future__ import annotations

import sys
import time
from typing import Any

import yaml

from configs.contract import Contract, Executors
from configs.sections import Kafka
from configs.settings import Settings
from pipelines.bench.autoscaler.told_job import ToldJob
from pipelines.kafka.broker import Follower, topic_offsets
from pipelines.kafka.topics import create_topics, stored_bytes
from pipelines.stack.isolation import isolated_settings
from pipelines.stack.stack import Stack
from tidecast.connection.outbox import Outbox
from tidecast.messages import Decision, decode

JOB = "volume"
STEP_S, DAY_S = 60.0, 86_400  # seconds: of a forecast's step, a day
TOPICS = ("metrics", "forecasts", "decisions", "outcomes", "heartbeats", "contracts", "control", "rejects")
WARM_S = 90.0
"""Seconds until the servers have begun and said what they say once."""


def measure_volume(settings: Settings, minutes: float) -> dict[str, Any]:
    """Measure the bytes and records that one job leaves on the broker in a day; blocks for `minutes` and 90 s, prints.

    Starts a broker, MLflow's store, stream server, autoscaler and a simulated job's agent, and ends them. Their state,
    logs and the job's contract (YAML of its latency target and executor bounds) stay in `var/bench`.

    Args:
        settings: without an address of a broker, registry or Airflow.
        minutes: of wall time that count, above 0.

    Returns:
        `kafka_mb_per_day`, the sum over all topics (1 MB is 10⁶ bytes on the broker's disk); `topics`: by name `bytes`
        and `records` as counted, `mb_per_day` and `records_per_day`, scaled to 86,400 s; `seconds` counted;
        `decisions`, the number that the job received, the first 90 s included.

    Raises:
        SettingsError: such an address is configured.
        StackError, ProcessError, PortError, JavaError, JarsError, OSError: a process does not start, a file is not
            writable.
        BrokerError, kafka.errors.KafkaError, MessageError: the broker does not answer, refuses or holds a wrong
            decision.
    """
    settings = isolated_settings(settings, "bench")
    var = settings.var_dir / "volume"
    contract = Contract(job=JOB, executors=Executors(max=8))
    (var / "contracts").mkdir(parents=True, exist_ok=True)
    (var / "contracts" / f"{JOB}.yaml").write_text(yaml.safe_dump(contract.model_dump(mode="json")))
    training = settings.training.model_copy(update={"step_s": STEP_S})
    own = {"var": var, "contracts": var / "contracts", "training": training}
    with Stack(settings.model_copy(update=own), {"broker", "mlflow"}) as stack:
        kafka = stack.settings.kafka
        create_topics(kafka)
        for name, words in (("autoscale", ["--checkpoint", str(var / "query" / stack.id)]), ("serve", [])):
            variables = {"TIDECAST_CONTRACTS": str(var / "contracts"), "TIDECAST_TRAINING__STEP_S": str(STEP_S)}
            stack.spawn(name, [sys.executable, "-m", "tidecast", name, *words], variables)
        job = _Job(kafka, contract)
        job.report(WARM_S)
        before, began = _stored(kafka), time.monotonic()
        job.report(minutes * 60)
        after, seconds = _stored(kafka), time.monotonic() - began
        job.close()
    topics = {}
    for name in TOPICS:
        grown, records = (after[name][i] - before[name][i] for i in (0, 1))
        daily = round(grown * DAY_S / seconds / 1e6, 3), round(records * DAY_S / seconds)
        topics[name] = {"bytes": grown, "records": records, "mb_per_day": daily[0], "records_per_day": daily[1]}
        print(f"{name:<11}{daily[0]:8.2f} MB a day  {daily[1]:8.0f} records")
    total = round(sum(one["mb_per_day"] for one in topics.values()), 2)
    print(f"together   {total:8.2f} MB per job and day")
    return {"kafka_mb_per_day": total, "topics": topics, "seconds": round(seconds, 1), "decisions": job.decided}


def _stored(kafka: Kafka) -> dict[str, tuple[int, int]]:
    """By topic: bytes on the broker's disk, and records."""
    return {
        topic: (size, sum(end for _, end in topic_offsets(kafka, topic).values()))
        for topic, size in stored_bytes(kafka, TOPICS).items()
    }


class _Job:
    """The told job with an agent's way out, and its ear."""

    def __init__(self, kafka: Kafka, contract: Contract) -> None:
        self._outbox = Outbox(kafka.bootstrap or "", kafka.security, JOB)
        self._decisions = Follower(kafka, ["decisions"])
        self._told = ToldJob(contract, 7, time.time())
        self.decided = 0

    def report(self, seconds: float) -> None:
        """Send a second of metrics each second and follow decisions, for so many seconds of wall time; blocks."""
        end, due = time.monotonic() + seconds, time.monotonic()
        while due < end:
            for sample in self._told.second(time.time()):
                self._outbox.enqueue("metrics", JOB, sample)
            while self._outbox.send_next(0):
                pass
            due += 1.0
            while (left := due - time.monotonic()) > 0:
                for record in self._decisions.poll(min(left, 0.1)):
                    self.decided += 1
                    self._told.follow(decode(Decision, record.value).executors, time.time())

    def close(self) -> None:
        self._outbox.close()
        self._decisions.close()
