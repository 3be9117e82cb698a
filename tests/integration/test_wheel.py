"""What a user installs: a wheel with the agent alone, in an environment of its own, under a job of its own."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from configs.settings import ROOT
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from pipelines.spark import jars, java
from pipelines.spark.options import LOCAL_JAVA
from pipelines.spark.own_pyspark import LAUNCHER_JAVA
from tidecast.messages import MetricSample, decode

pytestmark = pytest.mark.integration

STRANGER = """
import logging
import sys
from pyspark.sql import SparkSession
from tidecast import attach

broker, topic, jars, checkpoint = sys.argv[1:]
logging.basicConfig()
logging.getLogger("tidecast").setLevel(logging.INFO)
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)
events = (
    spark.readStream.format("kafka")
    .option("kafka.bootstrap.servers", broker)
    .option("subscribe", topic)
    .option("startingOffsets", "earliest")
    .load()
)
writer = events.writeStream.format("noop").option("checkpointLocation", checkpoint)
query = writer.trigger(processingTime="1 second").start()
attach(query, job="stranger")
query.awaitTermination(600)  # the test ends it
"""


def uv():
    """The uv of this environment, else any on the path."""
    beside = Path(sysconfig.get_path("scripts")) / "uv"
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        pytest.fail("uv is not installed; `make setup` installs it")
    return found


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{argv}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    out = tmp_path_factory.mktemp("wheel")
    run(uv(), "build", "--wheel", "--quiet", "--out-dir", str(out), str(ROOT))
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def stranger(wheel, tmp_path_factory):
    """The Python of an environment with the wheel, and PySpark as a user has it."""
    home = tmp_path_factory.mktemp("stranger") / "env"
    run(uv(), "venv", "--quiet", "--python", sys.executable, str(home))
    python = home / "bin" / "python"
    run(uv(), "pip", "install", "--quiet", "--python", str(python), str(wheel))
    site = Path(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for package in ("pyspark", "py4j"):  # half a gigabyte, the same files
        (site / package).symlink_to(Path(sysconfig.get_path("purelib")) / package)
    return python


def test_the_wheel_holds_the_agent_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"tidecast"}
    metadata = zipfile.ZipFile(wheel).read(next(n for n in names if n.endswith("METADATA"))).decode()
    needs = [line.split(":")[1].strip() for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert [need.split("<")[0].split(">")[0] for need in needs] == ["kafka-python"]


def test_what_is_installed_tells_its_release(wheel, stranger, tmp_path):
    told = run(str(stranger), "-I", "-c", "import tidecast; print(tidecast.__version__)", cwd=tmp_path).strip()
    assert told == wheel.name.split("-")[1] and ".post" in told


@pytest.mark.parametrize("generic", ["models", "pipelines", "configs", "dags", "numpy", "pydantic"])
def test_nothing_generic_lands_in_the_users_environment(stranger, tmp_path, generic):
    done = subprocess.run([stranger, "-c", f"import {generic}"], capture_output=True, text=True, cwd=tmp_path)
    assert f"No module named '{generic}'" in done.stderr


def test_the_command_says_where_the_pipeline_is(stranger, tmp_path):
    done = subprocess.run([stranger.parent / "tidecast"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "make run" in done.stderr


def test_a_job_of_its_own_is_observed(wheel, stranger, broker, empty_topics, tmp_path):
    script, log = tmp_path / "job.py", tmp_path / "log"
    script.write_text(STRANGER)
    topic, connector = empty_topics.topic("events"), ",".join(jars.jar_paths("connector"))
    argv = [stranger, script, broker.bootstrap, topic, connector, tmp_path / "checkpoint"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TIDECAST_", "PYTHON"))}
    env |= {"PYSPARK_PYTHON": str(stranger), "PYSPARK_DRIVER_PYTHON": str(stranger), "SPARK_LOCAL_IP": "127.0.0.1"}
    # As ours have it: by default it starts in twice the time, and collects garbage beside that.
    env["PYSPARK_SUBMIT_ARGS"] = f"--driver-java-options '{LOCAL_JAVA}' {env['PYSPARK_SUBMIT_ARGS']}"
    env["SPARK_LAUNCHER_OPTS"] = LAUNCHER_JAVA
    publisher, follower = Publisher(empty_topics), Follower(broker, ["metrics"])
    with log.open("w") as out:
        told = {"env": env | {"JAVA_HOME": str(java.find_java().home)}, "cwd": tmp_path, "start_new_session": True}
        job = subprocess.Popen([*map(str, argv)], stdout=out, stderr=out, **told)
    seen = []
    try:
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            assert job.poll() is None, log.read_text()[-3000:]
            for _ in range(5):
                publisher.send_bytes("events", b"k", b"{}")
            seen += [decode(MetricSample, r.value) for r in follower.poll(0.15) if r.key == "stranger"]
            if {"interval", "batch"} <= {m.kind for m in seen if m.executors == 1} and len(seen) > 3:
                break
        else:
            pytest.fail(f"seen: {seen[-5:]}\n{log.read_text()[-3000:]}")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        publisher.close()
        follower.close()
    assert all(m.job == "stranger" and m.mode == "observe" for m in seen)
    assert max(m.arrival_rps for m in seen if m.kind == "interval") > 1
    assert all(m.span_s < 60 for m in seen)
    assert f"stranger: attached, observing, release {wheel.name.split('-')[1]}, topics " in log.read_text()
