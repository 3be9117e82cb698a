"""Serving as a streaming query in a process of its own, and the jobs that it serves."""

import json
import os
import re
import signal
import subprocess
import sys
import time

from configs.settings import load
from models.forecast.baselines.naive import Naive
from pipelines.bench.fastpath.champions import add_version, promote_version
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from pipelines.serve.models.model_set import pack_model
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN
from tests.fakes.waiting import PATIENCE_S, wait_until
from tidecast.messages import MetricSample

JOBS = ("orders", "rides")
SCRIPT = """
import os
import sys
from pathlib import Path
from configs.settings import load
from pipelines.bench.fastpath.champions import FolderChampions
from pipelines.serve.stream.spark_server import serve_on_spark
for cores in sys.argv[2:]:
    os.environ["TIDECAST_SERVING__CORES"] = cores
    serve_on_spark(load(), lambda: FolderChampions(Path(sys.argv[1])))
"""


class TwoJobs:
    """What the jobs say, and what is said of them."""

    def __init__(self, kafka, folder):
        self.kafka, self.folder, self.publisher, self.window = kafka, folder, Publisher(kafka), BEGIN
        self._forecasts, self.said = Follower(kafka, ["forecasts"]), []
        for job in JOBS:
            (folder / "contracts").mkdir(exist_ok=True)
            (folder / "contracts" / f"{job}.yaml").write_text(f"job: {job}\n")
        self.promote("1")

    def promote(self, version):
        add_version(self.folder / "champions", version, pack_model(Naive(TASK, seasonal=False)))
        promote_version(self.folder / "champions", JOBS, version)

    def say(self, windows):
        for _ in range(windows):
            for job in JOBS:
                sample = MetricSample(
                    job, "interval", self.window * STEP, time.time(), time_scale=720.0, span_s=STEP, arrival_rps=50.0
                )
                self.publisher.send("metrics", job, sample)
            self.window += 1
        self.publisher.flush()

    def forecast(self, **wanted):
        """Go on saying, until there is such a forecast for each job; return these."""

        def found():
            self.say(1)
            self.said += [json.loads(record.value) for record in self._forecasts.poll(0.1)]
            these = [one for one in self.said if all(one[name] == value for name, value in wanted.items())]
            return these if {one["job"] for one in these} == set(JOBS) else None

        return wait_until(found, f"forecasts with {wanted}", PATIENCE_S, every_s=0.3)

    def close(self):
        self.publisher.close()
        self._forecasts.close()

    def start(self, *cores, **more):
        """A server on so many cores, and after it a later one in the same process on as many as come next; their log.

        Args:
            cores: of each server; the later one has its Spark in the JVM of the one before.
            more: further variables.
        """
        log = self.folder / "server.log"
        settings = load(kafka=self.kafka.model_dump())
        env = {
            **os.environ, "TIDECAST_VAR": str(self.folder / "var"),
            "TIDECAST_CONTRACTS": str(self.folder / "contracts"),
            "TIDECAST_KAFKA__BOOTSTRAP": settings.kafka.bootstrap, "TIDECAST_KAFKA__PREFIX": settings.kafka.prefix,
            "TIDECAST_TRAINING__STEP_S": str(STEP), "PYTHONPATH": os.getcwd(),
            **more,
        }  # fmt: skip
        command = [sys.executable, "-c", SCRIPT, str(self.folder / "champions"), *map(str, cores)]
        with log.open("w") as sink:
            return subprocess.Popen(command, env=env, stdout=sink, stderr=sink, start_new_session=True), log


def ended(process, log, number=signal.SIGTERM):
    os.killpg(process.pid, number)
    assert process.wait(PATIENCE_S) == 0, log.read_text()
    assert "Traceback" not in log.read_text() and "py4j" not in log.read_text(), log.read_text()


def epoch_of(process, log, number=1):
    """Epoch of the first server of a process, or of a later one, once it has begun."""

    def begun():
        assert process.poll() is None, log.read_text()
        return re.findall(r"serving: epoch (\d+),", log.read_text())[number - 1 :]

    return int(wait_until(begun, f"server {number}", PATIENCE_S, every_s=0.2)[0])
