"""Orders of replays as they stand on the topic `control`, and how an agent takes them."""

import time
from dataclasses import replace

import pytest

import tidecast.orders
from configs.sections import Kafka
from pipelines.backfill import orders
from pipelines.backfill.watch import JobWatch
from pipelines.console.read.fold import ReadModel, fold
from pipelines.kafka.broker import Record
from pipelines.kafka.signing import Signer
from tests.fakes.driver import job
from tidecast.commands import Commands
from tidecast.messages import MessageError, Reject, decode, encode
from tidecast.orders import ReplayOrder, ReplayProgress, later_than, order_key

GOOD = {
    "id": "fix", "job": "orders", "wall_time": 100.0, "wanted": "run",
    "starts": {"events": {"0": 5, "1": 7}}, "ends": {"events": {"0": 9, "1": 7}},
}  # fmt: skip


def test_an_order_comes_back_as_it_was_sent_and_knows_its_range():
    planned = {"schedule": [[110.0, 0], [120.5, 3]], "by": 200.0, "sure": 0.9, "then": "compare"}
    planned["finish"] = [[0.1, 130.0], [0.9, 190.0], [0.99, 190.0]]
    order = decode(ReplayOrder, encode(ReplayOrder(**GOOD, most_rps=40.0, begin_ms=5, **planned)))
    assert order == ReplayOrder(**GOOD, most_rps=40.0, begin_ms=5, **planned)
    assert [order.executors_at(at) for at in (100, 110, 120.5, 1e9)] == [0, 0, 3, 3]
    assert order.first == {("events", 0): 5, ("events", 1): 7}
    assert order.past == {("events", 0): 9, ("events", 1): 7} and order.records == 4


def test_what_a_range_spans_is_counted_without_a_look_at_all_partitions_for_each(monkeypatch):
    looks, by_partition = [], tidecast.orders.by_partition
    parts = {f"{part}": part for part in range(500)}
    order = ReplayOrder("fix", "orders", 1.0, "run", {"a": dict.fromkeys(parts, 0)}, {"a": parts})
    monkeypatch.setattr(tidecast.orders, "by_partition", lambda *given: looks.append(given) or by_partition(*given))
    assert order.records == 499 * 500 // 2 and len(looks) == 2


def test_an_order_with_a_schedule_comes_back_and_says_how_many_executors_there_are_to_be():
    sent = ReplayOrder(**GOOD, schedule=[[100.5, 2], [160.0, 0]])
    order = decode(ReplayOrder, encode(sent))
    assert order == sent
    assert [order.executors_at(at) for at in (100.0, 100.5, 159.9, 160.0)] == [0, 2, 2, 0]
    spans = ((90, 100.5), (90, 100.6), (159, 300), (160, 300))
    assert [order.executors_between(*span) for span in spans] == [0, 2, 2, 0]


@pytest.mark.parametrize(("changes", "words"), [
    ({"starts": {}, "ends": {}}, "starts name 0 partitions"),
    ({"ends": {"events": {"0": 9}}}, "starts name 2 partitions and ends 1"),
    ({"ends": {"events": {"0": 9, "2": 7}}}, "give both of each partition"),
    ({"ends": {"events": {"0": 4, "1": 7}}}, r"ends\['events', 0\]=4: it is before the start, 5"),
    ({"starts": {"events": {"0": 5, "one": 7}}}, "starts="),
    ({"starts": {"events": {"0": -1, "1": 7}}}, "starts="),
    ({"starts": {"events": {"-1": 5, "1": 7}}}, "starts="),
    ({"starts": {"events": {"0": True, "1": 7}}}, "starts="),
    ({"starts": {"events": 3}}, "starts="),
    ({"wanted": "faster"}, "one of run, pause, cancel, done"),
    ({"then": "hope"}, "one of publish, compare"),
    ({"schedule": [[5.0]]}, r"schedule=\[\[5.0\]\]: \[\[job time, executors\]"),
    ({"schedule": [[5.0, 1], [5.0, 2]]}, "schedule="),
    ({"schedule": [[5.0, 1.5]]}, "schedule="),
    ({"schedule": 3}, "schedule=3: a list is expected"),
    ({"finish": [[0.9, 5.0], [0.5, 6.0]]}, r"finish=\[\[0.9, 5.0\].*both rising"),
    ({"finish": [[0.5, 5.0], [0.9, 4.0]]}, "finish="),
    ({"finish": [[1.0, 5.0]]}, "finish="),
    ({"finish": [[True, 5.0]]}, "finish="),
    ({"finish": [5.0]}, "finish="),
    ({"finish": [[0.5, 10**400]]}, "finish="),
    ({"schedule": [[10**400, 1]]}, "schedule="),
    ({"sure": 1.5}, "sure=1.5: at most 1 is expected"),
    ({"by": -1.0}, "by=-1.0"),
    ({"most_rps": -1.0}, "most_rps"),
    ({"id": "../x"}, "id"),
    ({"schedule": [[5.0, 1], [4.0, 2]]}, "schedule=.*rising times"),
    ({"schedule": [[5.0, True]]}, "schedule="),
    ({"schedule": [["5", 1]]}, "schedule="),
    ({"schedule": [[True, 1]]}, "schedule="),
    ({"schedule": [[5.0]]}, "schedule="),
    ({"schedule": [3]}, "schedule="),
])  # fmt: skip
def test_a_bad_order_is_refused_by_the_field(changes, words):
    with pytest.raises(MessageError, match=words):
        decode(ReplayOrder, encode(ReplayOrder(**{**GOOD, **changes})))


