"""Time ranges of a topic as offsets, on a real broker whose records are stamped by hand."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from pipelines.backfill.asked import RangeError, TimeRange
from pipelines.backfill.held import CopiedPartition, HeldTopic, check_copied
from pipelines.backfill.ranges import find_offsets
from pipelines.backfill.tables import find_range
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topic, retention_s
from tests.fakes.waiting import wait_until
from tidecast.control import Clock

pytestmark = pytest.mark.integration

DAY, NOW = 1_700_000_000.0, 1_700_100_000.0
JUMPED = "jumped"
KEPT_H = 200_000.0
"""The broker looks every five minutes for records that are older than their retention, by their own stamps."""


@pytest.fixture(scope="module")
def topic(broker):
    """Partition 0 has a record every 10 s for 1000 s, partition 1 only the last fifty; all others none.

    Of `JUMPED` partition 0 has the same, and of partition 2 the clock jumped for two records.
    """
    kept = broker.retention_h.model_copy(update={"events": KEPT_H})
    kafka = broker.model_copy(update={"prefix": "ranges.", "event_partitions": 4, "retention_h": kept})
    publisher = Publisher(kafka)
    for name in ("events", JUMPED):
        create_topic(kafka, name)
        for n in range(100):
            publisher.send_bytes(name, None, b"{}", partition=0, timestamp_s=DAY + 10 * n)
    for n in range(50, 100):
        publisher.send_bytes("events", None, b"{}", partition=1, timestamp_s=DAY + 10 * n)
    for n in range(60):
        at = DAY + (5_000 if n in (30, 31) else 10 * n)
        publisher.send_bytes(JUMPED, None, b"{}", partition=2, timestamp_s=at)
    publisher.close()
    return kafka


def test_a_range_is_what_was_produced_in_it_and_a_little_later(topic):
    name = topic.topic("events")
    found = find_offsets(topic, name, TimeRange(DAY + 200, DAY + 600, 30.0, NOW))
    assert (found.starts[name]["0"], found.ends[name]["0"]) == (20, 63)
    assert (found.starts[name]["1"], found.ends[name]["1"]) == (0, 13)
    assert found.records == 43 + 13
    assert {at for p, at in found.starts[name].items() if p > "1"} == {0}
    whole = find_offsets(topic, name, TimeRange(DAY - 500, DAY + 5_000, 0.0, NOW))
    assert whole.records == 150


def test_what_cannot_be_read_again_is_refused_with_what_can(topic):
    for begin, end, words in (
        (DAY + 10, DAY + 10, "is empty: --to has to be after --from"),
        (DAY, NOW + 60, r"--to 2023-11-16T02:01:00Z is in the future, it is 2023-11-16T02:00:00Z"),
        (DAY, NOW - 10, r"may come until 2023-11-16T02:00:20Z, .*: end the range by 2023-11-16T01:59:30Z, or"),
        (DAY - 900, DAY - 600, "holds no record produced"),
        (DAY + 3_000, DAY + 4_000, "holds no record produced"),
    ):
        with pytest.raises(RangeError, match=words):
            find_offsets(topic, topic.topic("events"), TimeRange(begin, end, 30.0, NOW))
    with pytest.raises(RangeError, match="'nowhere' is not on the broker"):
        find_offsets(topic, "nowhere", TimeRange(DAY, DAY + 60, 0.0, NOW))


def test_a_clock_that_jumped_for_a_moment_does_not_end_a_range_before_what_follows(topic):
    name = topic.topic(JUMPED)
    found = find_offsets(topic, name, TimeRange(DAY + 200, DAY + 500, 30.0, NOW))
    assert (found.starts[name]["2"], found.ends[name]["2"]) == (20, 53)
    assert (found.starts[name]["0"], found.ends[name]["0"]) == (20, 53)
    both = find_range(topic, [topic.topic("events"), name], TimeRange(DAY + 200, DAY + 500, 30.0, NOW))
    assert both.starts[name] == found.starts[name] and both.records == found.records + 33 + 3


def test_a_range_of_which_the_topic_has_dropped_the_beginning_is_refused_with_what_it_holds(topic):
    from kafka import KafkaAdminClient, TopicPartition

    dropped, publisher = "dropped", Publisher(topic)
    create_topic(topic, dropped)
    for n in range(100):
        publisher.send_bytes(dropped, None, b"{}", partition=0, timestamp_s=DAY + 10 * n)
    publisher.close()
    name, clock = topic.topic(dropped), Clock(DAY, 1_000_000.0, 10.0)
    admin = KafkaAdminClient(bootstrap_servers=topic.bootstrap)
    admin.delete_records({TopicPartition(name, 0): 40})
    admin.close()
    words = r"in 1 of its partitions it begins at 2023-11-14T22:20:00Z. Give --from (\S+Z), or"
    with pytest.raises(RangeError, match=words) as refused:
        find_offsets(topic, name, TimeRange(DAY + 200, DAY + 600, 0.0, NOW))
    begin = datetime.fromisoformat(re.search(words, str(refused.value))[1]).timestamp()
    assert begin == DAY + 401  # a dropped record may have been of the same moment as the first one that is kept
    assert find_offsets(topic, name, TimeRange(begin, DAY + 600, 0.0, NOW)).starts[name]["0"] == 41
    with pytest.raises(RangeError, match=r"begins at 1970-01-12T14:53:20Z. Give --from 1970-01-12T14:53:21Z"):
        find_offsets(topic, name, TimeRange(DAY + 200, DAY + 600, 0.0, NOW, clock))


def test_a_partition_that_was_emptied_refuses_a_range_of_which_it_may_have_had_records(topic):
    from kafka import KafkaAdminClient, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType

    emptied, publisher = "emptied", Publisher(topic)
    create_topic(topic, emptied)
    for partition in (0, 1):
        for n in range(10):
            publisher.send_bytes(emptied, None, b"{}", partition=partition, timestamp_s=DAY + 10 * n)
    publisher.close()
    name, admin = topic.topic(emptied), KafkaAdminClient(bootstrap_servers=topic.bootstrap)
    try:
        admin.delete_records({TopicPartition(name, 0): 10})
        found = find_offsets(topic, name, TimeRange(DAY, DAY + 600, 0.0, NOW))
        assert found.starts[name] | {"0": 10} == found.starts[name] and found.records == 10
        later = TimeRange(DAY, DAY + 600, 0.0, DAY + 60 + KEPT_H * 3_600)
        with pytest.raises(
            RangeError, match=r"in 1 of its partitions, such as 0, .* retention\.ms keeps them for 720,000,000 s"
        ):
            find_offsets(topic, name, later)
        admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, {"retention.bytes": "1000000000"})])
        wait_until(lambda: retention_s(topic, name) is None, "the broker to say so", every_s=0.1)
        with pytest.raises(RangeError, match=r"for how long it keeps them is not known\. .*--table"):
            find_offsets(topic, name, TimeRange(DAY, DAY + 600, 0.0, NOW))
    finally:
        admin.close()
    assert retention_s(topic, "nowhere") is None  # nor is that of a topic that this user may not see


def test_a_topic_says_what_a_table_lacks_of_a_range(topic):
    name, asked = topic.topic("events"), TimeRange(DAY + 200, DAY + 600, 30.0, NOW)
    held = HeldTopic.about(topic, name, asked)
    assert (held.parts[0], held.parts[1]) == ((0, 20, 63), (0, 0, 13))
    assert {part for number, part in held.parts.items() if number > 1} == {(0, 0, 0)}
    whole, short = CopiedPartition(63, DAY + 620), CopiedPartition(4, DAY + 530)
    check_copied(Path("/lake"), held, {0: whole, 1: CopiedPartition(13, DAY + 620)}, asked)
    with pytest.raises(RangeError, match=r"lacks records of partition 1 of .* from 2023-11-14T22:22:20Z on"):
        check_copied(Path("/lake"), held, {0: whole, 1: short}, asked)
    with pytest.raises(RangeError, match=r"lacks records of partition 1 of .* from 2023-11-14T22:21:40Z on"):
        check_copied(Path("/lake"), held, {0: whole}, asked)
    assert HeldTopic.about(topic, "nowhere", asked).parts == {}
