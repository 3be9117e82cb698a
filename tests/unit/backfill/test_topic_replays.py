"""Replays into a topic without Spark and broker: what is refused, what is sent, what stays, and what is left behind."""

import dataclasses
import errno
import json
import os
import time
from types import SimpleNamespace

import pytest
from kafka.errors import KafkaTimeoutError

from tidecast.backfill import into as into_table
from tidecast.backfill import namespace
from tidecast.backfill.final import check_final, watermark_ms, why_open
from tidecast.backfill.kept import kept_folder
from tidecast.backfill.spec import BackfillError, Spec
from tidecast.backfill.summary import Summary
from tidecast.backfill.topic import into, send
from tidecast.orders import ReplayOrder

HOUR = 3_600_000
OFFSETS = {"starts": {"events": {"0": 0}}, "ends": {"events": {"0": 100}}}
SOURCE = {"kafka.bootstrap.servers": "broker:9092", "kafka.fetch.max.wait.ms": "20"}
EMPTY = "spark.sql.streaming.noDataMicroBatches.enabled"


def order(name="fix", begin=HOUR, end=2 * HOUR):
    return ReplayOrder(name, "orders", time.time(), "run", **OFFSETS, begin_ms=begin, end_ms=end)


def progress(watermark=None, ran=True):
    told = {"durationMs": {"addBatch": 5} if ran else {"triggerExecution": 1}}
    if watermark is not None:
        told["eventTime"] = {"watermark": watermark}
    return SimpleNamespace(json=json.dumps(told))


def live(*reports):
    return SimpleNamespace(recentProgress=list(reports))


class Results:
    """A replay's results, and every step of the query that would keep them."""

    columns = ("topic", "key", "value")
    isStreaming = True

    def __getattr__(self, name):
        return self

    def __call__(self, *given, **named):
        return self


class Session:
    """A session of which only its options are asked."""

    def __init__(self):
        self.conf, self.options = self, {EMPTY: "true"}
        self.get, self.set = self.options.get, self.options.__setitem__


class Found:
    """Differences: keys with partition, new value and kind."""

    def __init__(self, rows):
        self.rows, self.held = rows, 0

    def persist(self):
        self.held += 1
        return self

    def unpersist(self):
        self.held -= 1

    def where(self, condition):
        assert condition == "kind <> 'equal'"
        return Found([row for row in self.rows if row[3] != "equal"])

    def select(self, *names):
        assert names == ("key", "partition", "new")
        return self

    def toLocalIterator(self):
        return iter([(key, at, new) for key, at, new, _ in self.rows])


class Producer:
    """Takes records until `most` are sent; those refused fail, or the flush does."""

    def __init__(self, refused=(), stuck=False):
        self.refused, self.stuck, self.records, self.closed = set(refused), stuck, [], 0

    def send(self, topic, key, value, partition, headers):
        good = len(self.records) not in self.refused
        self.records.append((topic, key, value, partition, headers))
        error = RuntimeError("gone")
        return SimpleNamespace(add_errback=lambda told: None if good else told(error))

    def flush(self, timeout):
        if self.stuck:
            raise KafkaTimeoutError("slow")

    def close(self):
        self.closed += 1


@pytest.fixture
def replays(tmp_path, monkeypatch):
    """Replays whose queries run nowhere, of a live query that is two hours on; `found` says what differs."""
    monkeypatch.setattr(into, "newest_records", lambda *given: None)
    monkeypatch.setattr(into, "kept_results", lambda spark, folder: None)
    state = SimpleNamespace(found=Found([]), producer=Producer(), asked=[], copies=[])
    monkeypatch.setattr(into, "replay_stream", lambda *given: state.copies.append(given[3]) or "records")
    monkeypatch.setattr(into, "differences", lambda newest, kept: state.found)
    monkeypatch.setattr(into, "summarise", lambda found, window: _summary(found.rows))
    monkeypatch.setattr(send, "producer", lambda *given, **options: state.producer)

    def plan(records, begin_ms, end_ms):
        state.asked.append((records, begin_ms, end_ms))
        return Results()

    running = live(progress("1970-01-01T02:00:00.000Z"))
    state.session = Session()
    state.of = into.TopicReplays(
        state.session, "results", plan, SOURCE, running, tmp_path / "job", into.WINDOW, "update", "1 second", "1"
    )
    return state


def _summary(rows):
    kinds = [kind for *_, kind in rows]
    differs, new, gone = (kinds.count(kind) for kind in ("differs", "new", "gone"))
    return Summary(len(rows), differs, new, gone, changed=0, due=differs + new + gone)


def folders(tmp_path):
    return sorted(path.name for path in (tmp_path / "job.backfills").glob("*"))