class _Record:
    topic, partition, offset, timestamp = "control", 0, 3, 0

    def __init__(self, key, message):
        self.key, self.value = key.encode(), encode(message)


def test_an_agent_keeps_the_newest_order_of_its_job_and_rejects_one_under_anothers_key():
    state = job("orders")
    commands = Commands(state, "nowhere:1", {}, waits_for_clock=False)
    key = order_key("orders", "fix")
    for at, wanted in ((100.0, "run"), (120.0, "pause"), (110.0, "cancel")):  # the last one came late
        commands._handle(_Record(key, ReplayOrder(**{**GOOD, "wall_time": at, "wanted": wanted})))
    commands._handle(_Record(order_key("others", "fix"), ReplayOrder(**{**GOOD, "job": "others"})))
    assert [(one.id, one.wanted) for one in state.orders.values()] == [("fix", "pause")]
    commands._handle(_Record(order_key("orders", "other"), ReplayOrder(**GOOD)))
    (reject,) = state.outbox.of(Reject)
    assert "under the key" in reject.reason and {*state.orders} == {"fix"}


def kept(monkeypatch, records):
    """The order that holds of "fix", as an agent, the commands, a follower and the console read these records."""
    state = job("orders")
    commands = Commands(state, "nowhere:1", {}, waits_for_clock=False)
    read = [Record("control", 0, at, order_key("orders", "fix"), encode(one), 0.0) for at, one in enumerate(records)]
    for one in records:
        commands._handle(_Record(order_key("orders", "fix"), one))
    monkeypatch.setattr(orders, "read_records", lambda kafka, topic: iter(read))
    watch = JobWatch.__new__(JobWatch)
    watch.job, watch.orders, watch._signer = "orders", {}, Signer.of(Kafka())
    for one in read:
        watch._control(one)
    console = fold(ReadModel(), read, time.time()).jobs["orders"].replays["fix"].order
    return [state.orders["fix"], orders.read_orders(Kafka(), "orders")["fix"], watch.orders["fix"], console]


def test_all_who_read_orders_have_the_same_one_whatever_clocks_say_and_in_which_order_they_come(monkeypatch):
    now = time.time()
    first = ReplayOrder(**{**GOOD, "wall_time": now + 7200})  # its clock has been set back since
    paused = replace(first, wanted="pause", wall_time=later_than(first, now))
    at_once = replace(first, wanted="cancel", wall_time=paused.wall_time - 0.0005)  # by somebody else
    for records in ([first, paused], [first, paused, first], [first, paused, at_once], [first, at_once, paused]):
        assert kept(monkeypatch, records) == [paused] * 4


def test_progress_says_a_known_state_only():
    said = ReplayProgress("fix", "orders", 1.0, 1.0, 1.0, "running", 4, 2, 40.0)
    assert decode(ReplayProgress, encode(said)) == said
    with pytest.raises(MessageError, match="state"):
        decode(ReplayProgress, encode(ReplayProgress("fix", "orders", 1.0, 1.0, 1.0, "fast", 4, 2)))
