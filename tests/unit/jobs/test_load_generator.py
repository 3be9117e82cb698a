import json
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from configs.sections import Replay
from configs.settings import load
from pipelines.jobs import load_generator as generator
from pipelines.jobs.events import decode_event
from pipelines.jobs.replay import ReplayPlan
from pipelines.jobs.truth import count_windows
from pipelines.jobs.withheld import withheld_hour
from pipelines.traces.trace import TraceError
from tidecast.control import clock_of


class Publisher:
    """Acknowledges every record but those whose place in the row is in `refused`."""

    def __init__(self, refused=()):
        self.refused, self.records, self.places, self.messages, self.ends = set(refused), [], [], [], {}

    def send(self, topic, key, message):
        self.messages.append((topic, key, message))

    def flush(self):
        pass

    def send_bytes(self, topic, key, value, partition=None, timestamp_s=None):
        good = len(self.records) not in self.refused
        self.records.append((topic, key, value, partition, timestamp_s))
        place = SimpleNamespace(partition=partition, offset=self.ends.get(partition, 0))
        self.ends[partition] = place.offset + good
        if good:
            self.places.append((place.partition, place.offset))
        return SimpleNamespace(is_done=True, succeeded=lambda: good, value=place)


def plan_of(send_at, event_at=None):
    n = len(send_at)
    send = np.array(send_at, dtype=float)
    event = send if event_at is None else np.array(event_at, dtype=float)
    return ReplayPlan(send, event, np.arange(n), np.zeros(n, dtype=np.int64), np.zeros(n, bool), float(max(send_at)))


TRACE = SimpleNamespace(live_start=1000.0)


def produce(publisher, plan, partitions=(0, 1), stop=None):
    return generator._produce(
        publisher, plan, TRACE, Replay(speed=10), list(partitions), 0.0, stop or threading.Event()
    )


def test_every_record_is_sent_once_in_turn_over_the_partitions_with_its_trace_time():
    publisher = Publisher()
    sent, produced_at = produce(publisher, plan_of([0.0, 1.0, 2.0], [0.0, 0.5, 2.0]))
    assert [record[3] for record in publisher.records] == [0, 1, 0]
    events = [decode_event(record[2], record[4]) for record in publisher.records]
    assert [event.time for event in events] == [1000.0, 1005.0, 1020.0]
    assert [event for event, _ in sent] == events
    assert len(produced_at) == 3


def test_a_stop_ends_the_plan_early():
    stop = threading.Event()
    stop.set()
    assert produce(Publisher(), plan_of([0.0]), stop=stop)[0] == []


@pytest.fixture
def broker(monkeypatch):
    """A broker of two partitions that takes everything, and a replay whose every record is due at once."""
    publisher = Publisher()
    monkeypatch.setattr(generator, "Publisher", lambda kafka, **options: publisher)
    monkeypatch.setattr(generator, "topic_offsets", lambda kafka, topic: {0: (0, 0), 1: (0, 0)})
    monkeypatch.setattr(generator, "HEAD_START_S", -200.0)
    monkeypatch.setattr(generator, "_WARM_UP_PAUSE_S", 0.0)
    return publisher


def test_truth_holds_what_was_acknowledged_and_the_warm_up(tmp_path, broker):
    mine = {"live_hours": 2, "speed": 7200, "peak_rps": 50, "keys": 3, "late_share": 0.5, "withheld_share": 0}
    settings = load(replay=mine)
    broker.refused = {14}
    assert generator.warm_up(settings, tmp_path) == 12
    truth = generator.replay(settings, tmp_path, threading.Event())
    acknowledged = [record for i, record in enumerate(broker.records) if i != 14]
    events = [decode_event(record[2], record[4]) for record in acknowledged]
    assert truth["produced"] == truth["planned"] - 1 + 12 == len(events)
    assert (truth["unacknowledged"], truth["warm_up"]) == (1, 12)
    assert truth["windows"] == {"live": count_windows(events), "corrected": {}} and truth["withheld"] == 0
    assert abs(truth["late"] - truth["planned"] / 2) <= 1
    arrays = np.load(tmp_path / "produced.npz")
    assert list(zip(arrays["partition"].tolist(), arrays["offset"].tolist(), strict=True)) == broker.places[12:]
    assert arrays["late"].sum() == truth["late"]
    seconds = (tmp_path / "produced.csv").read_text().splitlines()
    assert seconds[0] == "second,produced"
    assert sum(int(line.split(",")[1]) for line in seconds[1:]) == truth["produced"] - 12
    assert json.loads((tmp_path / "truth.json").read_text()) == truth


def test_truth_holds_both_what_live_comes_to_and_what_is_right_after_a_correction(tmp_path, broker):
    settings = load(replay={"speed": 7200, "live_hours": 260, "peak_rps": 30, "keys": 3, "withheld_share": 0.5})
    truth = generator.replay(settings, tmp_path, threading.Event())
    events = [decode_event(record[2], record[4]) for record in broker.records]
    first, past = withheld_hour(settings.replay)
    every, live, right = count_windows(events), truth["windows"]["live"], truth["windows"]["corrected"]
    changed = {name for name in every if every[name] != live.get(name)}
    assert changed == set(right) and every == {**live, **right}
    inside = sum(first <= event.time < past for event in events)
    assert truth["withheld"] == round(0.5 * inside) > 0
    assert truth["withheld"] == sum(right[name]["n"] - live.get(name, {"n": 0})["n"] for name in right)
    assert all(first * 1000 <= int(name.rpartition("@")[2].split("-")[0]) < past * 1000 for name in right)


def test_every_job_with_a_contract_is_told_the_clock(tmp_path, broker):
    settings = load(replay={"live_hours": 0.5, "speed": 7200, "peak_rps": 50, "withheld_share": 0})
    truth = generator.replay(settings, tmp_path, threading.Event())
    clocks = {key: clock_of(control) for topic, key, control in broker.messages if topic == "control"}
    assert set(clocks) == {"word_count:clock", "key_window:clock", "ride_count:clock"}
    assert {(c.wall_start, c.scale) for c in clocks.values()} == {(truth["wall_start"], 7200)}


def test_live_part_in_the_future_is_refused(tmp_path, broker):
    trace = tmp_path / "future.csv"
    trace.write_text("timestamp,value\n2999-01-01 00:00,1\n2999-01-01 01:00,2\n")
    settings = load(replay={"trace": str(trace), "live_start": "2999-01-01", "live_hours": 1, "history_days": 0})
    with pytest.raises(TraceError, match="future"):
        generator.replay(settings, tmp_path, threading.Event())


def test_bad_trace_is_an_error_in_words_without_a_traceback(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("TIDECAST_REPLAY__TRACE", "no_such_trace")
    assert generator.main(["--run-dir", str(tmp_path)]) == 1
    assert "no_such_trace" in capsys.readouterr().err


@pytest.mark.parametrize("option", [[], ["--warm-up"]])
def test_without_a_broker_it_says_so(tmp_path, capsys, monkeypatch, option):
    monkeypatch.delenv("TIDECAST_KAFKA__BOOTSTRAP", raising=False)
    assert generator.main(["--run-dir", str(tmp_path), *option]) == 1
    assert "make up" in capsys.readouterr().err
