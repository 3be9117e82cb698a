"""What kafka-python's consumer gives of an answer of the broker, here made by its own builder."""

from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.consumer.fetcher import CompletedFetch, Fetcher
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import CorruptRecordError
from kafka.record.memory_records import MemoryRecordsBuilder

from tidecast.connection import transport

PLACE = TopicPartition("control", 0)
GZIP = 1


class NoText(str):
    """A header's name that other clients send: it is no UTF-8."""

    def encode(self, *_):
        return b"n\xff"


def packed(names, codec=0, first=0):
    """A batch of records from an offset on, each with a header of this name; what they hold is no text."""
    builder = MemoryRecordsBuilder(magic=2, compression_type=codec, batch_size=1 << 20, offset=first)
    for at, name in enumerate(names):
        builder.append(5000, b"k\xff", b"n\xff" * 50 + b"%d" % at, [(name, b"h\xff")])
    builder.close()
    return bytes(builder.buffer())


@pytest.fixture
def fetcher(monkeypatch):
    """That of a consumer which is connected to nothing, at the beginning of PLACE."""
    subscriptions = SubscriptionState()
    subscriptions.assign_from_user([PLACE])
    subscriptions.seek(PLACE, 0)
    made = Fetcher(SimpleNamespace(_manager=SimpleNamespace(_net=None)), subscriptions)
    monkeypatch.setattr(transport, "connect", lambda *_, **__: SimpleNamespace(_fetcher=made))
    transport.consumer("here:9092")
    return made


def answer(fetcher, records):
    """What the fetcher gives once the broker has answered for the records from the beginning on."""
    told = SimpleNamespace(
        error_code=0, high_watermark=9, records=records, aborted_transactions=None, diverging_epoch=None,
        preferred_read_replica=None,
    )  # fmt: skip
    fetcher._completed_fetches.append(CompletedFetch(PLACE, 0, 12, told, None))
    return fetcher.fetched_records()[0]


@pytest.mark.parametrize("codec", [0, GZIP])
def test_a_record_with_a_header_whose_name_is_no_utf_8_is_read_as_are_those_around_it(fetcher, codec):
    batch = packed(["a", NoText("b"), "c", NoText("d"), "e"], codec)
    found = answer(fetcher, batch + packed(["f"], first=5))[PLACE]
    assert [one.headers for one in found] == [[(name, b"h\xff")] for name in ("a", "n\ufffd", "c", "n\ufffd", "e", "f")]
    assert [one.offset for one in found] == [0, 1, 2, 3, 4, 5]
    assert {one.key for one in found} == {b"k\xff"}
    assert [one.value for one in found[:5]] == [b"n\xff" * 50 + b"%d" % at for at in range(5)]


def test_an_answer_of_the_broker_that_is_damaged_is_an_error_at_each_poll_and_holds_none_up(fetcher):
    damaged = packed(["a"])[:-1] + b"?"
    for _ in range(2):
        with pytest.raises(CorruptRecordError, match="crc"):
            answer(fetcher, damaged)
    assert [one.offset for one in answer(fetcher, packed(["a"]))[PLACE]] == [0]
