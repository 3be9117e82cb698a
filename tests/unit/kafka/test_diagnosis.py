"""Why a broker cannot be reached, where the files of its TLS are wrong: the file is named, and not the listener."""

import socket

import pytest

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
