"""One set of security settings in the words of three clients, and back from Spark's."""

from __future__ import annotations

import pytest

from configs.errors import SettingsError
from configs.settings import load
from pipelines.cli.app import main
from pipelines.kafka.broker import spark_options
from pipelines.kafka.librdkafka import Sender
from pipelines.kafka.security import java, librdkafka
from tidecast.connection.security import client_options, from_spark
from tidecast.connection.transport import consumer

LOGIN = {
    "security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": 'o"brien',
    "sasl_plain_password": "a\\b;c",
}  # fmt: skip


def test_librdkafka_gets_its_own_words():
    found = librdkafka({**LOGIN, "ssl_check_hostname": "false"})
    assert (found["security.protocol"], found["sasl.username"]) == ("SASL_PLAINTEXT", 'o"brien')
    assert found["ssl.endpoint.identification.algorithm"] == "none"


def test_java_gets_its_own_words_and_they_translate_back():
    found = java(LOGIN)
    assert found["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="o\\"brien" password="a\\\\b;c";'
    )  # fmt: skip
    assert from_spark({f"kafka.{name}": value for name, value in found.items()}) == LOGIN


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
        ({"sasl_mechanism": "PLAIN", "sasl_plain_username": "u"}, "sasl_plain_password is missing"),
        ({"ssl_cafile": "/nowhere/ca.pem"}, r"ssl_cafile='/nowhere/ca.pem': .* readable PEM"),
        ({"ssl_check_hostname": "maybe"}, "ssl_check_hostname='maybe': true or false"),
    ],
)
def test_what_no_client_can_follow_is_named(security, words):
    with pytest.raises(SettingsError, match=words):
        java(security)


def test_an_old_form_of_key_is_named_with_the_remedy(tmp_path):
    (tmp_path / "key.pem").write_text("-----BEGIN RSA PRIVATE KEY-----")
    with pytest.raises(SettingsError, match="openssl pkcs8"):
        java({"ssl_certfile": str(tmp_path / "key.pem"), "ssl_keyfile": str(tmp_path / "key.pem")})


def test_the_fast_path_refuses_before_it_connects():
    with pytest.raises(SettingsError, match="sasl_kerberos_name"):
        Sender(load(kafka={"bootstrap": "b:1", "security": {"sasl_kerberos_name": "x"}}).kafka)


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
        from_spark(options)
    assert "source_security=" in str(refused.value)


def test_a_sources_files_are_used_where_they_are_pem():
    options = {
        "kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": "/ca.pem", "kafka.ssl.endpoint.identification.algorithm": "",
        "subscribe": "events",
    }  # fmt: skip
    assert from_spark(options) == {"security_protocol": "SSL", "ssl_cafile": "/ca.pem", "ssl_check_hostname": False}
    assert from_spark({"kafka.bootstrap.servers": "b:1"}) == {"security_protocol": "PLAINTEXT"}


def test_the_command_that_switches_a_mode_says_in_one_line_why_it_cannot(monkeypatch, capsys):
    monkeypatch.setattr("tidecast.control.SEND_S", 0.2)
    monkeypatch.setenv("TIDECAST_KAFKA__BOOTSTRAP", "127.0.0.1:9")
    monkeypatch.setattr("sys.argv", ["tidecast", "job", "mode", "orders", "act"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err.strip()
    assert ended.value.code == 2 and said.count("\n") == 0
    assert "127.0.0.1:9" in said and "Check the address" in said
