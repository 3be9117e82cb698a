"""What a replay keeps, and what of it differs from a topic: on small frames, without a broker."""

import pytest

from configs.settings import load
from pipelines.jobs import word_count
from pipelines.jobs.launch import Launch
from pipelines.jobs.windows import JOB, result_key
from tests.fakes.full_disk import no_room
from tidecast.backfill.kept import kept_folder
from tidecast.backfill.spec import BackfillError, Spec
from tidecast.backfill.topic.difference import differences, summarise
from tidecast.backfill.topic.into import WINDOW
from tidecast.backfill.topic.kept import keep, kept_results, window_of

pytestmark = pytest.mark.spark
SPEC = Spec("fix", "results", 100, 120, "1", ("key",))


def batch(spark, *rows):
    return spark.createDataFrame(rows, "topic string, key string, value string").coalesce(1)


def name(key, begin):
    return f"job:{key}@{begin}-{begin + 10}"


def read(frame):
    return {row.key: None if row.value is None else bytes(row.value).decode() for row in frame.collect()}


def test_the_newest_result_of_whole_windows_is_kept_and_a_repeated_batch_changes_nothing(one_partition, tmp_path):
    spark, take, folder = one_partition, keep(SPEC, tmp_path / "job", WINDOW), kept_folder(tmp_path / "job", "fix")
    assert read(kept_results(spark, folder)) == {}
    first = [("t", name("a", 100), "1"), ("t", name("a", 95), "part"), ("t", name("b@1-2", 110), "ü")]
    take(batch(spark, *first), 0)
    # Of a change log: the old result goes and the new one comes in one batch.
    later = batch(spark, ("t", name("a", 100), None), ("t", name("a", 100), "2"), ("t", name("c", 111), "part"))
    for _ in range(2):
        take(later, 10)
    assert read(kept_results(spark, folder)) == {name("a", 100): "2", name("b@1-2", 110): "ü"}
    take(batch(spark, ("t", name("a", 100), None)), 11)
    assert read(kept_results(spark, folder))[name("a", 100)] is None


def test_the_main_jobs_replays_take_its_own_results_and_those_of_no_other_query_on_the_topic(one_partition, tmp_path):
    launch = Launch(JOB, one_partition, load(kafka={"bootstrap": "nowhere:9092"}), tmp_path, {})
    start, end = window_of(word_count.replayable(launch, None).start.__self__.window)
    keys = [result_key(job, "a\nb@1-2", 100, 110) for job in (JOB, "key_estimates", f"not_{JOB}", f"other:{JOB}")]
    found = one_partition.createDataFrame([(key,) for key in keys], "key string").select("key", start, end)
    assert [tuple(row) for row in found.where(start.isNotNull()).collect()] == [(keys[0], 100, 110)]


def test_a_key_without_a_window_stops_the_replay(one_partition, tmp_path):
    with pytest.raises(Exception, match="result under key plain: no window"):
        keep(SPEC, tmp_path / "job", WINDOW)(batch(one_partition, ("t", "plain", "1")), 0)


def test_a_full_disk_is_named_with_what_stands_and_the_batch_is_kept_once_there_is_room(one_partition, tmp_path):
    take, some = keep(SPEC, tmp_path / "job", WINDOW), batch(one_partition, ("t", name("a", 100), "1" * 99))
    says = r"^backfill fix \[.*\) cannot be written: no room beside \S+/job; topic results is as it was: free some"
    with no_room(one_partition), pytest.raises(BackfillError, match=says):
        take(some, 0)
    take(some, 0)
    assert read(kept_results(one_partition, kept_folder(tmp_path / "job", "fix"))) == {name("a", 100): "1" * 99}


def test_each_key_is_equal_differs_is_new_or_gone(one_partition):
    newest = one_partition.createDataFrame(
        [("same", b"1", 0), ("other", b"1", 2), ("gone", b"1", 1), ("deleted", None, 1), ("cleared", b"7", 3)],
        "key string, value binary, partition int",
    )
    kept = one_partition.createDataFrame(
        [("same", b"1"), ("other", b"2"), ("new", b"3"), ("deleted", None), ("cleared", None)],
        "key string, value binary",
    )
    found = differences(newest, kept)
    rows = {row.key: (row.partition, row.kind) for row in found.collect()}
    assert rows == {
        "same": (0, "equal"), "other": (2, "differs"), "gone": (1, "gone"), "new": (None, "new"),
        "cleared": (3, "gone"),
    }  # fmt: skip
    summary = summarise(found, WINDOW)
    assert (summary.windows, summary.differs, summary.new, summary.gone, summary.due) == (5, 1, 1, 2, 4)
    assert summary.text().startswith("4 of 5 windows differ (1 other values, 1 new, 2 gone)")


def test_results_in_windows_of_several_lengths_are_refused_and_a_change_of_their_length_is_not(one_partition):
    newest = one_partition.createDataFrame([("a@0-10", b"1", 0)], "key string, value binary, partition int")

    def compared(*keys):
        kept = one_partition.createDataFrame([(key, b"1") for key in keys], "key string, value binary")
        return summarise(differences(newest, kept), WINDOW)

    with pytest.raises(BackfillError, match="windows of 5 and 13 ms: a replay is for windows of one length"):
        compared("a@2-15", "b@0-5")
    assert compared("a@0-5", "a@5-10").due == 3
