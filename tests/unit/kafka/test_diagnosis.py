"""Why a broker cannot be reached, where the files of its TLS are wrong: the file is named, and not the listener."""

import socket
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tidecast.connection import reach, transport
from tidecast.connection.reach import diagnose


@pytest.fixture
def address():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("ssl_cafile", None, "ssl_cafile='{file}' is not there. Name a readable PEM file."),
        ("ssl_cafile", "a store of Java's", "ssl_cafile='{file}' cannot be read as PEM ("),
        ("ssl_certfile", None, "ssl_certfile='{file}' or its key (ssl_keyfile, ssl_password) is not there."),
        ("ssl_certfile", "no certificate", "ssl_certfile='{file}' or its key (ssl_keyfile, ssl_password) cannot be"),
    ],
)
def test_a_file_that_is_none_is_named_and_the_listener_is_not_blamed(address, tmp_path, protocol, option, text, words):
    file = tmp_path / "some.pem"
    if text is not None:
        file.write_text(text)
    said = str(diagnose(address, {"security_protocol": protocol, option: str(file)}, OSError("no answer")))
    assert words.format(file=file) in said
    assert "PLAINTEXT" not in said and "login" not in said


@pytest.mark.parametrize(("protocol", "words"), [("SASL_SSL", "no TLS there"), ("PLAINTEXT", "is silent")])
def test_the_timeouts_name_a_listener_that_says_nothing_as_soon_as_promised(address, monkeypatch, protocol, words):
    """No wrong certificate, login or listener takes longer: it takes both connections, and the handshake waits."""
    assert transport.CONNECT_MS / 1000 + 2 * reach.STEP_TIMEOUT_S <= 16  # which docs/site.md says
    monkeypatch.setattr(reach, "STEP_TIMEOUT_S", 0.2)
    began_s = time.monotonic()
    said = str(diagnose(address, {"security_protocol": protocol}, OSError("no answer")))
    assert words in said and time.monotonic() - began_s < 2.0


def test_a_broker_that_is_away_does_not_pass_for_one_without_tls(address, tmp_path):
    """The other one speaks TLS: the login is at fault, and nobody is told to give up TLS."""
    certificate, key = tmp_path / "broker.pem", tmp_path / "key.pem"
    made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-out", str(certificate)]
    subprocess.run(["openssl", "req", *made, "-keyout", str(key)], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with socket.create_server(("127.0.0.1", 0)) as away:
        closed = f"127.0.0.1:{away.getsockname()[1]}"
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:

        def answer():
            while True:  # the port is tried before
                taken, _ = listener.accept()
                with taken, context.wrap_socket(taken, server_side=True, do_handshake_on_connect=False) as spoken:
                    try:
                        return spoken.do_handshake()
                    except OSError:
                        continue

        answered, there = pool.submit(answer), f"127.0.0.1:{listener.getsockname()[1]}"
        security = {"security_protocol": "SASL_SSL", "ssl_cafile": str(certificate), "ssl_check_hostname": False}
        said = str(diagnose(f"{closed},{there}", security, OSError("no answer")))
        answered.result(30)
    assert "login" in said and "PLAINTEXT" not in said
