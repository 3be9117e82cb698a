"""One set of security settings, in kafka-python's names, for every other Kafka client: librdkafka's and Java's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from configs.errors import SettingsError

_LIBRDKAFKA = {
    "security_protocol": "security.protocol",
    "sasl_mechanism": "sasl.mechanism",
    "sasl_plain_username": "sasl.username",
    "sasl_plain_password": "sasl.password",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
}
KNOWN = (*_LIBRDKAFKA, "ssl_check_hostname")
_COMMON = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_COMMON}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_COMMON}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_COMMON}.scram.ScramLoginModule",
}


def librdkafka_options(security: Mapping[str, str]) -> dict[str, str]:
    """Translate security options from kafka-python's names, which the settings use, to librdkafka's; reads no file.

    Raises:
        SettingsError: an option without a counterpart, or `ssl_check_hostname` is neither true nor false.
    """
    _check(security)
    options = {_LIBRDKAFKA[name]: value for name, value in security.items() if name in _LIBRDKAFKA}
    if "ssl_check_hostname" in security:
        options["ssl.endpoint.identification.algorithm"] = "https" if _by_name(security) else "none"
    return options


def java_options(security: Mapping[str, str]) -> dict[str, str]:
    """Translate security options from kafka-python's names, which the settings use, to those of Kafka's Java clients.

    PEM files are read here; the options hold their text, so Spark's executors need no files. Without `ssl_keyfile`,
    `ssl_certfile` has the key.

    Raises:
        SettingsError: an option without a counterpart, a file that cannot be read, a key that is not PKCS#8, a login
            that is incomplete or none of PLAIN and SCRAM-SHA-256/512, or an `ssl_check_hostname` but true or false.
    """
    _check(security)
    options = {}
    for name in ("security_protocol", "ssl_password"):
        if name in security:
            options[_LIBRDKAFKA[name]] = security[name]
    if mechanism := security.get("sasl_mechanism"):
        options |= {"sasl.mechanism": mechanism, "sasl.jaas.config": _login(mechanism, security)}
    if "ssl_cafile" in security:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": _pem(security, "ssl_cafile")}
    if "ssl_certfile" in security:
        key = _pem(security, "ssl_keyfile" if "ssl_keyfile" in security else "ssl_certfile")
        if "PRIVATE KEY-----" not in key or "RSA PRIVATE KEY" in key or "EC PRIVATE KEY" in key:
            raise SettingsError(
                "kafka.security.ssl_keyfile: Java reads PKCS#8 alone: `openssl pkcs8 -topk8 -in OLD -out NEW`"
            )
        chain = _pem(security, "ssl_certfile")
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    if "ssl_check_hostname" in security:
        options["ssl.endpoint.identification.algorithm"] = "https" if _by_name(security) else ""
    return options


def _check(security: Mapping[str, str]) -> None:
    if unknown := sorted(set(security) - set(KNOWN)):
        raise SettingsError(
            f"kafka.security.{unknown[0]}: not every Kafka client of the pipeline has a counterpart. "
            f"They know {', '.join(KNOWN)}."
        )


def _by_name(security: Mapping[str, str]) -> bool:
    value = security["ssl_check_hostname"]
    if value.lower() not in ("true", "false"):
        raise SettingsError(f"kafka.security.ssl_check_hostname={value!r}: true or false is expected")
    return value.lower() == "true"


def _login(mechanism: str, security: Mapping[str, str]) -> str:
    if mechanism not in _MODULES:
        raise SettingsError(f"kafka.security.sasl_mechanism={mechanism!r}: one of {', '.join(_MODULES)} is expected")
    names = {"username": "sasl_plain_username", "password": "sasl_plain_password"}
    if missing := [name for name in names.values() if name not in security]:
        raise SettingsError(f"kafka.security.{missing[0]} is missing; {mechanism} needs it")
    pairs = {name: security[ours].replace("\\", "\\\\").replace('"', '\\"') for name, ours in names.items()}
    return f"{_MODULES[mechanism]} required " + " ".join(f'{name}="{value}"' for name, value in pairs.items()) + ";"


def _pem(security: Mapping[str, str], name: str) -> str:
    try:
        return Path(security[name]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"kafka.security.{name}={security[name]!r}: {error}. Name a readable PEM file.") from None
