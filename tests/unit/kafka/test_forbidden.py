from types import SimpleNamespace

import pytest
from kafka import KafkaConsumer, KafkaProducer, errors
from kafka.net.compat import KafkaNetClient

from configs.errors import SettingsError
from configs.sections import Kafka
from pipelines.kafka import broker, topics
from pipelines.kafka.broker import Follower, read_records
from pipelines.kafka.connection import BrokerError, TopicError, connect_client
from pipelines.kafka.publisher import Publisher
from pipelines.scale.other_autoscaler import refuse_another
from tests.unit.kafka.test_read_all import Broker
from tidecast.connection.reach import UnreachableError
from tidecast.connection.transport import TOPICS, consumer, producer

HERE = Kafka(bootstrap="broker:9092", replication=3)


class Forbidden(Broker):
    """A broker that tells where its topics end, and lets nobody read them."""

    def seek_to_end(self, *partitions): ...

    seek_to_beginning = seek_to_end

    def assign(self, partitions):
        self.partitions = partitions

    def assignment(self):
        return self.partitions

    def offsets_for_times(self, times):
        return {}

    def poll(self, timeout_ms):
        raise errors.TopicAuthorizationFailedError({"heartbeats"})


@pytest.mark.parametrize(
    "read",
    [
        lambda: list(read_records(HERE, "heartbeats")),
        lambda: Follower(HERE, ["heartbeats"]).poll(0.0),
        lambda: refuse_another(HERE, 0.1),
    ],
)
def test_a_topic_that_may_not_be_read_is_named_with_where_the_rights_stand(monkeypatch, read):
    monkeypatch.setattr(broker, "connect_client", lambda make, kafka, **_: Forbidden(1, 1))
    with pytest.raises(BrokerError, match=r"broker:9092 forbids it: .*heartbeats.*docs/security\.md"):
        read()


def answer(monkeypatch, error, said=None):
    """Let an administrator's client answer with an error for each topic, or raise it where nothing is said."""
    closed = []

    def create(wanted, raise_errors):
        if said is None:
            raise error
        return {"topics": [{"name": t.name, "error_code": error.errno, "error_message": said} for t in wanted]}

    admin = SimpleNamespace(list_topics=list, create_topics=create, close=lambda: closed.append(True))
    monkeypatch.setattr(topics, "connect_client", lambda *_: admin)
    return closed


@pytest.mark.parametrize("error", [errors.TopicAuthorizationFailedError, errors.ClusterAuthorizationFailedError])
def test_what_a_user_may_not_do_with_topics_is_named_with_where_the_rights_stand(monkeypatch, error):
    closed = answer(monkeypatch, error, "denied")
    with pytest.raises(BrokerError, match=r"broker:9092 forbids it: .*events.*docs/security\.md"):
        topics.create_topics(HERE)
    assert closed == [True]


@pytest.mark.parametrize(
    ("error", "said", "words"),
    [
        (errors.InvalidReplicationFactorError, "1 broker.", r"^kafka\.replication=3: .*events: 1 broker.*brokers at"),
        (errors.PolicyViolationError, "No.", r"replication=3, kafka\.event_partitions=12, .*events: No\. Set them to"),
        (errors.InvalidTopicError, "It collides.", r"^kafka\.prefix='': .*events: It collides\. Choose .*'\.' and '_'"),
        (errors.KafkaTimeoutError("late"), None, "broker:9092 does not answer: .*late.*start again"),
        (errors.NotControllerError("moved"), None, "broker:9092 does not do it: .*moved.*start again"),
    ],
)
def test_why_a_broker_does_not_create_topics_is_told_with_the_setting(monkeypatch, error, said, words):
    closed = answer(monkeypatch, error, said)
    with pytest.raises(BrokerError, match=words):
        topics.create_topics(HERE)
    assert closed == [True]


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ({"security": {"sasl_username": "u"}}, r"^kafka\.security\.sasl_username: kafka-python has no option"),
        ({"security": {"ssl_check_hostname": "no"}}, r"^kafka\.security\.ssl_check_hostname: .*true or false"),
    ],
)
def test_a_wrong_option_of_the_settings_is_named_as_they_name_it(section, words):
    with pytest.raises(SettingsError, match=words):
        connect_client(consumer, Kafka(bootstrap="broker:9092", **section))


