"""Records as the feed of the fast path hands them on."""

from types import SimpleNamespace

import pytest

from pipelines.kafka import librdkafka
from pipelines.kafka.broker import Record


def message(headers):
    told = dict(topic="t.metrics", partition=0, offset=7, key=b"orders", value=b"{}", timestamp=(1, 5000))
    return SimpleNamespace(headers=headers, **{name: lambda value=value: value for name, value in told.items()})


def test_a_record_has_its_topic_without_the_prefix_its_time_in_seconds_and_its_headers():
    found = librdkafka._record(message(lambda: [("version", b"3"), ("ts", None)]), "t.")
    assert found == Record("metrics", 0, 7, "orders", b"{}", 5.0, {"version": b"3", "ts": None})


@pytest.mark.parametrize("error", [UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid byte"), SystemError("set")])
def test_a_record_with_a_header_whose_name_is_no_utf_8_comes_without_headers(error):
    def unreadable():
        raise error

    assert librdkafka._record(message(unreadable), "t.").headers == {}
