"""Whether a job that starts again begins a new epoch, and what it orders then; broker and table are stood in for."""

import errno
import json
import time
from dataclasses import replace

import pytest

from tidecast.merge import MergeSink
from tidecast.merge.table import TableForm
from tidecast.orders import ReplayOrder
from tidecast.recovery import outage, recover
from tidecast.recovery.checkpoint import Committed, RecoveryError
from tidecast.recovery.epochs import LiveEpoch, write_epochs

SOURCE = {"kafka.bootstrap.servers": "nowhere:9092", "subscribe": "events", "startingOffsets": "earliest"}
A, B = ("events", 0), ("events", 1)


class Topic:
    """A record a second on each of two partitions for an hour up to now, as far as the topic still holds them."""

    places = (A, B)

    def __init__(self, dropped=0):
        self.now, self.dropped, self.newest = time.time(), dropped, 3_600

    def __call__(self, source):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def begins(self):
        return dict.fromkeys((A, B), self.dropped)

    def ends(self):
        return dict.fromkeys((A, B), self.newest)

    def at(self, wall_s, ends):
        offset = int(wall_s - self.now) + 3_600
        return {place: min(max(offset, self.dropped), end) for place, end in ends.items()}

    def oldest_s(self, starts):
        return self.now - 3_600 + min(starts.values())


class HalfEmptied(Topic):
    """Nothing came to the second partition of late, and retention has dropped all that it had."""

    def begins(self):
        return {A: 0, B: self.newest}

    def at(self, wall_s, ends):
        return super().at(wall_s, ends) | {B: ends[B]}


class Grown(Topic):
    """A partition more, on which nothing has come yet."""

    places = (A, B, ("events", 2))

    def ends(self):
        return super().ends() | {("events", 2): 0}

    def begins(self):
        return super().begins() | {("events", 2): 0}


class Sessionless:
    """A session that is asked for a stream of the topic only."""

    def __init__(self):
        self.asked = {}

    @property
    def readStream(self):
        return self

    def format(self, name):
        return self

    def options(self, **options):
        self.asked = options
        return self

    def load(self):
        return "records"


def earlier(epoch, by_s):
    """An epoch as if it had begun so much earlier."""
    gap, by_ms = epoch.gap, 1_000 * by_s
    times = {name: getattr(gap, name) - by_ms for name in ("begin_ms", "end_ms", "open_ms")}
    moved = replace(gap, wall_time=gap.wall_time - by_s, **times)
    return replace(epoch, whole_from=epoch.whole_from - by_ms, final_s=epoch.final_s - by_s, gap=moved)


@pytest.fixture
def known(monkeypatch):
    """What of the world recover asks: may be changed by a test."""
    found = {
        "topic": Topic(), "form": TableForm("t", ("key",), {"n": "bigint"}, "1", 0, "q"), "window": 60_000,
        "committed": Committed(9, time.time() - 600, {A: 3_000, B: 3_100}, int((time.time() - 660) * 1000)),
    }  # fmt: skip
    monkeypatch.setattr(outage, "Positions", lambda source: found["topic"])
    monkeypatch.setattr("tidecast.recovery.restart.Positions", lambda source: found["topic"])
    monkeypatch.setattr(outage, "read_form", lambda spark, table: found["form"])
    monkeypatch.setattr(outage, "_window_ms", lambda spark, table: found["window"])
    monkeypatch.setattr("tidecast.recovery.restart.read_committed", lambda checkpoint: found["committed"])
    monkeypatch.setattr("tidecast.recovery.restart.refuse_other_file_system", lambda spark, error: None)
    return found


def start(folder, order="live_first", **options):
    spark = Sessionless()
    sink = MergeSink(str(folder / "t"), ["key"])
    made = recover(spark, "orders", sink, SOURCE, str(folder / "live"), order, **options)
    return made, spark.asked


