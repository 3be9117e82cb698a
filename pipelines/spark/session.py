"""The SparkSession of every process, with the options of `options.py` and those that depend on settings."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from configs.contract import Contract
from configs.errors import SettingsError
from configs.settings import Settings, load
from pipelines.spark import class_archive, fork_server, jars, java
from pipelines.spark.event_log import event_log_options
from pipelines.spark.options import (
    COMMON,
    DECOMMISSION,
    DELTA,
    EXECUTOR_JAVA,
    LOCAL_CHECKPOINTS,
    LOCAL_JAVA,
    NO_PAGES,
    POOLS,
    PROMPT,
    SPECULATION,
)
from pipelines.spark.own_pyspark import use_own_pyspark
from pipelines.spark.resource_manager import silent_manager
from pipelines.spark.worker_daemon import ADDRESS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ACCEPTED_S = 20.0
"""Seconds within which YARN starts an application that has room."""
_LOOPBACK = "127.0.0.1"
_FORK_SERVERS: dict[str, Any] = {}
"""Of this process's sessions, by application: each ends when this process does."""


def local_session(
    app: str, cores: int = 1, delta: bool = False, archive_to: Path | None = None, prompt: bool = False
) -> SparkSession:  # fmt: skip
    """Return a Spark session in this process (`local[cores]`, no UI, loopback only): the running one, or a new one.

    Creates `var/spark` for its files; sets JAVA_HOME, SPARK_HOME, SPARK_LOCAL_IP, SPARK_LOCAL_DIRS and, unless it is of
    this environment, PYSPARK_PYTHON of this process. A JVM of 600 MB heap takes seconds to start. The caller stops the
    session.

    Args:
        app: name of the application.
        cores: threads, and partitions of a shuffle.
        delta: with Delta's catalogue.
        archive_to: file to which the JVM writes a class archive (AppCDS) when it ends; by default it uses the one in
            place.
        prompt: as `cluster_session`.

    Raises:
        SettingsError: a setting is wrong.
        JavaError: no usable Java.
        JarsError: the jars of Delta or of the Kafka connector are missing.
        OSError: `var/spark` cannot be created.
    """
    settings = load()
    archive = class_archive.use_option() if archive_to is None else class_archive.write_option(archive_to)
    options = {
        **COMMON,
        **NO_PAGES,
        **_on_loopback(settings),
        **(DELTA if delta else {}),
        **(PROMPT if prompt else {}),
        "spark.driver.extraJavaOptions": f"{LOCAL_JAVA} {archive}",
        "spark.driver.extraClassPath": ":".join(class_archive.class_path()),
        "spark.driver.memory": "600m",
        "spark.sql.shuffle.partitions": str(cores),
    }
    return _build(app, f"local[{cores}]", options)


def cluster_session(
    app: str, settings: Settings, contract: Contract, event_log: Path | None = None, stock_starts: bool = False,
    delta: bool = False, grows: bool = True, prompt: bool = False, pages: bool = True,
) -> SparkSession:  # fmt: skip
    """Start the session of a managed job on `settings.spark.master`, with the contract's least number of executors.

    Sets JAVA_HOME of this process, with a master on this computer also the other variables of `local_session`, and
    creates `var/spark`; with one elsewhere PYSPARK_PYTHON, if it is not set. Dynamic allocation is on until the agent
    acts, in the contract's bounds or at its least.

    Args:
        app: name of the application.
        settings: Spark's master, memory sizes, partitions of state, port of the UI (0: any free one).
        contract: of the job: least and most executors, and cores of each.
        event_log: folder for Spark's event log; created where it is missing.
        stock_starts: executors start as stock Spark's do, without class archive and fork server: to be compared with.
        delta: whether the job writes Delta tables.
        grows: whether Spark itself may add executors to the least ones; the agent may in any case, up to the most.
        prompt: whether rows of Python workers are handed on before a batch ends, and not by 64 KiB.
        pages: whether its driver shows Spark's pages, without a login and, beside a cluster, to the network.

    Raises:
        SettingsError: no Spark master is set.
        JavaError: no usable Java.
        JarsError: the jars of the Kafka connector, or of Delta, are missing.
        OSError: a folder cannot be created.
        Exception: as pyspark raises it, where the master cannot be reached.
    """
    master = settings.spark.master
    if not master:
        raise SettingsError(
            "spark.master is not set and no stack is running. `make up` starts one, or set TIDECAST_SPARK__MASTER."
        )
    executors = contract.executors
    options = {
        **COMMON,
        **DECOMMISSION,
        **SPECULATION,
        **POOLS,
        **({} if pages else NO_PAGES),
        **(DELTA if delta else {}),
        **(PROMPT if prompt else {}),
        "spark.executor.cores": str(executors.cores),
        "spark.task.cpus": "1",  # the contract's cores are slots, whatever spark-defaults.conf says for other jobs
        "spark.cores.max": str(executors.max * executors.cores),
        "spark.executor.memory": settings.spark.executor_memory,
        "spark.driver.memory": settings.spark.driver_memory,
        "spark.executor.extraJavaOptions": EXECUTOR_JAVA,
        "spark.locality.wait": "0s",
        "spark.sql.shuffle.partitions": str(settings.job.state_partitions),
        # `spark.executor.instances` is ignored in standalone mode. Dynamic allocation is there only to start with few;
        # the agent stops it when it acts.
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(executors.min),
        "spark.dynamicAllocation.initialExecutors": str(executors.min),
        "spark.dynamicAllocation.maxExecutors": str(executors.max if grows else executors.min),
        # What YARN makes of the most, which the agent's requests do not look at; and within an hour, not all its life.
        "spark.executor.maxNumFailures": str(max(3, 2 * executors.max)),
        "spark.executor.failuresValidityInterval": "1h",
        "spark.ui.port": str(settings.ports.job_ui),
        "spark.ui.killEnabled": "false",  # whoever reaches the pages, which ask for no login, could end its stages
    }
    options |= _here(app, master, settings, stock_starts) if _is_local(master) else _elsewhere(delta)
    if stock_starts:
        options["spark.python.daemon.module"] = "pyspark.daemon"
    if event_log is not None:
        options |= event_log_options(event_log)
    return _build(app, master, options)


