"""Micro-batches that are sent once, whoever sends them again, on a real broker."""

import pytest

from pipelines.kafka.connection import BrokerError
from pipelines.kafka.transactions import BatchMark, BatchWriter, OutRecord, SupersededError
from tests.fakes.committed import committed_records

pytestmark = pytest.mark.integration


def committed(kafka):
    """Values that readers of what is committed see, sorted."""
    return sorted(value for _, value in committed_records(kafka, "results"))


def records(*values):
    return [OutRecord("results", value.encode(), value.encode()) for value in values]


def writer(kafka, epoch=1, part=0):
    return BatchWriter(kafka, "block", part, epoch, "results")


def test_a_batch_that_is_sent_again_is_there_once(empty_topics):
    first = writer(empty_topics)
    assert first.send(0, records("a", "b")) == 2 and first.send(1, records("c")) == 1
    assert first.send(1, records("c")) is None
    again = writer(empty_topics)
    assert again.send(1, records("c")) is None and again.send(2, records("d")) == 1
    assert writer(empty_topics, part=1).send(0, records("e")) == 1
    assert committed(empty_topics) == ["a", "b", "c", "d", "e"]


def test_a_part_has_a_mark_once_it_was_claimed_and_to_ask_for_it_shuts_nobody_out(empty_topics):
    first = writer(empty_topics)
    assert not first.has_mark()
    first.claim()
    assert writer(empty_topics).has_mark() and not writer(empty_topics, part=1).has_mark()
    assert first.send(0, records("a")) == 1 and committed(empty_topics) == ["a"]


def test_a_task_whose_place_was_taken_sends_nothing_twice(empty_topics):
    slow, quick = writer(empty_topics), writer(empty_topics)
    assert slow.send(0, records("a")) == 1
    assert quick.send(1, records("b")) == 1
    assert slow.send(1, records("b")) is None
    assert slow.send(2, records("c")) == 1
    assert quick.send(3, records("d")) == 1
    assert committed(empty_topics) == ["a", "b", "c", "d"]


def test_what_was_begun_and_not_committed_is_never_seen(empty_topics):
    broken = writer(empty_topics)
    assert broken.send(0, records("a")) == 1
    broken._producer.begin_transaction()
    broken._produce(records("lost")[0])
    broken._producer.flush(10)
    assert writer(empty_topics).send(1, records("b")) == 1
    assert committed(empty_topics) == ["a", "b"]


def test_a_query_that_was_begun_anew_elsewhere_shuts_out_the_one_before(empty_topics):
    old, new = writer(empty_topics), writer(empty_topics, epoch=2)
    assert old.send(0, records("a")) == 1
    assert new.claim() == BatchMark(1, 2)
    with pytest.raises(SupersededError, match="part 0 is written by epoch 2, this is 1"):
        old.send(1, records("wrong"))
    with pytest.raises(SupersededError):
        old.claim()
    assert new.send(1, records("b")) == 1
    assert writer(empty_topics, epoch=3).claim(next_batch=0) == BatchMark(0, 3)
    assert writer(empty_topics, epoch=3).send(0, records("c")) == 1
    assert committed(empty_topics) == ["a", "b", "c"]


def test_a_broker_that_is_away_is_told(empty_topics, monkeypatch):
    monkeypatch.setattr("pipelines.kafka.transactions.WAIT_S", 0.5)
    away = empty_topics.model_copy(update={"bootstrap": "127.0.0.1:1"})
    with pytest.raises(BrokerError, match="part 0 was not sent"):
        writer(away).send(0, records("a"))
