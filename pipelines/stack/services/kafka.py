"""The embedded Kafka broker: one node in KRaft mode, broker and controller in one JVM."""

from __future__ import annotations

from pathlib import Path

from pipelines.spark import class_archive, jars
from pipelines.stack.context import StackContext, port_probe
from pipelines.stack.ports import HOST
from pipelines.stack.services.spark import spark_home

ADDRESS = f"{HOST}:{{broker}}"
MARKS_MINUTES = 10 * 365 * 24 * 60
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
_JVM = ["-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"]


def start(context: StackContext) -> None:
    """Start a Kafka broker on 127.0.0.1 and wait until it accepts connections; formats `var/kafka/data` first if new.

    Raises:
        StackError: it ended or was not ready within 120 s, or formatting failed or took more than 180 s.
        JarsError: the broker's jars are not there.
        RuntimeError: PySpark, whose Scala library it uses, is not installed.
        AbandonedError, ProcessError: the start was given up, or a program does not run or the stack's keeper is gone.
        OSError: `var` cannot be written.
    """
    home = context.folder("kafka", part="broker")
    properties = home / "server.properties"
    properties.write_text(_properties(context, home / "data"))
    java = java_command(context.java.binary)
    if not (home / "data" / "meta.properties").exists():
        tool = [*java, "kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(properties), "--standalone"]
        context.run("broker-format", tool)
    context.spawn("broker", [*java, "kafka.Kafka", str(properties)], probe=port_probe(context.ports["broker"]))
    context.await_ready("broker")


def broker_jars() -> list[str]:
    """Return the paths of the jars that a broker runs with.

    Raises:
        JarsError: they are not there.
        RuntimeError: PySpark, whose Scala library is used, is not installed.
        OSError: the list of jars cannot be read.
    """
    # Kafka's own set lacks the Scala library under Ivy's rules; PySpark's fits.
    scala = sorted(Path(spark_home(), "jars").glob("scala-library-2.13*.jar"))
    return [*jars.jar_paths("broker"), *map(str, scala)]


def java_command(binary: str) -> list[str]:
    """Return the command with which a small broker's JVM, or one of Kafka's tools, is started; its class comes next.

    Raises:
        JarsError, RuntimeError, OSError: as `broker_jars`.
        JavaError: no usable Java.
    """
    paths = broker_jars()
    archive = class_archive.broker_archive_path(paths)
    return [binary, *_JVM, *class_archive.use_options(archive), "-cp", ":".join(paths)]


def _properties(context: StackContext, data: Path) -> str:
    broker, controller = context.ports["broker"], context.ports["controller"]
    listeners = f"PLAINTEXT://{HOST}:{broker},CONTROLLER://{HOST}:{controller}"
    lines = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.bootstrap.servers": f"{HOST}:{controller}",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": data,
        "group.initial.rebalance.delay.ms": 0,
        # One that was killed is let in again only when the session of its former life is over, by default 9 s, in which
        # its sender of transactions' markers keeps half a core busy.
        "broker.session.timeout.ms": 5000,
        "broker.heartbeat.interval.ms": 1000,
        # By default the controller tells its followers twice a second that it lives: a third of what an idle broker
        # takes. It has none.
        "metadata.max.idle.interval.ms": 0,
        "auto.create.topics.enable": "false",
        # Marks of what was sent once are offsets of groups without members: by default they are gone after a week.
        "offsets.retention.minutes": MARKS_MINUTES,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.num.partitions": 4,
        # One node cannot replicate.
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())
