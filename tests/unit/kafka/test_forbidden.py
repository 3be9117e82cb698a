from types import SimpleNamespace

import pytest
from kafka.errors import ClusterAuthorizationFailedError, TopicAuthorizationFailedError

from configs.sections import Kafka
from pipelines.kafka import topics
from pipelines.kafka.broker import BrokerError
from pipelines.kafka.publisher import Publisher


@pytest.mark.parametrize("error", [TopicAuthorizationFailedError, ClusterAuthorizationFailedError])
def test_what_a_user_may_not_do_with_topics_is_named_with_where_the_rights_stand(monkeypatch, error):
    closed = []

    def refused(*_):
        raise error("events")

    admin = SimpleNamespace(list_topics=list, create_topics=refused, close=lambda: closed.append(True))
    monkeypatch.setattr(topics, "connect_client", lambda *_: admin)
    with pytest.raises(BrokerError, match=r"broker:9092 forbids it: .*events.*docs/security\.md"):
        topics.create_topics(Kafka(bootstrap="broker:9092"))
    assert closed == [True]


def test_a_record_that_may_not_be_written_is_not_to_be_sent_again(monkeypatch):
    publisher = object.__new__(Publisher)
    publisher._producer, publisher._address = SimpleNamespace(flush=lambda timeout: None), "broker:9092"
    for failure, remedy in ((TopicAuthorizationFailedError("metrics"), r"docs/security\.md"), (OSError("x"), "again")):
        publisher._failure = failure
        with pytest.raises(BrokerError, match=remedy):
            publisher.flush()