def _build(app: str, master: str, options: dict[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java.find_java().home)
    builder: Any = SparkSession.builder.appName(app).master(master)
    for name, value in options.items():
        if value:
            builder = builder.config(name, value)
    on_interrupt = signal.getsignal(signal.SIGINT)
    waits = threading.Timer(ACCEPTED_S, _say_waiting)
    waits.daemon = True
    if master == "yarn":
        waits.start()
    try:
        session: SparkSession = builder.getOrCreate()
    finally:
        waits.cancel()
    if on_interrupt is not None and threading.current_thread() is threading.main_thread():
        # A SparkContext takes ctrl-C for itself, and raises it where the process would stop its query cleanly.
        signal.signal(signal.SIGINT, on_interrupt)
    return session


def _say_waiting() -> None:
    full = (
        "Is its queue full? `yarn application -list` shows who has it; spark.yarn.queue (spark-defaults.conf) names "
        "another one."
    )
    print(
        f"YARN has not started the application within {ACCEPTED_S:.0f} s; it is waited for. {silent_manager() or full}",
        file=sys.stderr,
        flush=True,
    )


def _is_local(master: str) -> bool:
    return master.startswith(("local", f"spark://{_LOOPBACK}:", "spark://localhost:"))


def _here(app: str, master: str, settings: Settings, stock_starts: bool) -> dict[str, str]:
    """Options of a job whose executors run on this computer; starts the server that their Python is forked from."""
    (settings.var_dir / "spark").mkdir(parents=True, exist_ok=True)
    # The same local paths serve all processes; on the class path proper the class archive covers them.
    class_path, archive = ":".join(class_archive.class_path()), class_archive.use_option()
    options = {
        "spark.driver.extraClassPath": class_path,
        "spark.driver.extraJavaOptions": f"{LOCAL_JAVA} {archive}",
        "spark.executor.extraClassPath": class_path,
        "spark.executor.extraJavaOptions": EXECUTOR_JAVA if stock_starts else f"{EXECUTOR_JAVA} {archive}",
    }
    if not master.startswith("local") and not stock_starts:  # its executors are processes of their own
        address, _FORK_SERVERS[app] = fork_server.start(settings.var_dir / "spark")
        options[f"spark.executorEnv.{ADDRESS}"] = address
    return _on_loopback(settings) | options


def _elsewhere(delta: bool) -> dict[str, str]:
    """Options of a job whose executors may run on other computers: the jars that they are sent; sets their Python."""
    if os.environ.get("SPARK_LOCAL_IP") == _LOOPBACK:  # a stack's children have it, and executors are elsewhere
        del os.environ["SPARK_LOCAL_IP"]
    # By default executors start the `python3` of their PATH. A query with state in Python starts one beside its driver,
    # too, by the same path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    groups: tuple[jars.Group, ...] = ("connector", "delta") if delta else ("connector",)
    return {"spark.jars": ",".join(path for group in groups for path in jars.jar_paths(group))}


def _on_loopback(settings: Settings) -> dict[str, str]:
    """Keep driver and executors of this computer to the loopback and their files under `var`."""
    os.environ["SPARK_LOCAL_IP"] = _LOOPBACK
    use_own_pyspark()
    (scratch := settings.var_dir / "spark").mkdir(parents=True, exist_ok=True)
    os.environ["SPARK_LOCAL_DIRS"] = str(scratch)  # as a setting it would draw a warning that standalone overrides it
    return {
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        # Where HADOOP_CONF_DIR names another file system, `var` would be looked for there.
        "spark.hadoop.fs.defaultFS": "file:///",
        "spark.sql.streaming.checkpointFileManagerClass": LOCAL_CHECKPOINTS,
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }
