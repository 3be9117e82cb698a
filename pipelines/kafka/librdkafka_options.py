"""The broker's address and security as librdkafka wants them, from the settings that every other client reads."""

from __future__ import annotations

from typing import Any

from configs.sections import Kafka
from pipelines.kafka.broker import BrokerError

_NAMES = {
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
    "ssl_ciphers": "ssl.cipher.suites",
}
"""kafka-python's options, in which `kafka.security` is written, in librdkafka's words."""
_COMMON: dict[str, Any] = {
    "reconnect.backoff.ms": 100,
    "reconnect.backoff.max.ms": 1000,
    "socket.nagle.disable": True,
    "log_level": 2,  # refused connections are said many times a second; an outage shows in what does not come
}


def options(kafka: Kafka) -> dict[str, Any]:
    """The connection as librdkafka's options.

    Raises:
        BrokerError: no address, or a security option without a counterpart.
    """
    if not kafka.bootstrap:
        raise BrokerError("kafka.bootstrap is not set and no stack is running. `make up` starts one.")
    secured: dict[str, Any] = {}
    for name, value in kafka.security.items():
        if name == "ssl_check_hostname":
            secured["ssl.endpoint.identification.algorithm"] = "https" if value.lower() == "true" else "none"
        elif name in _NAMES:
            secured[_NAMES[name]] = value
        else:
            known = ", ".join((*_NAMES, "ssl_check_hostname"))
            raise BrokerError(f"kafka.security.{name}: the fast path has no counterpart. It knows {known}.")
    return {"bootstrap.servers": kafka.bootstrap, **_COMMON, **secured}
