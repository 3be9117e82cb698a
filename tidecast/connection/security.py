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
    """Return a copy of kafka-python's security options in which `ssl_check_hostname`, if given, is a bool, not text.

    Raises:
        ValueError: `ssl_check_hostname` is neither true nor false.
    """
    options = dict(security)
    if "ssl_check_hostname" in options:
        text = str(options["ssl_check_hostname"]).lower()
        if text not in ("true", "false"):
            raise ValueError(f"ssl_check_hostname={options['ssl_check_hostname']!r}: true or false is expected")
        options["ssl_check_hostname"] = text == "true"
    return options


def translate_spark_options(options: Mapping[str, str]) -> dict[str, Any]:
    """Translate the security options of a Spark Kafka source (`kafka.*`) into kafka-python's.

    Args:
        options: the source's options, keys in lower case; others than `kafka.*` are ignored.

    Returns:
        `security_protocol`, and as far as they apply `sasl_mechanism`, `sasl_plain_username`, `sasl_plain_password`,
        and either `ssl_cafile`, `ssl_certfile`, `ssl_password` and `ssl_check_hostname`, or, for an inline truststore,
        an `ssl_context` that holds all of these.

    Raises:
        ValueError: no counterpart: a login other than PLAIN or SCRAM, a store that is no PEM, an inline client
            certificate. The message names option and remedy.
        OSError: with an inline truststore, that or the client's certificate is no valid PEM (ssl.SSLError), or the
            certificate's file cannot be read.
    """
    java = {key.removeprefix(_PREFIX): value for key, value in options.items() if key.startswith(_PREFIX)}
    translated: dict[str, Any] = {"security_protocol": java.get("security.protocol", "PLAINTEXT")}
    if translated["security_protocol"].startswith("SASL"):
        login = _login(java.get("sasl.jaas.config", ""))
        translated |= {"sasl_mechanism": java.get("sasl.mechanism", "GSSAPI"), **login}
    if not translated["security_protocol"].endswith("SSL"):
        return translated
    if "ssl.keystore.certificate.chain" in java:
        raise ValueError(
            f"kafka.ssl.keystore.certificate.chain: Python reads a client's certificate from files. {_REMEDY}"
        )
    check_hostname = java.get("ssl.endpoint.identification.algorithm", "https") != ""
    files, password = _pem_files(java), java.get("ssl.key.password")
    if certificates := java.get("ssl.truststore.certificates"):
        context = ssl.create_default_context(cadata=certificates)
        context.check_hostname = check_hostname
        if "ssl_certfile" in files:
            context.load_cert_chain(files["ssl_certfile"], password=password)
        return translated | {"ssl_context": context}
    if "ssl_certfile" in files:
        translated["ssl_password"] = password
    return translated | files | {"ssl_check_hostname": check_hostname}


def _pem_files(java: Mapping[str, str]) -> dict[str, str]:
    files = {}
    for location, option in _FILES.items():
        if location not in java:
            continue
        kind = location.replace("location", "type")
        if java.get(kind, "JKS").upper() != "PEM":
            raise ValueError(f"kafka.{kind}={java.get(kind, 'JKS')}: Python reads PEM only. {_REMEDY}")
        files[option] = java[location]
    return files


def _login(jaas: str) -> dict[str, str]:
    pairs = {name: re.sub(r"\\(.)", r"\1", value) for name, value in _PAIR.findall(jaas)}
    if not any(login in jaas for login in _LOGINS) or not {"username", "password"} <= pairs.keys():
        raise ValueError(
            f"kafka.sasl.jaas.config: a user and password of {' or '.join(_LOGINS)} are expected. {_REMEDY}"
        )
    return {"sasl_plain_username": pairs["username"], "sasl_plain_password": pairs["password"]}
