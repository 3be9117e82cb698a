"""Certificates for a broker on the loopback, of a CA that exists for nothing else."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from pipelines.stack.ports import HOST


def write_certificates(folder: Path) -> None:
    """Write `ca.pem` and `broker.pem` (key and certificates) into a folder, which is made.

    The CA exists for nothing else. The broker's certificate is for 127.0.0.1; both hold for two days.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = _certificate("Tidecast's test CA", ca_key, "Tidecast's test CA", ca_key, own=True)
    broker = _certificate("broker", key, "Tidecast's test CA", ca_key, own=False)
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "ca.pem").write_bytes(ca.public_bytes(pem))
    (folder / "broker.pem").write_bytes(secret + broker.public_bytes(pem) + ca.public_bytes(pem))


def _certificate(name: str, key: Any, issuer: str, issuer_key: Any, own: bool) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, n)]) for n in (name, issuer)]
    made = (
        x509.CertificateBuilder()
        .subject_name(names[0])
        .issuer_name(names[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=own, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
    )
    return made.sign(issuer_key, hashes.SHA256())
