"""One corpus before every reader without Spark: the same verdict, and nothing that stops."""

from tests.fakes.topic_readers import compare_readers


def test_every_reader_gives_the_same_verdict_and_none_stops():
    found = compare_readers()
    assert found["records"] >= 500 and len(found["readers"]) == 6
    assert found["stopped"] == []
    assert found["unexpected"] == []
    assert found["differing"] == []
