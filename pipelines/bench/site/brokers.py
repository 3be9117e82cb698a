"""Three Kafka nodes on the loopback: TLS with a CA of their own, SCRAM logins, ACLs, every topic on all three."""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)
from kafka.errors import KafkaError

from configs.sections import Kafka
from pipelines.bench.site.certificates import write_certificates
from pipelines.bench.site.ports import free_ports
from pipelines.bench.site.way import Way
from pipelines.spark import java
from pipelines.stack.keeper import Keeper
from pipelines.stack.ports import HOST
from pipelines.stack.services.kafka import java_command

NODES = (1, 2, 3)
ADMIN, USER, PASSWORD = "admin", "tidecast", "planted-broker-password-0123456789"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


class Brokers:
    """The cluster under a folder; as a context manager it is started on entry, and ended on exit.

    Attributes:
        way: to the nodes, for whoever has `far`; it can be cut.
    """

    def __init__(self, folder: Path) -> None:
        """Choose ports, and write the certificates into a folder, which is made; nothing is started yet."""
        self._folder, self._java = folder, java.find_java().binary
        write_certificates(folder)
        ports = iter(free_ports(3 * len(NODES)))
        self._clients, self._controllers, self._behind = (dict(zip(NODES, ports, strict=False)) for _ in range(3))
        self.way = Way([*self._behind.values()])
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Brokers:
        """Start all three, and let USER do on its topics what docs/attach.md asks for.

        They end with this process, however it ends.

        Raises:
            kafka.errors.KafkaError: they do not answer within 90 s, or take no rule.
            subprocess.CalledProcessError: a node's storage cannot be formatted.
        """
        for node in NODES:
            file = self._folder / f"node{node}.properties"
            file.write_text("".join(f"{key}={value}\n" for key, value in self._properties(node).items()))
            scram = f"SCRAM-SHA-512=[name={USER},password={PASSWORD}]"
            tool = ["kafka.tools.StorageTool", "format", "-t", "q1Sh-9_ISia_zwGINzRvyQ", "-c", str(file)]
            subprocess.run([*self._command(), *tool, "--add-scram", scram], check=True, stdout=subprocess.DEVNULL)
        self._keeper = Keeper(uuid.uuid4().hex, self._folder / "keeper.log")
        try:
            for node in NODES:
                self.start(node)
            self._allow_what_the_docs_say()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        for process in self._running.values():
            process.kill()
            process.wait(30)
        self._keeper.end()
        self.way.close()

    def start(self, node: int) -> None:
        """Start a node, one of NODES, without waiting for it; its log is `nodeN.log`."""
        log = (self._folder / f"node{node}.log").open("ab")
        file = str(self._folder / f"node{node}.properties")
        command = [*self._command(), "kafka.Kafka", file]
        process = self._running[node] = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        self._keeper.watch(process.pid)

    def kill(self, node: int) -> None:
        """Kill a node (SIGKILL)."""
        process = self._running.pop(node)
        process.kill()
        process.wait(30)
        self._keeper.forget(process.pid)

    def stop(self, node: int) -> None:
        """Ask a node to end (SIGTERM), and wait for it, at most a minute."""
        self._running[node].terminate()
        with suppress(subprocess.TimeoutExpired):
            self._running[node].wait(60)
        self.kill(node)

    def pid(self, node: int) -> int:
        """Return a node's process id."""
        return self._running[node].pid

    def data(self, node: int) -> Path:
        """Return the folder of a node's segments."""
        return self._folder / f"data{node}"

    def section(self, user: str = USER, mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
        """Return the settings' section `kafka` of a user, as docs/attach.md has it."""
        return {
            "bootstrap": self._bootstrap, "prefix": "tidecast.", "replication": len(NODES),
            "security": {
                "security_protocol": "SASL_SSL", "sasl_mechanism": mechanism, "sasl_plain_username": user,
                "sasl_plain_password": PASSWORD, "ssl_cafile": str(self._folder / "ca.pem"),
            },
        }  # fmt: skip

    @property
    def far(self) -> str:
        """Addresses of the nodes at the end of the way."""
        return ",".join(f"{HOST}:{port}" for port in self.way.ports)

    def allow_group(self, group: str) -> None:
        """Let USER read in a group of consumers, as docs/security.md asks for where the fast path serves."""
        self._allow(ResourcePattern(ResourceType.GROUP, group), (ACLOperation.READ,))

    def forbid(self, topic: str, operation: ACLOperation) -> None:
        """Forbid USER an operation on a topic, whatever else is allowed."""
        self._rule(ResourcePattern(ResourceType.TOPIC, topic), (operation,), ACLPermissionType.DENY)

    def in_sync(self, node: int, topics: Sequence[str]) -> bool:
        """Return whether a node answers, and has all records of every partition of some topics.

        One that was killed is taken for one of those that have them for some seconds more: it has to answer itself,
        which it does once the controller knows it again.

        Raises:
            kafka.errors.KafkaError: it does not answer.
        """
        if node not in self.running():
            return False
        client = self._administer(0, f"{HOST}:{self._clients[node]}")
        try:
            found = [one for topic in client.describe_topics([*topics]) for one in topic["partitions"]]
        finally:
            client.close()
        return all(node in one["isr_nodes"] for one in found)

    def running(self) -> list[int]:
        """Return the nodes whose process runs."""
        return [node for node, process in self._running.items() if process.poll() is None]

    def describe(self, topic: str) -> dict[str, Any]:
        """Return what the controller knows of a topic, as `partitions` with their `replica_nodes`."""
        client = self._administer()
        try:
            (found,) = client.describe_topics([topic])
        finally:
            client.close()
        return dict(found)

    def _administer(self, within_s: float = 90, address: str = "") -> KafkaAdminClient:
        """A client of all nodes, or of that at an address alone until it has answered."""
        admin, deadline = Kafka(**self.section(ADMIN, "PLAIN")), time.monotonic() + within_s
        while True:
            try:
                return KafkaAdminClient(bootstrap_servers=address or admin.bootstrap, **admin.security)
            except KafkaError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)

    @property
    def _bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._clients.values())

    def _command(self) -> list[str]:
        return java_command(self._java)

    def _properties(self, node: int) -> dict[str, Any]:
        login = f'{_PLAIN} required username="{ADMIN}" password="{PASSWORD}" user_{ADMIN}="{PASSWORD}";'
        return {
            "process.roles": "broker,controller",
            "node.id": node,
            "controller.quorum.voters": ",".join(f"{n}@{HOST}:{port}" for n, port in self._controllers.items()),
            "listeners": (
                f"SASL_SSL://{HOST}:{self._clients[node]},FAR://{HOST}:{self._behind[node]},"
                f"CONTROLLER://{HOST}:{self._controllers[node]}"
            ),
            "advertised.listeners": (
                f"SASL_SSL://{HOST}:{self._clients[node]},FAR://{HOST}:{self.way.ports[NODES.index(node)]}"
            ),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,FAR:SASL_SSL",
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
            "listener.name.far.plain.sasl.jaas.config": login,
            "listener.name.far.scram-sha-512.sasl.jaas.config": f"{_SCRAM} required;",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._folder / "broker.pem",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._folder / "ca.pem",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            # Controllers talk without a login, on a port of their own.
            "super.users": f"User:{ADMIN};User:ANONYMOUS",
            "log.dirs": self.data(node),
            "auto.create.topics.enable": "false",
            "group.initial.rebalance.delay.ms": 0,
            "min.insync.replicas": 2,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.num.partitions": 4,
        }

    def _allow_what_the_docs_say(self) -> None:
        """The rule of docs/attach.md: Create, Describe, Read and Write on the prefix, and nothing else."""
        pattern = ResourcePattern(ResourceType.TOPIC, "tidecast.", ACLResourcePatternType.PREFIXED)
        self._allow(pattern, (ACLOperation.CREATE, ACLOperation.DESCRIBE, ACLOperation.READ, ACLOperation.WRITE))

    def _allow(self, pattern: ResourcePattern, operations: Sequence[ACLOperation]) -> None:
        self._rule(pattern, operations, ACLPermissionType.ALLOW)

    def _rule(self, pattern: ResourcePattern, operations: Sequence[ACLOperation], kind: ACLPermissionType) -> None:
        client = self._administer()
        rules = [ACL(f"User:{USER}", "*", one, kind, pattern) for one in operations]
        try:
            assert not client.create_acls(rules)["failed"]
        finally:
            client.close()
