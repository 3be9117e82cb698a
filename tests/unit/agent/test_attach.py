"""What `attach` reads from a query's plan before it connects anywhere."""

from __future__ import annotations

import pytest

from tidecast import attach
from tidecast.connection.environment import ADDRESS, SIGNING_KEY
from tidecast.spark.source import choose_brokers, kafka_sources, subscribed_topics

LOGIN = {
    "kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN",
    "kafka.sasl.jaas.config": 'org.PlainLoginModule required username="u" password="p";',
}  # fmt: skip
TRANSLATED = {
    "security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN", "sasl_plain_username": "u", "sasl_plain_password": "p",
    "ssl_check_hostname": True,
}  # fmt: skip


class Plan:
    """A cluster's view of a query with these sources."""

    def __init__(self, *options):
        self.options = list(options)

    def kafka_source_options(self):
        return self.options


def source(broker, topic, **options):
    return {"kafka.bootstrap.servers": broker, "subscribe": topic, **options}


@pytest.mark.parametrize(
    ("address", "security", "own", "source_security", "ours", "read"),
    [
        ("s:1", None, "s:1", None, TRANSLATED, TRANSLATED),  # one broker, and the query knows how to log in
        ("s:1", {"a": 1}, "s:1", None, {"a": 1}, {"a": 1}),
        ("t:1", {"a": 1}, "s:1", None, {"a": 1}, TRANSLATED),
        ("t:1", None, "s:1", None, {}, TRANSLATED),  # a password is never sent to another broker
        ("t:1", {"a": 1}, "s:1", {"b": 2}, {"a": 1}, {"b": 2}),
    ],
)
def test_each_broker_gets_its_own_options(address, security, own, source_security, ours, read):
    found = choose_brokers(address, security, own, source_security, [source("s:1", "events", **LOGIN)])
    assert found == ((address, ours), (own, read))


def test_options_that_python_cannot_follow_are_named_and_nothing_fails(caplog):
    strange = source("s:1", "events", **{"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/a.jks"})
    assert choose_brokers("t:1", {}, "s:1", None, [strange]) == (("t:1", {}), ("s:1", {}))
    assert "truststore.type=JKS" in caplog.text and "source_security=" in caplog.text


def test_of_several_brokers_the_first_is_measured_and_the_rest_named(caplog):
    found = kafka_sources(Plan(source("s:1", "a"), source("s:2", "b"), source("s:1", "c, a")))
    assert subscribed_topics(found) == ["a", "c"]
    assert "several brokers" in caplog.text and "s:1" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"cores_per_executor": 0}, "cores_per_executor=0: 1 or more"),
        ({"cores_per_executor": -2}, "cores_per_executor=-2: 1 or more"),
        ({"executors": (0, 4)}, "executors="),
        ({"executors": (3, 2)}, "executors="),
        ({"lost_contact_s": 0.0}, "lost_contact_s="),
        ({"mode": "watch"}, "mode='watch': one of"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused_before_the_query_is_looked_at(wrong, words):
    with pytest.raises(ValueError, match=words):
        attach(None, "orders", **wrong)


@pytest.mark.parametrize("address", [None, ""])
def test_where_neither_the_query_nor_the_environment_names_a_broker_the_remedy_is_told(monkeypatch, address):
    monkeypatch.setattr("tidecast.agent.Cluster", lambda query: Plan())
    monkeypatch.delenv(SIGNING_KEY, raising=False)
    monkeypatch.delenv(ADDRESS, raising=False)
    if address is not None:
        monkeypatch.setenv(ADDRESS, address)
    with pytest.raises(ValueError, match=rf"^no broker known for job 'orders': give attach\(.*bootstrap=.*{ADDRESS}$"):
        attach(None, "orders")
