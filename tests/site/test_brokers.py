"""Three brokers with ACLs: who may what, as our clients are told."""

import pytest
from kafka.admin import ACLOperation
from kafka.errors import KafkaError

from configs.sections import Kafka
from pipelines.bench.site.brokers import ADMIN, Brokers
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Brokers(tmp_path_factory.mktemp("brokers")) as started:
        yield started


def test_the_rule_of_the_docs_is_enough_to_make_topics_and_to_look_at_them(cluster):
    ours = Kafka(**cluster.section())
    create_topics(ours)
    assert topic_offsets(ours, "metrics")


def test_a_user_without_rights_is_told_so(cluster):
    admin = Kafka(**cluster.section(ADMIN, "PLAIN") | {"prefix": "other."})
    create_topics(admin)
    assert topic_offsets(admin, "metrics")
    stranger = Kafka(**cluster.section() | {"prefix": "other."})
    with pytest.raises(BrokerError, match=r"this user may not see it.*docs/security\.md"):
        topic_offsets(stranger, "metrics")
    with pytest.raises(BrokerError, match=r"forbids it(.|\n)*docs/security\.md"):
        create_topics(Kafka(**cluster.section() | {"prefix": "third."}))


def test_one_topic_that_is_forbidden_is_named(cluster):
    """Of ours all but one may be written."""
    own = Kafka(**cluster.section())
    create_topics(own)
    cluster.forbid("tidecast.decisions", ACLOperation.WRITE)
    publisher = Publisher(own)
    publisher.send_bytes("metrics", b"orders", b"{}")
    publisher.flush(30)
    publisher.send_bytes("decisions", b"orders", b"{}")
    with pytest.raises(BrokerError, match=r"tidecast\.decisions(.|\n)*docs/security\.md"):
        publisher.flush(30)


def test_a_wrong_password_is_told_so(cluster):
    section = cluster.section()
    section["security"] = section["security"] | {"sasl_plain_password": "wrong"}
    with pytest.raises((BrokerError, KafkaError), match="the login did not succeed"):
        create_topics(Kafka(**section))
