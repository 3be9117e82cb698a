"""HDFS, alone or with YARN: real daemons in one JVM on the loopback."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Self

import httpx

from configs.settings import ROOT
from pipelines.bench.site.hadoop_configuration import write_configuration
from pipelines.bench.site.ports import free_ports
from pipelines.spark import jars, java
from pipelines.stack.ports import HOST
from pipelines.stack.services.spark import spark_home

COORDINATES = [
    "ivy://org.apache.hadoop:hadoop-client-minicluster:3.5.0?transitive=false",
    *(f"ivy://org.bouncycastle:{name}-jdk18on:1.82?transitive=false" for name in ("bcprov", "bcpkix", "bcutil")),
]
FROM_SPARK = ("hadoop-client-api", "hadoop-client-runtime", "jcl-over-slf4j", "log4j-", "slf4j-api", "py4j")
"""Jars of PySpark that the daemons need beside their own, in the order of the class path."""
OPTIONS = ["-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true"]


class Hdfs:
    """A NameNode and a DataNode under a folder; as a context manager they are started on entry, and gone on exit.

    Attributes:
        conf: folder of Hadoop's and Spark's configuration, for HADOOP_CONF_DIR and SPARK_CONF_DIR.
        filesystem: address of HDFS.
    """

    def __init__(self, folder: Path) -> None:
        """Choose ports and write the configuration under a folder, which is made; nothing is started yet."""
        self._folder, self.conf = folder, folder / "conf"
        self.conf.mkdir(parents=True)
        self._ports = free_ports(7)
        self.filesystem = f"hdfs://{HOST}:{self._ports[0]}"
        write_configuration(self.conf, folder, self._ports)

    def __enter__(self) -> Self:
        """Start the daemons, within half a minute.

        Raises:
            JarsError, JavaError: the daemons' jars cannot be fetched, or there is no usable Java.
            py4j.protocol.Py4JError: a daemon does not start; `hadoop.log` says why.
        """
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

        found = java.find_java()
        spark_jars = Path(spark_home(), "jars")
        path = [str(self.conf), *_resolved()]
        path += [str(jar) for prefix in FROM_SPARK for jar in sorted(spark_jars.glob(f"{prefix}*.jar"))]
        (py4j,) = spark_jars.glob("py4j-*.jar")
        self._log = (self._folder / "hadoop.log").open("w")
        port, self._process = launch_gateway(
            jarpath=str(py4j), classpath=":".join(path), javaopts=OPTIONS, java_path=found.binary, die_on_exit=True,
            redirect_stdout=self._log, redirect_stderr=self._log, return_proc=True,
        )  # fmt: skip
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._gateway.shutdown(raise_exception=False)  # else what Python forgets of the JVM's is told to nobody, aloud
        self._process.kill()
        self._process.wait(30)
        self._log.close()

    def _start(self) -> None:
        jvm: Any = self._gateway.jvm
        jvm.org.apache.hadoop.metrics2.lib.DefaultMetricsSystem.setMiniClusterMode(True)
        conf = jvm.org.apache.hadoop.hdfs.HdfsConfiguration()
        node = jvm.org.apache.hadoop.hdfs.server.namenode.NameNode
        node.format(conf)
        self._name = node(conf)
        none = self._gateway.new_array(jvm.java.lang.String, 0)
        self._data = jvm.org.apache.hadoop.hdfs.server.datanode.DataNode.createDataNode(none, conf)

    def stay_safe(self, on: bool) -> None:
        """Have the NameNode enter safe mode, in which nothing can be written, or leave it."""
        jvm: Any = self._gateway.jvm
        actions = jvm.org.apache.hadoop.hdfs.protocol.HdfsConstants.SafeModeAction
        self._name.getRpcServer().setSafeMode(actions.SAFEMODE_ENTER if on else actions.SAFEMODE_LEAVE, False)

    @property
    def pid(self) -> int:
        """Process id of the daemons."""
        return int(self._process.pid)

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which Hadoop's clients and Spark find the cluster."""
        return {"HADOOP_CONF_DIR": str(self.conf), "SPARK_CONF_DIR": str(self.conf)}


class Hadoop(Hdfs):
    """HDFS and, without a node at first, YARN under a folder, likewise."""

    def __init__(self, folder: Path) -> None:
        """Choose ports and write the configuration under a folder, which is made; nothing is started yet."""
        super().__init__(folder)
        self._page = f"http://{HOST}:{self._ports[2]}"
        self._nodes: list[Any] = []

    def _start(self) -> None:
        super()._start()
        jvm: Any = self._gateway.jvm
        self._conf = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration(jvm.org.apache.hadoop.hdfs.HdfsConfiguration())
        self._manager = jvm.org.apache.hadoop.yarn.server.resourcemanager.ResourceManager()
        self._manager.init(self._conf)
        self._manager.start()

    def add_node(self) -> None:
        """Start one more NodeManager; its cores are there within a second."""
        jvm: Any = self._gateway.jvm
        own = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration(self._conf)
        home = self._folder / f"node{len(self._nodes)}"
        own.set("yarn.nodemanager.local-dirs", str(home / "local"))
        own.set("yarn.nodemanager.log-dirs", str(home / "log"))
        node = jvm.org.apache.hadoop.yarn.server.nodemanager.NodeManager()
        node.init(own)
        node.start()
        self._nodes.append(node)

    def remove_node(self, number: int) -> None:
        """Stop a NodeManager by its number, from 0, and its containers with it."""
        self._nodes[number].stop()

    def without_master(self) -> int:
        """Return the number of a NodeManager on which no application's master runs.

        Raises:
            StopIteration: there is none.
            httpx.HTTPError: the ResourceManager does not answer.
        """
        apps = httpx.get(f"{self._page}/ws/v1/cluster/apps?states=RUNNING", timeout=10).json()["apps"]["app"]
        masters = {app["amHostHttpAddress"] for app in apps}
        pages = [node.getNMContext().getNodeId().getHost() for node in self._nodes]
        ports = [f"{host}:{node.getNMContext().getHttpPort()}" for host, node in zip(pages, self._nodes, strict=True)]
        return next(number for number, page in enumerate(ports) if page not in masters)

    def metrics(self) -> dict[str, Any]:
        """Return YARN's own figures of the cluster, as `activeNodes` and `containersPending`.

        Raises:
            httpx.HTTPError: the ResourceManager does not answer.
        """
        found: dict[str, Any] = httpx.get(f"{self._page}/ws/v1/cluster/metrics", timeout=10).json()["clusterMetrics"]
        return found


def _resolved() -> list[str]:
    """The daemons' own jars, fetched once into the checkout's `var`."""
    listed = jars.LIST.with_name("hadoop-jars.json")
    if not listed.is_file():
        from pyspark.java_gateway import launch_gateway

        before = os.environ.get("JAVA_HOME")
        os.environ["JAVA_HOME"] = str(java.find_java().home)
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
        try:
            found = jars.resolve_group(gateway.jvm, COORDINATES)["jars"]
        finally:
            gateway.shutdown()
            del os.environ["JAVA_HOME"]
            if before is not None:
                os.environ["JAVA_HOME"] = before
        listed.write_text(json.dumps([str(ROOT / path) for path in found]))
    known: list[str] = json.loads(listed.read_text())
    return known
