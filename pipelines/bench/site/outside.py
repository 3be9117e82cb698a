"""The listener of `docker/outside.yaml`: what a client on the host finds behind it, with TLS and a login."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from configs.sections import Kafka
from configs.settings import ROOT
from pipelines.bench.site.certificates import write_certificates
from pipelines.kafka.broker import read_records, topic_offsets
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topic
from pipelines.stack.ports import HOST

FILE = ROOT / "docker" / "outside.yaml"
USER, PASSWORD, ADDRESS = "jobs", "plantedoutsidepassword", f"{HOST}:9094"
TOPIC, TEXT = "from-outside", b"{}"
OTHER = "another"
"""Folder of a CA that has not signed the broker's certificate."""


def told(folder: Path) -> dict[str, str]:
    """Write a CA and a broker's certificate into a folder, which is made; return what the file asks of `docker/.env`.

    Raises:
        OSError: the folder cannot be written.
    """
    write_certificates(folder)
    write_certificates(folder / OTHER)
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
        BrokerError, kafka.errors.KafkaError: it does not answer, or takes no record.
    """
    right = Kafka(bootstrap=ADDRESS, security=_security(folder), event_partitions=1)
    create_topic(right, TOPIC)
    publisher = Publisher(right)
    publisher.send_bytes(TOPIC, b"key", TEXT)
    publisher.close()
    found = [] if [one.value for one in read_records(right, TOPIC)] == [TEXT] else ["a record did not come back"]
    wrong: dict[str, dict[str, Any]] = {
        "a wrong password": {"sasl_plain_password": "wrong"},
        "no login": {"security_protocol": "SSL"},
        "no TLS": {"security_protocol": "PLAINTEXT"},
        "another CA": {"ssl_cafile": str(folder / OTHER / "ca.pem")},
    }
    tried = {name: Kafka(bootstrap=ADDRESS, security=_security(folder) | more) for name, more in wrong.items()}
    return found + [f"{name} is let in" for name, kafka in tried.items() if _is_let_in(kafka)]


def _security(folder: Path) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD, "ssl_cafile": str(folder / "ca.pem"),
    }  # fmt: skip


def _is_let_in(kafka: Kafka) -> bool:
    try:
        topic_offsets(kafka, TOPIC)
    except BrokerError:
        return False
    return True