def test_an_outage_begins_an_epoch_at_the_newest_records_and_orders_the_gap(known, tmp_path):
    made, asked = start(tmp_path)
    (epoch,) = made.epochs
    gap, now = epoch.gap, known["topic"].now
    assert (made.sink.epoch, made.sink.whole_from, made.checkpoint) == (1, epoch.whole_from, tmp_path / "live.1")
    assert asked["startingOffsets"] == '{"events": {"0": 3600, "1": 3600}}' and asked["subscribe"] == "events"
    assert gap.past == {A: 3_600, B: 3_600} and gap.holds == (1 << 40) - 1
    # Ten minutes of gap, and before it the minute of lateness and the length of a window.
    assert gap.first == pytest.approx({A: 3_600 - 720, B: 3_600 - 720}, abs=2)
    assert gap.begin_ms / 1000 == pytest.approx(now - 720, abs=2) and gap.end_ms == epoch.whole_from + 60_000
    assert gap.open_first == pytest.approx({A: 3_480, B: 3_480}, abs=2)
    assert epoch.final_s == pytest.approx(gap.end_ms / 1000 + 60, abs=2)
    assert "was out for 600 s: 1,100 records wait and are replayed as gap-1" in made.text
    # The same again, at once: the epoch stands, and nothing is ordered anew.
    known["committed"] = Committed(0, time.time(), {A: 3_599, B: 3_600}, 0)
    again, _ = start(tmp_path)
    assert again.epochs == made.epochs and "in order: 1 records wait, the oldest for" in again.text


def test_what_comes_while_the_table_is_read_is_lives_and_not_the_gaps(known, tmp_path, monkeypatch):
    read_s = []

    def slowly(spark, table):
        read_s.append(time.time())
        time.sleep(0.01)
        known["topic"].newest += 50
        return known["form"]

    monkeypatch.setattr(outage, "read_form", slowly)
    made, asked = start(tmp_path)
    (epoch,) = made.epochs
    assert epoch.gap.past == {A: 3_600, B: 3_600} and asked["startingOffsets"] == json.dumps(epoch.gap.ends)
    assert epoch.whole_from <= (read_s[0] + 10) * 1000 + 1
    # Nor is it read at all where the job was not out for long.
    known["committed"] = Committed(0, time.time(), {A: 3_649, B: 3_650}, 0)
    again, _ = start(tmp_path)
    assert again.epochs == (epoch,) and len(read_s) == 1


def test_a_driver_that_is_killed_before_its_first_batch_waits_no_second_time(known, tmp_path):
    start(tmp_path)
    known["committed"] = None
    made, asked = start(tmp_path)
    assert len(made.epochs) == 1 and made.sink.epoch == 1 and "0 records wait" in made.text
    assert asked["startingOffsets"] == '{"events": {"0": 3600, "1": 3600}}'


def test_a_partition_that_was_added_before_its_first_batch_is_lives_from_its_first_record_on(known, tmp_path):
    """Spark begins a new checkpoint only where each partition of the topic has its offset."""
    start(tmp_path)
    known |= {"committed": None, "topic": Grown()}
    made, asked = start(tmp_path, order="in_order")
    assert made.checkpoint == tmp_path / "live.1"
    assert json.loads(asked["startingOffsets"]) == {"events": {"0": 3600, "1": 3600, "2": 0}}
    again, asked = start(tmp_path)
    assert len(again.epochs) == 1 and json.loads(asked["startingOffsets"])["events"]["2"] == 0
    (made.checkpoint / "commits").mkdir(parents=True)
    (made.checkpoint / "commits" / "0").write_text("v1\n{}")
    known["topic"] = None
    start(tmp_path, order="in_order")  # goes on by its checkpoint, and asks nobody


def test_a_second_outage_before_its_first_batch_takes_no_outage_for_the_lateness_of_records(known, tmp_path):
    write_epochs(tmp_path / "live", [earlier(one, 1_000) for one in start(tmp_path)[0].epochs])
    topic, now = known["topic"], known["topic"].now
    topic.now, topic.newest, known["committed"] = now - 1_000, topic.newest + 1_000, None
    (before, epoch) = start(tmp_path)[0].epochs
    assert before.gap.wanted == "cancel" and epoch.gap.begin_ms == before.gap.begin_ms - 60_000
    # A minute of lateness, as the watermark had it before both; the first outage was of ten.
    assert epoch.final_s == pytest.approx(epoch.gap.end_ms / 1000 + 60, abs=2)
    assert epoch.gap.open_ms / 1000 == pytest.approx(now - 120, abs=2)


