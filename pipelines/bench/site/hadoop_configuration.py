"""What HDFS, YARN and Spark on them are told: everything on the loopback, nodes of three cores, a queue for all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from pipelines.spark import java
from pipelines.stack.ports import HOST
from pipelines.stack.services.spark import spark_home

CORES_PER_NODE, MB_PER_NODE = 3, 3072


def write_configuration(conf: Path, folder: Path, ports: Sequence[int]) -> None:
    """Write Hadoop's XML files, Spark's defaults and the daemons' logging into the folder `conf`.

    Args:
        conf: existing.
        folder: for the daemons' data.
        ports: seven: NameNode and its page, the ResourceManager's page, and its four other addresses.

    Raises:
        JavaError: no usable Java.
        OSError: a file cannot be written.
    """
    name, web, manager, *others = ports
    filesystem = f"hdfs://{HOST}:{name}"
    tmp = folder / "tmp"
    data = folder / "data"
    _site(conf, "core", {"fs.defaultFS": filesystem, "hadoop.tmp.dir": tmp})
    hdfs = {
        "replication": 1, "namenode.name.dir": folder / "name", "datanode.data.dir": data,
        "namenode.http-address": f"{HOST}:{web}", "namenode.rpc-bind-host": HOST,
        "datanode.address": f"{HOST}:0", "datanode.ipc.address": f"{HOST}:0", "datanode.http.address": f"{HOST}:0",
        "datanode.hostname": "localhost", "namenode.datanode.registration.ip-hostname-check": "false",
        "namenode.safemode.extension": 0,
    }  # fmt: skip
    _site(conf, "hdfs", {f"dfs.{key}": value for key, value in hdfs.items()})
    yarn = {
        "resourcemanager.hostname": HOST, "resourcemanager.bind-host": HOST,
        "resourcemanager.webapp.address": f"{HOST}:{manager}",
        **{
            f"resourcemanager.{part}address": f"{HOST}:{port}"
            for part, port in zip(("", "scheduler.", "resource-tracker.", "admin."), others, strict=True)
        },
        "resourcemanager.nodemanagers.heartbeat-interval-ms": 200,
        "resourcemanager.scheduler.class":
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.capacity.CapacityScheduler",
        "nodemanager.hostname": "localhost", "nodemanager.bind-host": HOST,
        **{
            f"nodemanager.{part}address": "localhost:0"
            for part in ("", "localizer.", "webapp.", "collector-service.")
        },
        "nodemanager.resource.memory-mb": MB_PER_NODE, "nodemanager.resource.cpu-vcores": CORES_PER_NODE,
        "scheduler.minimum-allocation-mb": 256,
        "nodemanager.vmem-check-enabled": "false", "nodemanager.pmem-check-enabled": "false",
        "nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 99.5,
        "nodemanager.env-whitelist": "JAVA_HOME,HADOOP_CONF_DIR,PATH",
    }  # fmt: skip
    _site(conf, "yarn", {f"yarn.{key}": value for key, value in yarn.items()})
    queue = "yarn.scheduler.capacity"
    _site(
        conf,
        "capacity-scheduler",
        {
            f"{queue}.root.queues": "default", f"{queue}.root.default.capacity": 100,
            f"{queue}.maximum-am-resource-percent": 0.5, f"{queue}.node-locality-delay": -1,
            f"{queue}.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        },
        ending="",
    )  # fmt: skip
    (conf / "log4j2.properties").write_text(
        "appender.e.type = Console\nappender.e.name = e\nappender.e.target = SYSTEM_ERR\n"
        "appender.e.layout.type = PatternLayout\nappender.e.layout.pattern = %d %p %c{1}: %m%n\n"
        "rootLogger.level = warn\nrootLogger.appenderRef.e.ref = e\n"
    )
    home = java.find_java().home
    spark = {
        "spark.executorEnv.JAVA_HOME": home, "spark.yarn.appMasterEnv.JAVA_HOME": home,
        "spark.driver.host": HOST, "spark.driver.bindAddress": HOST,
        "spark.executorEnv.SPARK_LOCAL_IP": HOST, "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": HOST,
        "spark.executorEnv.PYSPARK_PYTHON": sys.executable,
        "spark.yarn.jars": f"local:{spark_home()}/jars/*", "spark.yarn.stagingDir": f"{filesystem}/staging",
        "spark.yarn.am.memory": "256m", "spark.yarn.am.memoryOverhead": "128m",
        "spark.executor.memoryOverhead": "256m", "spark.yarn.scheduler.heartbeat.interval-ms": 500,
        "spark.executor.maxNumFailures": 100,
    }  # fmt: skip
    (conf / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in spark.items()))


def _site(conf: Path, name: str, values: dict[str, Any], ending: str = "-site") -> None:
    lines = (
        f"<property><name>{key}</name><value>{escape(str(value))}</value></property>" for key, value in values.items()
    )
    (conf / f"{name}{ending}.xml").write_text("\n".join(["<configuration>", *lines, "</configuration>"]))
