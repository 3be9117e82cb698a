"""An application of the replays' own ends: what was said is sent, whatever fails on the way."""

from types import SimpleNamespace

import pytest

from tidecast.replay import apart
from tidecast.replay.replayable import Replayable


def test_what_was_said_is_sent_though_a_query_does_not_stop(monkeypatch):
    ended = []

    def made(name, **parts):
        close = lambda: ended.append(name)  # noqa: E731
        monkeypatch.setattr(apart, name, lambda *given: SimpleNamespace(**{"close": close, **parts}))

    def fail():
        raise TimeoutError("the query did not stop within spark.sql.streaming.stopTimeout")

    made("Outbox", send_next=lambda: None)
    made("_Orders", read_all=lambda: None)
    made("Replays", poll=lambda: None, waiting=lambda: [], close=fail)
    with pytest.raises(TimeoutError):
        apart.replay_apart("orders", Replayable(lambda order: None), "nowhere:1")
    assert ended == ["_Orders", "Outbox"]
