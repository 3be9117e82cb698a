"""Hadoop's own client, as PySpark brings it, in a small JVM: what is read of an HDFS without Spark.

It reads the configuration that HADOOP_CONF_DIR names and logs in by it, as Spark does; only its patience is ours.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipelines.lake.errors import LakeAwayError, LakeError
from pipelines.spark.java import find_java
from pipelines.stack.services.spark import spark_home

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_SETTING = "lake.address (TIDECAST_LAKE__ADDRESS)"
_JARS = ("hadoop-client-api-", "hadoop-client-runtime-", "jcl-over-slf4j-", "log4j-", "slf4j-api-")
_JAVA = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]
# By default a namenode that takes no connection is tried for a quarter of an hour, and one that hangs for two minutes.
_PATIENCE = {
    "ipc.client.connect.timeout": "5000",
    "ipc.client.connect.max.retries": "1",
    "ipc.client.connect.max.retries.on.timeouts": "0",
    "ipc.client.rpc-timeout.ms": "8000",
    "dfs.client.failover.max.attempts": "2",  # of two namenodes one is on standby, and says so
    "dfs.client.failover.sleep.max.millis": "1000",
}


class HadoopClient:
    """Lists, reads and asks about what lies on one HDFS; may be used by several threads.

    The JVM is one per process (`client_of`): it is there within a second, takes 130 MB, and ends with the process.

    Raises:
        JavaError: no usable Java.
        LakeAwayError: the file system cannot be reached, or the JVM has ended: the next `client_of` starts another one.
    """

    def __init__(self, authority: str, gateway: JavaGateway) -> None:
        """Connect to `hdfs://HOST:PORT` in a JVM; the namenode is not asked for anything yet."""
        self._authority, self._gateway = authority, gateway
        self._jvm: Any = self._gateway.jvm
        self._hadoop = self._jvm.org.apache.hadoop
        with self._told("/"):
            options = self._hadoop.conf.Configuration()
            for name, value in _PATIENCE.items():
                options.set(name, value)
            self._files = self._hadoop.fs.FileSystem.newInstance(self._jvm.java.net.URI(f"{authority}/"), options)

    def glob(self, pattern: str) -> list[str]:
        """Return the addresses of what a pattern names, e.g. `/lake/*/_delta_log`; none where its folder is missing.

        Raises:
            LakeError: this user may not read a folder.
            LakeAwayError: the namenode does not answer.
        """
        with self._told(pattern):
            found = self._files.globStatus(self._hadoop.fs.Path(pattern))
            if found is None:
                return []
            # In one text, as a call costs 0.1 ms and a log has thousands of files; Java writes out arrays of this type.
            paths = self._hadoop.fs.FileUtil.stat2Paths(found)
            objects = self._gateway.new_array(self._jvm.java.lang.Object, len(paths))
            self._jvm.java.lang.System.arraycopy(paths, 0, objects, 0, len(paths))
            listed: str = self._jvm.java.util.Arrays.toString(objects)
        return listed[1:-1].split(", ") if len(paths) else []

    def read(self, path: str) -> bytes:
        """Return what a file holds.

        Raises:
            FileNotFoundError: there is none.
            LakeError: this user may not read it.
            LakeAwayError: the namenode does not answer, or no datanode has the file.
        """
        with self._told(path):
            stream = self._files.open(self._hadoop.fs.Path(path))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def exists(self, path: str) -> bool:
        """Return whether there is such a file or folder.

        Raises:
            LakeError: this user may not look into a folder above it.
            LakeAwayError: the namenode does not answer.
        """
        with self._told(path):
            return bool(self._files.exists(self._hadoop.fs.Path(path)))

    def refuse_read_only(self, path: str) -> None:
        """Refuse a folder in which nothing can be written, without writing.

        Raises:
            LakeError: this user may not.
            LakeAwayError: nobody can now, as the namenode is in safe mode; or it does not answer.
        """
        with self._told(path):
            self._files.access(self._hadoop.fs.Path(path), self._hadoop.fs.permission.FsAction.WRITE)
            if self._files.isInSafeMode():
                raise LakeAwayError(
                    f"{self._authority} is in safe mode, and nothing can be written. Wait until its namenode has left"
                    " it; `hdfs dfsadmin -safemode get` and its log say why it has not."
                )

    @contextmanager
    def _told(self, path: str) -> Iterator[None]:
        """Tell Java's errors about a path as ours."""
        from py4j.protocol import Py4JError, Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            kind = error.java_exception.getClass().getSimpleName()
            # What follows is Java's stack, and a page that lists what may be wrong with networks.
            said = str(error.java_exception.getMessage()).partition("\n")[0].partition("; For more details")[0]
            if kind == "FileNotFoundException":
                raise FileNotFoundError(said) from None
            if kind == "AccessControlException":
                raise LakeError(
                    f"{self._authority}{path}: HDFS forbids it: {said}. Give this user the right (`hdfs dfs -chown` or "
                    "`-setfacl`), log in as another one (kinit; without Kerberos HADOOP_USER_NAME), or correct "
                    f"{_SETTING}."
                ) from None
            raise self._away(path, f"{kind}: {said}") from None
        except Py4JError as error:
            raise self._away(path, f"Hadoop's client in this process has ended, another one is next: {error}") from None

    def _away(self, path: str, said: str) -> LakeAwayError:
        where = f"{self._authority}{path}"
        return LakeAwayError(f"{where}: HDFS does not answer: {said}. Start it, or correct {_SETTING}.")


class _Jvm:
    """A JVM, and the clients in it, by whose file system they are of."""

    def __init__(self) -> None:
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

        jars = Path(spark_home(), "jars")
        found = [str(jar) for name in _JARS for jar in sorted(jars.glob(f"{name}*.jar"))]
        (py4j,) = jars.glob("py4j-*.jar")
        own = [folder] if (folder := os.environ.get("HADOOP_CONF_DIR")) else []
        port, token, self.process = launch_gateway(
            jarpath=str(py4j), classpath=os.pathsep.join([*own, *found]), javaopts=_JAVA, java_path=find_java().binary,
            die_on_exit=True, enable_auth=True, return_proc=True,
        )  # fmt: skip
        self.gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        self.clients: dict[str, HadoopClient] = {}

    def close(self) -> None:
        """End it; else what Python forgets of the JVM's at its end is told to nobody, aloud."""
        self.gateway.shutdown(raise_exception=False)
        self.process.stdin.close()  # with that it ends


class _Clients:
    """The clients of this process; a JVM that has ended is replaced by another one, with the next client asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jvm: _Jvm | None = None

    def of(self, authority: str) -> HadoopClient:
        with self._lock:
            if self._jvm is None or self._jvm.process.poll() is not None:
                if self._jvm is not None:
                    atexit.unregister(self._jvm.close)
                    self._jvm.close()
                    self._jvm = None
                self._jvm = _Jvm()
                atexit.register(self._jvm.close)
            if authority not in self._jvm.clients:
                self._jvm.clients[authority] = HadoopClient(authority, self._jvm.gateway)
            return self._jvm.clients[authority]


client_of = _Clients().of
"""Returns this process's client of `hdfs://HOST:PORT`, in a JVM that runs; raises as `HadoopClient` does."""
