"""One set of security settings in the words of three clients, and back from Spark's."""

from __future__ import annotations

import ssl
import subprocess
from contextlib import suppress

import pytest

from configs.errors import SettingsError
from configs.settings import load
from pipelines.cli.app import main
from pipelines.kafka.librdkafka import Feed, Sender
from pipelines.kafka.security import java_options, librdkafka_options
from pipelines.kafka.spark import spark_options
from tidecast.connection.security import client_options, translate_spark_options
from tidecast.connection.transport import consumer

LOGIN = {
    "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": 'o"brien',
    "sasl_plain_password": "a\\b;c",
}  # fmt: skip


def test_librdkafka_gets_its_own_words():
    found = librdkafka_options({**LOGIN, "ssl_check_hostname": "false"})
    assert (found["security.protocol"], found["sasl.username"]) == ("SASL_PLAINTEXT", 'o"brien')
    assert found["ssl.endpoint.identification.algorithm"] == "none"


def test_java_gets_its_own_words_and_they_translate_back():
    found = java_options(LOGIN)
    assert found["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="o\\"brien" password="a\\\\b;c";'
    )  # fmt: skip
    assert translate_spark_options({f"kafka.{name}": value for name, value in found.items()}) == LOGIN


def test_spark_is_given_certificates_rather_than_paths(tmp_path):
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    security = {"security_protocol": "SSL", "ssl_cafile": str(tmp_path / "ca.pem"), "ssl_check_hostname": "False"}
    assert spark_options(load(kafka={"bootstrap": "b:1", "security": security}).kafka) == {
        "kafka.bootstrap.servers": "b:1", "kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": "-----BEGIN CERTIFICATE-----",
        "kafka.ssl.endpoint.identification.algorithm": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("security", "words"),
    [
        ({"sasl_oauth_token_provider": "x"}, "sasl_oauth_token_provider: .* no|sasl_oauth_token_provider: not every"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "sasl_mechanism='GSSAPI': one of PLAIN"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}, "='OAUTHBEARER': one of PLAIN"),
        ({"sasl_mechanism": "PLAIN", "sasl_plain_username": "u"}, "sasl_plain_password is missing"),
        ({"ssl_cafile": "/nowhere/ca.pem"}, r"ssl_cafile='/nowhere/ca.pem': .* readable PEM"),
        ({"ssl_check_hostname": "maybe"}, "ssl_check_hostname='maybe': true or false"),
    ],
)
def test_what_no_client_can_follow_is_named(security, words):
    with pytest.raises(SettingsError, match=words):
        java_options(security)


def test_an_old_form_of_key_is_named_with_the_remedy(tmp_path):
    (tmp_path / "key.pem").write_text("-----BEGIN RSA PRIVATE KEY-----")
    with pytest.raises(SettingsError, match="openssl pkcs8"):
        java_options({"ssl_certfile": str(tmp_path / "key.pem"), "ssl_keyfile": str(tmp_path / "key.pem")})


def test_the_fast_path_refuses_before_it_connects():
    with pytest.raises(SettingsError, match="sasl_kerberos_name"):
        Sender(load(kafka={"bootstrap": "b:1", "security": {"sasl_kerberos_name": "x"}}).kafka)


@pytest.mark.parametrize("make", [Sender, lambda kafka: Feed(kafka, "metrics", {}, print)])
@pytest.mark.parametrize(
    ("security", "words"),
    [
        (
            {"security_protocol": "SSL", "ssl_cafile": "/nowhere/ca.pem"},
            r"kafka\.security=.*'/nowhere/ca\.pem'.*ssl\.ca\.location failed",
        ),
        ({"security_protocol": "TLS"}, r"kafka\.security=.*'TLS'}.*security\.protocol"),
    ],
)
def test_a_value_that_librdkafka_refuses_is_named_and_no_broker_blamed(make, security, words):
    security = {**security, "ssl_password": "secret"}
    with pytest.raises(SettingsError, match=words) as refused:
        make(load(kafka={"bootstrap": "127.0.0.1:9", "security": security}).kafka)
    assert "secret" not in str(refused.value)


def test_an_option_that_kafka_python_does_not_have_is_named_before_it_connects():
    with pytest.raises(ValueError, match="no option 'sasl_username'"):
        consumer("b:1", {"sasl_username": "u"})


def test_a_truth_value_may_be_text():
    assert client_options({"ssl_check_hostname": "false"}) == {"ssl_check_hostname": False}
    with pytest.raises(ValueError, match="ssl_check_hostname='no'"):
        client_options({"ssl_check_hostname": "no"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/a.jks"}, "truststore.type=JKS"),
        ({"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "GSSAPI"}, "sasl.jaas.config"),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.keystore.certificate.chain": "x"}, "certificate.chain"),
    ],
)
def test_a_sources_options_that_python_cannot_follow_are_named_with_the_remedy(options, words):
    with pytest.raises(ValueError, match=words) as refused:
        translate_spark_options(options)
    assert "source_security=" in str(refused.value)


def test_a_sources_files_are_used_where_they_are_pem():
    options = {
        "kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/ca.pem", "kafka.ssl.endpoint.identification.algorithm": "",
        "subscribe": "events",
    }  # fmt: skip
    assert translate_spark_options(options) == {
        "security_protocol": "SSL",
        "ssl_cafile": "/ca.pem",
        "ssl_check_hostname": False,
    }
    assert translate_spark_options({"kafka.bootstrap.servers": "b:1"}) == {"security_protocol": "PLAINTEXT"}


def test_the_command_that_switches_a_mode_says_in_one_line_why_it_cannot(monkeypatch, capsys):
    monkeypatch.setattr("tidecast.control.SEND_S", 0.2)
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "127.0.0.1:9")
    monkeypatch.setattr("sys.argv", ["tidecast", "job", "mode", "orders", "act"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2 and said.count("\n") == 0
    assert "127.0.0.1:9" in said and "Check the address" in said


def test_a_client_certificate_beside_an_inline_truststore_is_presented(tmp_path):
    pem, certificate, key = tmp_path / "client.pem", tmp_path / "c.pem", tmp_path / "k.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    pem.write_text(certificate.read_text() + key.read_text())
    options = {
        "kafka.security.protocol": "SSL", "kafka.ssl.truststore.certificates": certificate.read_text(),
        "kafka.ssl.keystore.type": "PEM", "kafka.ssl.keystore.location": str(pem),
    }  # fmt: skip
    client = translate_spark_options(options)["ssl_context"]
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificate))
    server.load_cert_chain(pem)
    server.verify_mode = ssl.CERT_REQUIRED
    ends = [ssl.MemoryBIO(), ssl.MemoryBIO()]
    calling = client.wrap_bio(ends[0], ends[1], server_hostname="localhost")
    answering = server.wrap_bio(ends[1], ends[0], server_side=True)
    for side in (calling, answering, calling, answering):
        with suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert answering.getpeercert()["subject"] == ((("commonName", "localhost"),),)
