"""The listener of `docker/outside.yaml`: what a client on the host finds behind it, with TLS and a login."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import KafkaError

from configs.sections import Kafka
from configs.settings import ROOT
from pipelines.bench.site.certificates import write_certificates
from pipelines.kafka.broker import read_records
from pipelines.kafka.publisher import Publisher
from pipelines.stack.ports import HOST

FILE = ROOT / "docker" / "outside.yaml"
USER, PASSWORD, ADDRESS = "jobs", "plantedoutsidepassword", f"{HOST}:9094"
TOPIC, TEXT = "from-outside", b"{}"


def told(folder: Path) -> dict[str, str]:
    """Write a CA and a broker's certificate into a folder, which is made; return what the file asks of `docker/.env`.

    Raises:
        OSError: the folder cannot be written.
    """
    write_certificates(folder)
    (folder / "broker.pem").chmod(0o444)
    return {
        "KAFKA_OUTSIDE_HOST": HOST, "KAFKA_OUTSIDE_ADDRESS": HOST, "KAFKA_OUTSIDE_PASSWORD": PASSWORD,
        "KAFKA_OUTSIDE_PEM": str(folder / "broker.pem"),
    }  # fmt: skip


def list_faults(folder: Path) -> list[str]:
    """Ask the listener as a job on another host would; return in words what is not as it should be.

    Args:
        folder: as `told` has filled it.

    Raises:
        kafka.errors.KafkaError: it does not answer, or takes no record.
    """
    right = Kafka(bootstrap=ADDRESS, security=_security(folder))
    client = KafkaAdminClient(bootstrap_servers=ADDRESS, **right.security)
    try:
        client.create_topics([NewTopic(TOPIC, 1, 1)])
    finally:
        client.close()
    publisher = Publisher(right)
    publisher.send_bytes(TOPIC, b"key", TEXT)
    publisher.close()
    found = [] if [one.value for one in read_records(right, TOPIC)] == [TEXT] else ["a record did not come back"]
    wrong: dict[str, dict[str, Any]] = {
        "a wrong password": {"sasl_plain_password": "wrong"},
        "no login": {"security_protocol": "SSL"},
        "no TLS": {"security_protocol": "PLAINTEXT"},
        "another CA": {"ssl_cafile": None},
    }
    return found + [f"{name} is let in" for name, change in wrong.items() if _is_let_in(_security(folder) | change)]


def _security(folder: Path) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD, "ssl_cafile": str(folder / "ca.pem"),
    }  # fmt: skip


def _is_let_in(security: Mapping[str, Any]) -> bool:
    try:
        KafkaAdminClient(bootstrap_servers=ADDRESS, bootstrap_timeout_ms=5000, **security).close()
    except (KafkaError, OSError):
        return False
    return True