def test_a_record_that_may_not_be_written_is_not_to_be_sent_again(monkeypatch):
    publisher = object.__new__(Publisher)
    publisher._producer, publisher._address = SimpleNamespace(flush=lambda timeout: None), "broker:9092"
    forbidden = errors.TopicAuthorizationFailedError("metrics")
    for failure, remedy in ((forbidden, r"docs/security\.md"), (OSError("x"), "again")):
        publisher._failure = failure
        with pytest.raises(BrokerError, match=remedy):
            publisher.flush()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.UnknownTopicOrPartitionError, r"topic 'site\.results' does not exist on the broker.*docs/security\.md"),
        (errors.TopicAuthorizationFailedError, r"broker:9092 forbids it: .*site\.results.*docs/security\.md"),
    ],
)
def test_a_topic_that_is_not_there_has_no_id(monkeypatch, error, words):
    said = {"error_code": error.errno, "topic_id": "00000000-0000-0000-0000-000000000000"}
    admin = SimpleNamespace(describe_topics=lambda names: [said], close=list)
    monkeypatch.setattr(topics, "connect_client", lambda *_: admin)
    with pytest.raises(TopicError, match=words):
        topics.topic_id(HERE.model_copy(update={"prefix": "site."}), "results")


def kept_as(monkeypatch, **policies):
    """A broker that has all topics, and tells the policies of some; of the others this user may not ask."""
    told = {name: {"cleanup.policy": {"value": policy}} for name, policy in policies.items()}
    admin = SimpleNamespace(
        list_topics=lambda: list(TOPICS),
        describe_configs=lambda asked, config_filter: {"topic": {one.name: told.get(one.name, {}) for one in asked}},
        close=list,
    )
    monkeypatch.setattr(topics, "connect_client", lambda *_: admin)


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_of_modes_that_drops_them_after_a_while_is_named_with_what_helps(monkeypatch, capsys, policy):
    kept_as(monkeypatch, control=policy, contracts="compact", results="delete")
    topics.create_topics(HERE)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"topic control: cleanup.policy={policy} drops")
    assert "--bootstrap-server broker:9092 --entity-type topics --entity-name control --alter" in line
    assert line.endswith("--add-config cleanup.policy=compact")


def test_of_topics_that_keep_every_key_or_of_which_nobody_may_ask_nothing_is_said(monkeypatch, capsys):
    for policies in ({"control": "compact", "contracts": "compact"}, {}):
        kept_as(monkeypatch, **policies)
        topics.create_topics(HERE)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("make", [producer, consumer])
def test_no_client_has_a_broker_create_a_topic_with_its_defaults_by_asking_for_it(monkeypatch, make):
    asking = []

    class Noted(KafkaNetClient):
        def __init__(self, **configs):
            super().__init__(**configs)
            asking.append(self)

    for kind in (KafkaProducer, KafkaConsumer):
        monkeypatch.setitem(kind.DEFAULT_CONFIG, "kafka_client", Noted)
    with pytest.raises(UnreachableError):
        make("127.0.0.1:1", bootstrap_timeout_ms=50)
    assert asking[-1].cluster.metadata_request().allow_auto_topic_creation is False


def test_topics_that_no_broker_leads_are_told_with_a_remedy(monkeypatch):
    answer(monkeypatch, errors.NoError, "")
    admin = topics.connect_client()
    admin.describe_topics = lambda names: [{"error_code": 0, "partitions": []} for _ in names]
    monkeypatch.setattr(topics, "_KNOWN_S", 0)
    with pytest.raises(BrokerError, match=r"topics events, .*no broker leads.*See that all brokers run"):
        topics.create_topics(HERE)
