"""Kafka's security options under kafka-python's names: made ready for its clients, and read back from a Spark query."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from typing import Any

_PREFIX = "kafka."
_FILES = {"ssl.truststore.location": "ssl_cafile", "ssl.keystore.location": "ssl_certfile"}
_LOGINS = ("PlainLoginModule", "ScramLoginModule")
_PAIR = re.compile(r'(\w+)\s*=\s*"((?:[^"\\]|\\.)*)"')
_REMEDY = "Give attach(..., source_security={...}) with kafka-python's options of the query's own broker."


def client_options(security: Mapping[str, Any]) -> dict[str, Any]:
    """Copy kafka-python's options, with `ssl_check_hostname` as a bool where it is given as text.

    Raises:
        ValueError: `ssl_check_hostname` is neither true nor false.
    """
    options = dict(security)
    if (said := str(options.get("ssl_check_hostname", "true")).lower()) not in ("true", "false"):
        raise ValueError(f"ssl_check_hostname={options['ssl_check_hostname']!r}: true or false is expected")
    if "ssl_check_hostname" in options:
        options["ssl_check_hostname"] = said == "true"
    return options


def from_spark(options: Mapping[str, str]) -> dict[str, Any]:
    """Translate the security options of a Spark Kafka source (`kafka.*`) into kafka-python's.

    Args:
        options: the source's options, keys in lower case; others than `kafka.*` are ignored.

    Returns:
        `security_protocol`, and as far as they apply `sasl_mechanism`, `sasl_plain_username`, `sasl_plain_password`,
        `ssl_cafile`, `ssl_certfile`, `ssl_password`, `ssl_check_hostname`, or a ready `ssl_context`.

    Raises:
        ValueError: no counterpart: a login other than PLAIN or SCRAM, a store that is no PEM, an inline client
            certificate. The message names option and remedy.
        ssl.SSLError: `kafka.ssl.truststore.certificates` is no valid PEM.
    """
    java = {key.removeprefix(_PREFIX): value for key, value in options.items() if key.startswith(_PREFIX)}
    found: dict[str, Any] = {"security_protocol": java.get("security.protocol", "PLAINTEXT")}
    if found["security_protocol"].startswith("SASL"):
        found |= {"sasl_mechanism": java.get("sasl.mechanism", "GSSAPI"), **_login(java.get("sasl.jaas.config", ""))}
    if not found["security_protocol"].endswith("SSL"):
        return found
    checked = java.get("ssl.endpoint.identification.algorithm", "https") != ""
    if "ssl.keystore.certificate.chain" in java:
        raise ValueError(
            f"kafka.ssl.keystore.certificate.chain: Python reads a client's certificate from files. {_REMEDY}"
        )
    if pem := java.get("ssl.truststore.certificates"):
        found["ssl_context"] = context = ssl.create_default_context(cadata=pem)
        context.check_hostname = checked
        return found
    for name, ours in _FILES.items():
        if name not in java:
            continue
        kind = name.replace("location", "type")
        if java.get(kind, "JKS").upper() != "PEM":
            raise ValueError(f"kafka.{kind}={java.get(kind, 'JKS')}: Python reads PEM only. {_REMEDY}")
        found[ours] = java[name]
    if "ssl_certfile" in found:
        found["ssl_password"] = java.get("ssl.key.password")
    return found | {"ssl_check_hostname": checked}


def _login(jaas: str) -> dict[str, str]:
    pairs = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _PAIR.findall(jaas)}
    if not any(login in jaas for login in _LOGINS) or not {"username", "password"} <= pairs.keys():
        raise ValueError(
            f"kafka.sasl.jaas.config: a user and password of {' or '.join(_LOGINS)} are expected. {_REMEDY}"
        )
    return {"sasl_plain_username": pairs["username"], "sasl_plain_password": pairs["password"]}
