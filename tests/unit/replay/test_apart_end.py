"""An application of the replays' own ends: what was said is sent, whatever fails; without a broker at once."""

from types import SimpleNamespace

import pytest

from tidecast.connection.environment import ADDRESS
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


def test_where_no_broker_is_named_the_remedy_is_told(monkeypatch):
    monkeypatch.delenv(ADDRESS, raising=False)
    told = rf"^no broker known for job 'orders': give replay_apart\(.*bootstrap=.*{ADDRESS}$"
    with pytest.raises(ValueError, match=told):
        apart.replay_apart("orders", Replayable(lambda order: None))
