"""The agents of a fleet in one process: what they say every second, and how long they wait for an answer.

Run it as `python -m pipelines.bench.fleet.told FILE JOBS BEGUN_S WARM_S SECONDS`; the file has the waits then.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from configs.settings import load
from pipelines.bench.fleet.jobs import begun_s, contract_of
from pipelines.bench.fleet.told_job import ToldJob
from pipelines.kafka.broker import Follower, Record
from pipelines.kafka.publisher import Publisher
from pipelines.stack.state import with_stack_addresses
from tidecast.messages import Decision, Forecast, decode

CLOSING_S = 10.0
"""Seconds after the last record in which answers are still waited for."""


class ToldFleet:
    """Sends what the agents of many jobs say, spread over the second, and notes the answers.

    Attributes:
        sent: samples so far.
        late_s: by which the newest round was sent too late: whether this process keeps up.
        waits: by topic, (wall time of the metric, seconds until the answer was here).
    """

    def __init__(self, jobs: int, since_s: float) -> None:
        """Connect to the broker of the settings; the loads are those that begin at `since_s` (epoch s, `begun_s`).

        Raises:
            BrokerError: it does not answer.
        """
        kafka = with_stack_addresses(load()).kafka
        self._jobs = {
            contract.job: ToldJob(contract, number, begun_s(number, jobs, since_s))
            for number, contract in enumerate(map(contract_of, range(jobs)))
        }
        self._lock, self._over = threading.Lock(), threading.Event()
        self._publisher = Publisher(kafka)
        self._answers = Follower(kafka, ["decisions", "forecasts"], start="latest")
        self.sent, self.late_s = 0, 0.0
        self._failure: Exception | None = None
        self.waits: dict[str, list[tuple[float, float]]] = {"decisions": [], "forecasts": []}

    def run(self, seconds: float) -> None:
        """Send for so many seconds, of each job every second, and listen for CLOSING_S more; blocks.

        Raises:
            BrokerError: a record was not accepted.
            Exception: what ended the listening.
        """
        listening = threading.Thread(target=self._listen, name="answers", daemon=True)
        listening.start()
        begun = time.time()
        for turn in range(int(seconds)):
            for number, job in enumerate(self._jobs.values()):
                due = begun + turn + number / len(self._jobs)
                if (early := due - time.time()) > 0:
                    time.sleep(early)
                self._say(job)
            self.late_s = max(self.late_s, time.time() - begun - (turn + 1))
            if time.time() > begun + seconds:  # it cannot keep up, as `late_s` says
                break
        self._publisher.flush()
        time.sleep(CLOSING_S)
        self._over.set()
        listening.join()
        self._publisher.close()
        self._answers.close()
        if self._failure is not None:
            raise self._failure

    def _say(self, job: ToldJob) -> None:
        with self._lock:
            samples = job.second(time.time())
        for sample in samples:
            self._publisher.send("metrics", sample.job, sample)
        self.sent += len(samples)

    def _listen(self) -> None:
        try:
            while not self._over.is_set():
                for record in self._answers.poll(0.2):
                    self._hear(record, time.time())
        except Exception as error:
            self._failure = error

    def _hear(self, record: Record, now: float) -> None:
        """Note how old the metric is that was answered; a decision without one, as after silence, counts for none."""
        kind: Any = Decision if record.topic == "decisions" else Forecast
        said = decode(kind, record.value)
        asked = said.inputs.get("metric_wall_time") if isinstance(said, Decision) else said.wall_time
        if asked is not None and "no_metrics" not in getattr(said, "codes", ()):
            self.waits[record.topic].append((asked, now - asked))
        if isinstance(said, Decision):
            with self._lock:
                self._jobs[said.job].follow(said.executors, now)


def main(file: str, jobs: str, since_s: str, warm_s: str, seconds: str) -> None:
    """Run a fleet and write what it heard after `warm_s` to the file, as JSON."""
    fleet = ToldFleet(int(jobs), float(since_s))
    first = time.time() + float(warm_s)
    fleet.run(float(warm_s) + float(seconds))
    counted = {
        topic: [round(wait, 4) for asked, wait in waits if first <= asked <= first + float(seconds)]
        for topic, waits in fleet.waits.items()
    }
    Path(file).write_text(json.dumps({**counted, "sent": fleet.sent, "late_s": round(fleet.late_s, 3)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
