"""The embedded Spark standalone cluster: one master, and one worker that hosts all executors."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from pipelines.spark import class_archive
from pipelines.spark.own_pyspark import LAUNCHER_JAVA
from pipelines.stack.context import StackContext, page_probe, port_probe
from pipelines.stack.ports import HOST

ADDRESS = f"spark://{HOST}:{{spark_master}}"
PAGE = f"http://{HOST}:{{spark_master_ui}}"  # of the master, which links to every application
MASTER, WORKER = "spark-master", "spark-worker"
LOG4J = Path(__file__).with_name("log4j2.properties")
_KEEP_S = 86_400  # executor logs of ended applications


def spark_home() -> str:
    """Return the path of the installed PySpark's folder, found without importing it.

    Raises:
        RuntimeError: PySpark is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("pyspark is not installed in this environment. Run `make setup`.")
    return str(spec.submodule_search_locations[0])


def start(context: StackContext) -> None:
    """Start a Spark standalone cluster on 127.0.0.1: a master, then one worker; waits until the worker is registered.

    The executors' work folders and logs are left in `var/spark-work`.

    Raises:
        StackError: a process ended or was not ready within 120 s.
        RuntimeError: PySpark is not installed.
        JavaError, JarsError: no usable Java; the jars of the Kafka connector or of Delta are missing.
        AbandonedError, ProcessError: the start was given up, or a program does not run or the stack's keeper is gone.
        OSError: `var` cannot be written.
    """
    ports, spark = context.ports, context.settings.spark
    env = {
        "SPARK_LAUNCHER_OPTS": LAUNCHER_JAVA,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
        f" -Dspark.master.rest.enabled=false -Dlog4j2.configurationFile=file:{LOG4J}"  # nothing submits through it
        f" {class_archive.use_option()}",
        # They use none of it: the class archive fits where the class path is that of drivers and executors.
        "SPARK_DAEMON_CLASSPATH": ":".join(class_archive.class_path()),
        "SPARK_WORKER_DIR": str(context.folder("spark-work", part="spark")),
        "SPARK_WORKER_OPTS": f"-Dspark.worker.cleanup.enabled=true -Dspark.worker.cleanup.appDataTtl={_KEEP_S}",
    }
    run_class = str(Path(spark_home(), "bin", "spark-class"))
    master = [
        run_class, "org.apache.spark.deploy.master.Master",
        "--host", HOST, "--port", str(ports["spark_master"]), "--webui-port", str(ports["spark_master_ui"]),
    ]  # fmt: skip
    worker = [
        run_class, "org.apache.spark.deploy.worker.Worker",
        "--host", HOST, "--port", str(ports["spark_worker"]), "--webui-port", str(ports["spark_worker_ui"]),
        "--cores", str(spark.worker_cores), "--memory", spark.worker_memory, context.fill(ADDRESS),
    ]  # fmt: skip
    context.spawn(MASTER, master, env, probe=port_probe(ports["spark_master"]))
    context.await_ready(MASTER)
    context.spawn(WORKER, worker, env, probe=page_probe(f"{context.fill(PAGE)}/json/", _has_worker))
    context.await_ready(WORKER)


def _has_worker(text: str) -> bool:
    state = json.loads(text)
    return state.get("status") == "ALIVE" and any(w.get("state") == "ALIVE" for w in state.get("workers", []))
