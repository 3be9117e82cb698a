"""An embedded broker behind TLS with a CA of its own, where a user and a password are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from configs.settings import Settings, load
from pipelines.bench.site.certificates import write_certificates
from pipelines.stack.ports import HOST
from pipelines.stack.services import kafka
from pipelines.stack.stack import Stack

USER, PASSWORD = "tidecast", 'it"s \\ secret'
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@contextmanager
def secure_broker(folder: Path, monkeypatch: pytest.MonkeyPatch, parts: frozenset[str] = frozenset()) -> Iterator[Any]:
    """A stack whose broker speaks SASL_SSL alone (PLAIN and SCRAM-SHA-256), and settings that can use it.

    Yields `(stack, settings)`; the CA's certificate is `folder/ca.pem`.
    """
    write_certificates(folder)
    plain = kafka._properties
    monkeypatch.setattr(kafka, "_properties", lambda place, data: plain(place, data) + _secured(place, folder))
    with Stack(load(var=folder / "var"), {"broker"} | parts) as stack:
        monkeypatch.setattr(kafka, "_properties", plain)
        yield stack, with_login(stack.settings, folder)


def with_login(settings: Settings, folder: Path, **changes: str) -> Settings:
    """The settings with the user's login; `changes` are to options of kafka-python."""
    security = {
        "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": USER,
        "sasl_plain_password": PASSWORD, "ssl_cafile": str(folder / "ca.pem"), **changes,
    }  # fmt: skip
    return settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"security": security})})


def _secured(place: Any, folder: Path) -> str:
    # Java's properties file takes a backslash for an escape, and the login string in it does so again.
    password = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
    listeners = f"SASL_SSL://{HOST}:{place.ports['broker']},CONTROLLER://{HOST}:{place.ports['controller']}"
    login = f'{_PLAIN} required username="broker" password="b" user_broker="b" user_{USER}="{password}";'
    lines = {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "inter.broker.listener.name": "SASL_SSL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": login,
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{_SCRAM} required;",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "broker.pem",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": folder / "ca.pem",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())