def read(replays, begun):
    """Start a replay, and let it keep a micro-batch without results."""
    replays.of.start(begun)
    (kept_folder(replays.of.place, begun.id) / "0").mkdir(parents=True)


def test_the_watermark_is_that_of_the_newest_batch_that_ran():
    later, earlier = progress("1970-01-01T03:00:00.000Z"), progress("1970-01-01T02:00:00.000Z")
    assert watermark_ms(live(earlier, later)) == 3 * HOUR
    idle = progress("1970-01-01T09:00:00.000Z", ran=False)
    assert watermark_ms(live(earlier, idle)) == 2 * HOUR  # the batch to come drops by the one of before
    assert watermark_ms(live(idle)) == 9 * HOUR  # nothing was to be done since it was started
    assert watermark_ms(live()) is None and watermark_ms(live(progress())) is None


def test_when_a_replay_ended_is_kept_beside_its_files_and_is_no_backfill(replays, tmp_path):
    replays.of.note_end(dataclasses.replace(order(), wanted="done", wall_time=5.5))
    assert (replays.of.end_of("fix"), replays.of.end_of("other")) == (5.5, 0.0)
    assert namespace.specs(tmp_path / "job") == []


@pytest.mark.parametrize(("module", "make"), [
    (into_table, lambda place: into_table.replay_into(None, place, None, {})),
    (into, lambda place: into.replay_into_topic(None, "results", None, {}, live(), place)),
])  # fmt: skip
def test_which_replay_has_begun_is_known_by_its_files_to_the_jobs_next_driver(module, make, monkeypatch, tmp_path):
    for name in ("own_session", "refuse_other_file_system"):
        monkeypatch.setattr(module, name, lambda *given: None)
    own = namespace.folder(tmp_path / "job", "fix")
    (own / namespace.CHECKPOINT).mkdir(parents=True)
    again, spec = make(str(tmp_path / "job")), Spec("fix", "results", HOUR, 2 * HOUR, "1", ("k",))
    namespace.write_spec(tmp_path / "job", spec)
    assert again.begun("fix") and not again.begun("other") and again.ended_at("fix") == 0.0
    namespace.write_spec(tmp_path / "job", dataclasses.replace(spec, state="published"))
    assert not again.begun("fix")  # it begins anew, and what it kept goes first


def test_windows_are_open_until_the_watermark_is_past_them():
    at = live(progress("1970-01-01T02:00:00.000Z"))
    assert why_open(at, 2 * HOUR) == ""
    assert "is at 1970-01-01 02:00:00" in why_open(at, 2 * HOUR + 1)
    assert "not known yet" in why_open(live(), HOUR)
    beyond = live(progress("+58831-06-25T07:06:40.000Z"))  # of a record whose stamp was read in the wrong unit
    assert why_open(beyond, 2 * HOUR) == ""
    check_final(beyond, 2 * HOUR, "fix")


def test_a_query_whose_plan_has_no_watermark_has_no_final_windows():
    check_final(live(), HOUR, "fix")  # it has just started, or has nothing to do
    check_final(live(progress(ran=False)), HOUR, "fix")
    with pytest.raises(BackfillError, match=r"replay fix: the live query has no watermark.*give its plan one"):
        check_final(live(progress()), HOUR, "fix")


def test_the_plan_is_given_the_range_and_what_is_open_leaves_no_file(replays, tmp_path):
    replays.of.start(order())
    assert replays.asked == [("records", HOUR, 2 * HOUR)]
    with pytest.raises(BackfillError, match="still change"):
        replays.of.start(order("later", HOUR, 3 * HOUR))
    with pytest.raises(BackfillError, match="no range"):
        replays.of.start(order("none", None, None))
    assert folders(tmp_path) == [".lock", "fix"]


def test_totals_are_read_without_batches_of_no_records_and_the_session_keeps_its_option(replays, monkeypatch):
    met = []
    monkeypatch.setattr(Results, "start", lambda self: met.append(replays.session.options[EMPTY]), raising=False)
    replays.of.start(order())
    log = dataclasses.replace(replays.of, output_mode="append")
    log.start(order("log", 0, HOUR))
    assert met == ["false", "true"] and replays.session.options == {EMPTY: "true"}


def test_a_driver_that_has_just_started_reads_on_and_publishes_nothing_before_it_knows(replays, tmp_path):
    replays.of = dataclasses.replace(replays.of, live=live())
    replays.found = Found([("job:a@0-1", 3, b"1", "differs")])
    replays.of.start(order())
    assert "not known yet" in replays.of.publish(order())
    assert folders(tmp_path) == [".lock", "fix"] and replays.producer.records == []


