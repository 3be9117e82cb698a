"""An application of the replays' own ends: what was said is sent, whatever fails; without a broker at once."""

from types import SimpleNamespace

import pytest

from tests.fakes.clock import clock_with
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

    made("Outbox", send_next=lambda: None, waiting=False)
    made("_Orders", read_all=lambda: None)
    made("Replays", poll=lambda: None, waiting=lambda: [], close=fail)
    with pytest.raises(TimeoutError):
        apart.replay_apart("orders", Replayable(lambda order: None), "nowhere:1")
    assert ended == ["_Orders", "Outbox"]


@pytest.mark.parametrize(("back_s", "waited_s"), [(30.0, 30.0), (1000.0, apart.PATIENCE_S)])
def test_the_last_words_wait_for_a_broker_that_is_away_just_then(monkeypatch, back_s, waited_s):
    now, closed_at = [0.0], []

    class Outbox:
        def __init__(self, *_):
            self.send_next = lambda: None

        @property
        def waiting(self):
            return now[0] < back_s

        def close(self):
            closed_at.append(now[0])

    def sleep(seconds):
        now[0] += seconds

    replays = SimpleNamespace(poll=lambda: None, waiting=lambda: [], close=lambda: None, states=lambda: {"fix": "done"})
    orders = SimpleNamespace(read_all=lambda: None, close=lambda: None)
    monkeypatch.setattr(apart, "Outbox", Outbox)
    monkeypatch.setattr(apart, "_Orders", lambda *_: orders)
    monkeypatch.setattr(apart, "Replays", lambda *_: replays)
    monkeypatch.setattr(apart, "time", clock_with(monotonic=lambda: now[0], sleep=sleep))
    assert apart.replay_apart("orders", Replayable(lambda order: None), "nowhere:1") == {"fix": "done"}
    assert closed_at == [pytest.approx(waited_s, abs=1.0)]


def test_where_no_broker_is_named_the_remedy_is_told(monkeypatch):
    monkeypatch.delenv(ADDRESS, raising=False)
    told = rf"^no broker known for job 'orders': give replay_apart\(.*bootstrap=.*{ADDRESS}$"
    with pytest.raises(ValueError, match=told):
        apart.replay_apart("orders", Replayable(lambda order: None))