def test_in_order_is_the_default_and_asks_nobody(known, tmp_path):
    known["topic"] = known["form"] = None
    made, asked = start(tmp_path, order="in_order")
    assert made.epochs == () and made.checkpoint == tmp_path / "live" and asked == SOURCE
    assert made.sink == MergeSink(str(tmp_path / "t"), ["key"])


@pytest.mark.parametrize("version", [None, "v2"])
def test_in_order_an_epoch_goes_on_also_where_newest_first_could_not(tmp_path, version):
    """Before its first batch, and with a checkpoint of a Spark that keeps other logs; it subscribes by a pattern."""
    gap = ReplayOrder("gap-1", "orders", 1.0, "run", {"events": {"0": 5}}, {"events": {"0": 9}})
    write_epochs(tmp_path / "live", [LiveEpoch(1, 60_000, 1.0, gap)])
    if version:
        for log in ("offsets", "commits"):
            (tmp_path / "live.1" / log).mkdir(parents=True)
            (tmp_path / "live.1" / log / "0").write_text(f"{version}\n{{}}\n{{}}")
    spark, source = Sessionless(), {"kafka.bootstrap.servers": "nowhere:9092", "subscribePattern": "events"}
    made = recover(spark, "orders", MergeSink(str(tmp_path / "t"), ["key"]), source, str(tmp_path / "live"))
    assert (made.checkpoint, made.sink.epoch) == (tmp_path / "live.1", 1)
    assert json.loads(spark.asked["startingOffsets"]) == {"events": {"0": 9}}


@pytest.mark.parametrize(("change", "words"), [
    ({"committed": None}, "starts for the first time"),
    ({"window": None}, "in order: its table has no results yet"),
    ({"committed": Committed(9, 1.0, {A: 3_590, B: 3_600}, 1)}, "in order: 10 records wait, the oldest for 10 s"),
    ({"committed": Committed(9, 1.0, {A: 3_000, B: 3_000}, 0)}, "in order: no watermark says yet how late"),
    ({"topic": Topic(dropped=2_950)}, "in order: the topic may no longer hold all from"),
    ({"topic": HalfEmptied(), "committed": Committed(9, time.time() - 600, {A: 3_000, B: 3_600}, 1)},
     "in order: the topic may no longer hold all from"),
])  # fmt: skip
def test_where_newest_first_has_no_use_or_no_ground_the_job_goes_on_in_order_and_says_why(
    known, tmp_path, change, words
):
    known |= change
    made, _ = start(tmp_path)
    assert words in made.text and made.epochs == () and made.sink.whole_from is None


def test_a_full_disk_keeps_no_job_from_starting(known, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tidecast.recovery.restart.write_epochs", full)
    made, _ = start(tmp_path)
    assert "goes on in order: a new epoch cannot be noted beside" in made.text and made.epochs == ()


def test_what_cannot_be_recovered_so_is_refused_by_name(known, tmp_path):
    with pytest.raises(ValueError, match="order='newest': in_order or live_first is expected"):
        start(tmp_path, order="newest")
    with pytest.raises(RecoveryError, match="give the absolute path of each"):
        recover(None, "orders", MergeSink("t", ["key"]), SOURCE, str(tmp_path / "live"))
    known["topic"] = Topic(dropped=3_050)
    with pytest.raises(RecoveryError, match=r"partition 0 .* begins at offset 3050, .* come to 3000: .*--table"):
        start(tmp_path)
    known |= {"topic": Topic(), "form": None}
    with pytest.raises(RecoveryError, match="is no table that MergeSink writes: live_first is for sinks that merge"):
        start(tmp_path)