def test_two_replays_of_one_window_are_refused_and_two_beside_each_other_are_not(replays):
    replays.of.start(order())
    with pytest.raises(BackfillError, match=r"fix .*is running over a part"):
        replays.of.start(order("second", HOUR + 1))
    replays.of.start(order("before", 0, HOUR))
    with pytest.raises(BackfillError, match="exists with begin"):
        replays.of.start(order("fix", HOUR + 1))


def test_a_publish_whose_files_cannot_be_removed_is_done_and_the_next_replay_of_its_name_begins_without_them(
    replays, monkeypatch, caplog
):
    replays.found = Found([("job:a@0-1", 3, b"1", "differs")])
    read(replays, order())
    own = namespace.folder(replays.of.place, "fix")
    (own / namespace.CHECKPOINT).mkdir()

    def stuck(path):
        raise OSError(39, "Directory not empty")

    with monkeypatch.context() as held:
        held.setattr(namespace.shutil, "rmtree", stuck)
        assert replays.of.publish(order()) == ""
    assert len(replays.producer.records) == 1 and not namespace.runs(replays.of.place, "fix")
    assert "what backfill fix has made" in caplog.text and "Directory not empty" in caplog.text
    assert (own / namespace.CHECKPOINT).is_dir() and (own / namespace.KEPT).is_dir()
    assert not (own / namespace.SENT).exists()  # or one that is cancelled before its start would have sent a part
    replays.of.start(order())
    assert sorted(path.name for path in own.iterdir()) == [namespace.LEASE, namespace.SPEC]


def test_what_one_plan_has_read_is_not_gone_on_with_by_another(replays):
    read(replays, order())
    replays.of.close()
    anew = dataclasses.replace(replays.of, version="2")
    with pytest.raises(BackfillError, match=r"fix .* with plan '1', not '2': cancel it, and order the range again"):
        anew.start(order())
    with pytest.raises(BackfillError, match=r"fix .* was begun and is not published"):
        anew.start(order("another"))
    anew.cancel(order())
    anew.start(order())


def test_only_what_differs_is_sent_where_the_key_is_and_nothing_is_left_behind(replays, tmp_path):
    rows = [
        ("job:a@0-1", 3, bytearray(b"new"), "differs"),
        ("job:b@0-1", 4, bytearray(b"same"), "equal"),
        ("job:c@0-1", None, bytearray(b"first"), "new"),
        ("job:d@0-1", 5, None, "gone"),
    ]
    replays.found = Found(rows)
    read(replays, order())
    assert replays.of.compare(order()).startswith("3 of 4 windows differ")
    assert replays.of.publish(order()) == ""
    header = [("tidecast-backfill", b"fix")]
    assert replays.producer.records == [
        ("results", b"job:a@0-1", b"new", 3, header),
        ("results", b"job:c@0-1", b"first", None, header),
        ("results", b"job:d@0-1", None, 5, header),
    ]
    assert replays.producer.closed == 1 and replays.found.held == 0
    assert folders(tmp_path) == [".lock"]


def test_a_publish_that_was_cut_off_keeps_its_files_and_sends_the_rest_once_it_goes_on(replays, tmp_path):
    rows = [("job:a@0-1", 3, b"1", "differs"), ("job:b@0-1", 3, b"2", "differs")]
    replays.found, replays.producer = Found(rows), Producer(refused={1})
    read(replays, order())
    with pytest.raises(BackfillError, match="not all of 2 corrected records are on results"):
        replays.of.publish(order())
    assert folders(tmp_path) == [".lock", "fix"] and replays.producer.closed == 1
    replays.found, replays.producer = Found([(*rows[0][:3], "equal"), rows[1]]), Producer()
    read(replays, order())
    replays.of.publish(order())
    assert [record[1] for record in replays.producer.records] == [b"job:b@0-1"]
    assert folders(tmp_path) == [".lock"]


def test_a_broker_that_does_not_answer_is_an_error_that_says_how_to_go_on(replays):
    replays.found, replays.producer = Found([("job:a@0-1", 3, b"1", "differs")]), Producer(stuck=True)
    read(replays, order())
    with pytest.raises(BackfillError, match="go on with the replay"):
        replays.of.publish(order())


def test_a_repeated_publish_connects_to_nothing(replays):
    replays.found = Found([("job:a@0-1", 3, b"1", "equal")])
    read(replays, order())
    replays.of.publish(order())
    assert replays.producer.records == [] and replays.producer.closed == 0


def test_a_replay_whose_files_are_gone_is_not_taken_for_one_without_results(replays):
    replays.found = Found([("job:a@0-1", 3, None, "gone")])
    replays.of.start(order())
    for act in (replays.of.compare, replays.of.publish):
        with pytest.raises(BackfillError, match=r"replay fix has no results in .*: cancel it, and order"):
            act(order())
    assert replays.producer.records == [] and not namespace.runs(replays.of.place, "fix")


