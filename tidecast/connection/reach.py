"""Diagnosis of a broker that does not answer, step by step: address, port, TLS, login."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

STEP_TIMEOUT_S = 3.0  # timeout of each step, seconds


class UnreachableError(ConnectionError):
    """The broker did not answer; the message names its address, what failed, and the remedy."""


def diagnose(bootstrap: str, security: Mapping[str, Any], error: BaseException) -> UnreachableError:
    """Find out why a Kafka client could not connect, and return (not raise) an error that says why, with the remedy.

    Tries a TCP connection to each address until one opens (3 s each), then a TLS handshake with that one (3 s); where
    both go as `security` says, the login or the kind of listener is named.

    Args:
        bootstrap: `host:port`, several separated by commas.
        security: client options under kafka-python's names.
        error: what the client raised; quoted where no better reason is found.

    Raises:
        ValueError: the first of several addresses has no port number, while another can be reached.
    """
    protocol = str(security.get("security_protocol", "PLAINTEXT"))
    fault = connection_fault(bootstrap)
    if not fault:
        fault = _tls_fault(bootstrap, security) if protocol.endswith("SSL") else _plain_fault(bootstrap, protocol)
    if not fault and protocol.startswith("SASL"):
        names = "sasl_mechanism, sasl_plain_username and sasl_plain_password"
        fault = f"the login did not succeed ({error}). Check {names}."
    if not fault:
        login = "Does its listener want a login (security_protocol=SASL_...)?"
        fault = f"it closes the connection or is silent ({error}). {login}"
    return UnreachableError(f"no Kafka broker for us at {bootstrap}: {fault}")


def connection_fault(bootstrap: str) -> str:
    """Return "" if a TCP connection to one of the comma-separated `host:port` opens, else why none does; 3 s each."""
    refusals = []
    for place in bootstrap.split(","):
        try:
            _connected(place).close()
            return ""
        except (OSError, ValueError) as error:
            refusals.append(f"{place}: {error}")
    return f"no connection ({'; '.join(refusals)}). Check the address, and that the broker runs."


def _tls_fault(bootstrap: str, security: Mapping[str, Any]) -> str:
    context = security.get("ssl_context")
    if context is None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if fault := _load_files(context, security):
            return fault
        context.check_hostname = bool(security.get("ssl_check_hostname", True))
    try:
        _handshake(bootstrap, context)
    except ssl.SSLCertVerificationError as error:
        return (
            f"its certificate is not accepted ({error.verify_message}). Name the file of the CA that signed it as "
            "ssl_cafile, and the broker by a name that its certificate holds."
        )
    except OSError as error:
        return (
            f"no TLS there ({error}). security_protocol={security.get('security_protocol')}: use PLAINTEXT or "
            "SASL_PLAINTEXT, or the port of its TLS listener."
        )
    return ""


def _load_files(context: ssl.SSLContext, security: Mapping[str, Any]) -> str:
    """Load the CA and the client's certificate as kafka-python does; return why one of them cannot be, else ""."""
    key = security.get("ssl_keyfile"), security.get("ssl_password") or ""  # without any it would be asked for
    loads: dict[str, Callable[[str], None]] = {
        "ssl_cafile": context.load_verify_locations,
        "ssl_certfile": lambda file: context.load_cert_chain(file, *key),
    }
    for option, load in loads.items():
        if file := security.get(option):
            try:
                load(file)
            except OSError as error:
                its = " or its key (ssl_keyfile, ssl_password)" if option == "ssl_certfile" else ""
                lacks = "is not there" if isinstance(error, FileNotFoundError) else f"cannot be read as PEM ({error})"
                return f"{option}={file!r}{its} {lacks}. Name a readable PEM file."
    if not security.get("ssl_cafile"):
        context.load_default_certs()
    return ""


def _plain_fault(bootstrap: str, protocol: str) -> str:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # only to see whether it speaks TLS
    try:
        _handshake(bootstrap, context)
    except OSError:
        return ""
    return f"it speaks TLS, and security_protocol is {protocol}. Give SSL or SASL_SSL, and ssl_cafile for a private CA."


def _handshake(bootstrap: str, context: ssl.SSLContext) -> None:
    raw, place = _first_connected(bootstrap)
    with raw:
        context.wrap_socket(raw, server_hostname=place.rpartition(":")[0]).close()


def _first_connected(bootstrap: str) -> tuple[socket.socket, str]:
    """A connection to the first broker that takes one, and its address: another may just be away."""
    *others, last = bootstrap.split(",")
    for place in others:
        with suppress(OSError):
            return _connected(place), place
    return _connected(last), last


def _connected(place: str) -> socket.socket:
    host, _, port = place.strip().rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), STEP_TIMEOUT_S)