def test_a_replay_keeps_its_lease_until_it_is_published_also_where_its_agent_ends_meanwhile(replays, tmp_path):
    class Ending(Producer):
        def flush(self, timeout):
            replays.of.close()
            with pytest.raises(namespace.LeaseError, match="still running in this process"):
                replays.of.start(order())

    replays.found, replays.producer = Found([("job:a@0-1", 3, b"1", "differs")]), Ending()
    read(replays, order())
    assert replays.of.publish(order()) == ""
    assert len(replays.producer.records) == 1 and folders(tmp_path) == [".lock"]


def test_an_agent_that_has_ended_publishes_nothing_that_the_next_one_may_publish(replays):
    replays.found = Found([("job:a@0-1", 3, b"1", "differs")])
    read(replays, order())
    replays.of.close()
    with pytest.raises(BackfillError, match="replay fix: its agent has ended; the job's next one publishes it"):
        replays.of.publish(order())
    assert replays.producer.records == []


def test_a_cancelled_replay_leaves_nothing_behind(replays, tmp_path):
    read(replays, order())
    assert replays.of.cancel(order()) == ""
    assert folders(tmp_path) == [".lock"] and replays.producer.records == []
    assert replays.of.cancel(order("never")) == ""


def test_one_that_is_cancelled_after_a_publish_that_was_cut_off_says_so_and_the_next_one_of_its_name_does_not(replays):
    rows = [("job:a@0-1", 3, b"1", "differs"), ("job:b@0-1", 3, b"2", "differs")]
    replays.found, replays.producer = Found(rows), Producer(refused={1})
    read(replays, order())
    with pytest.raises(BackfillError, match="not all of 2"):
        replays.of.publish(order())
    replays.of = dataclasses.replace(replays.of, leases={})  # of the job's next agent
    assert replays.of.cancel(order()) == "some of its corrected records may be on results: order the range again"
    read(replays, order())
    assert replays.of.cancel(order()) == ""


def test_results_that_are_no_records_are_refused_and_nothing_of_them_stands_in_the_way(replays, monkeypatch, tmp_path):
    monkeypatch.setattr(Results, "columns", ("key", "n"))
    with pytest.raises(BackfillError, match=r"lack the columns \['value'\]"):
        replays.of.start(order())
    assert folders(tmp_path) == [".lock"] and not replays.of.leases


def test_a_range_of_a_table_is_copied_beside_the_replay_by_whom_its_lease_is(replays, monkeypatch, tmp_path):
    held = []

    def stream(spark, order, source, copy):
        held.append((copy, namespace.runs(tmp_path / "job", order.id)))
        raise RuntimeError("killed in the copy")

    replays.of.start(order("other", 0, HOUR))
    assert replays.copies == [tmp_path / "job.backfills" / "other" / "range"]
    monkeypatch.setattr(into, "replay_stream", stream)
    with pytest.raises(RuntimeError, match="killed in the copy"):
        replays.of.start(dataclasses.replace(order(), table="/lake/orders"))
    assert held == [(tmp_path / "job.backfills" / "fix" / "range", True)]
    assert folders(tmp_path) == [".lock", "other"]  # what was begun before is gone on with, and this was not
    with pytest.raises(RuntimeError, match="killed in the copy"):
        replays.of.start(order("other", 0, HOUR))
    assert folders(tmp_path) == [".lock", "other"] and not namespace.runs(tmp_path / "job", "other")


@pytest.mark.parametrize(
    "full", [OSError(errno.EDQUOT, "quota"), RuntimeError("java.io.IOException: No space left on device")]
)
def test_a_disk_that_is_full_while_a_range_is_copied_is_named_and_nothing_of_it_is_left(
    replays, monkeypatch, tmp_path, full
):
    def stream(*given):
        raise full

    monkeypatch.setattr(into, "replay_stream", stream)
    says = (
        rf"^backfill fix \[1970-01-01 01:00:00, 1970-01-01 02:00:00\) cannot be copied: no room beside {tmp_path}/job; "
        "topic results is as it was: free some space and go on with the same id$"
    )
    with pytest.raises(BackfillError, match=says):
        replays.of.start(dataclasses.replace(order(), table="/lake/orders"))
    assert folders(tmp_path) == [".lock"] and not replays.of.leases


class LetGo(dict):
    """Leases of which another thread lets go as soon as somebody has looked whether they are there."""

    def __contains__(self, name):
        there = super().__contains__(name)
        self.clear()
        return there


def test_an_agent_that_ends_lets_go_also_while_a_publication_does(replays):
    dataclasses.replace(replays.of, leases=LetGo(fix=os.open(os.devnull, os.O_RDONLY))).cancel(order())
