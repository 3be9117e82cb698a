"""Replays beside live on real Delta: shadow, comparison, one publish, rounds of what live changed, refusals."""

import json
import os
import shutil
import signal
import threading
import time
from contextlib import contextmanager
from math import isnan

import pytest
from pyspark.sql import functions as F

from tests.fakes.full_disk import no_room, pid_of
from tests.fakes.result_tables import HOURLY, SCHEMA, as_rows, live, of_others, seen, told, version
from tests.fakes.waiting import wait_until
from tidecast.backfill import publish as publishing
from tidecast.backfill.difference import compare
from tidecast.backfill.namespace import KEPT, discard_written, folder
from tidecast.backfill.publish import publish, settle
from tidecast.backfill.running import cancel, list_backfills, prepare
from tidecast.backfill.shadow import begin_round, finish, sink, write
from tidecast.backfill.spec import BackfillError
from tidecast.merge import MergeError, MergeSink
from tidecast.merge.table import set_properties
from tidecast.recovery.checkpoint import RecoveryError
from tidecast.recovery.outage import _window_ms

pytestmark = pytest.mark.spark
OLD = HOURLY
TRUE = {("a", 0): 6, ("c", 0): 3, ("a", 10): 1}  # of the range [0, 20)
NEW = {**TRUE, ("a", 20): 50}


@pytest.fixture
def table(hourly, tmp_path):
    """One that a live query has written."""
    return shutil.copytree(hourly, tmp_path / "lake" / "hourly")


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def data_files(folder):
    """Also of a folder that goes meanwhile."""
    found = ((at, name) for at, _, names in os.walk(folder) if "_delta_log" not in at for name in names)
    return {(at, name) for at, name in found if name.endswith(".parquet")}


@contextmanager
def full_disk(spark, doing):
    """What is done says that the disk is full."""
    says = f"cannot be {doing}: no room beside .*hourly; the live table is as it was: free some space"
    with no_room(spark), pytest.raises(BackfillError, match=says):
        yield


@contextmanager
def killed(spark, table, at, image):
    """Copy all that a kill of the driver would leave on the disk once a data file is new at a place; it lives on.

    Its JVM stands still meanwhile, and this process waits for it: no byte of theirs comes between two of the copy.
    """
    jvm, known, over, struck = pid_of(spark), data_files(at), threading.Event(), []

    def strike():
        wait_until(lambda: over.is_set() or data_files(at) - known, "a data file", every_s=0.002)
        os.kill(jvm, signal.SIGSTOP)
        struck.append("late" if over.is_set() else "in time")
        try:
            shutil.copytree(table.parent, image, ignore=shutil.ignore_patterns("*.new"))  # these are half written
        finally:
            os.kill(jvm, signal.SIGCONT)

    other = threading.Thread(target=strike)
    other.start()
    try:
        yield
    finally:
        over.set()
        other.join()
    assert struck == ["in time"]


def test_a_replay_is_compared_published_once_and_cancelled_and_a_full_disk_or_a_kill_changes_nothing(
    one_partition, table, tmp_path
):
    spark = one_partition
    sink_ = live(spark, table)
    before = version(table)
    # a window that is in the range in part only, and one outside of it
    replayed = told(spark, {**TRUE, ("a", 15): 999, ("z", 20): 999, ("z", -10): 999})
    with prepare(spark, table, "fix", 0, 20, "1") as backfill:
        with full_disk(spark, "written"):
            write(backfill, replayed)
        assert not backfill.spec.last.written
        with killed(spark, table, folder(table, "fix"), tmp_path / "early"):
            write(backfill, replayed)
        summary = compare(backfill)
        assert (summary.windows, summary.differs, summary.new, summary.gone, summary.changed) == (4, 1, 1, 1, 0)
        assert summary.text() == (
            "3 of 4 windows differ (1 other values, 1 new, 1 gone), worst key b: orders 7 → 0, 7 off in 1 window"
        )
        with pytest.raises(BackfillError, match="tolerance -1"):
            compare(backfill, -1)
        with full_disk(spark, "published"):
            publish(backfill)
        assert version(table) == before and seen(table) == OLD
        assert [(one.spec.name, one.running) for one in list_backfills(table)] == [("fix", True)]
        with killed(spark, table, table, tmp_path / "late"):
            done = publish(backfill)
        assert (done.committed, done.waiting, done.summary.due) == (True, 0, 3)
        assert version(table) == before + 1 and seen(table) == NEW
        # live knows less of what was corrected: noted, and not shown
        sink_(told(spark, {("a", 0): 5, ("b", 0): 8}), 1)
        again = publish(backfill)
        assert (again.committed, again.waiting) == (False, 2) and version(table) == before + 2
    assert seen(table) == NEW
    kept = files(table)
    assert cancel(table, "fix") and list_backfills(table) == []
    assert files(table) == kept and files(table.parent / "hourly.backfills") == [".lock"]
    assert seen(table) == NEW
    goes_on_after_a_kill(spark, tmp_path / "early" / "hourly", tmp_path / "late" / "hourly", before)


def goes_on_after_a_kill(spark, early, late, before):
    """Readers have seen nothing of it, or all; the same id goes on, and publishes once."""
    (left,) = list_backfills(early)
    assert (left.running, left.spec.state) == (False, "open")
    assert version(early) == before and seen(early) == OLD
    (left,) = list_backfills(late)
    assert (left.running, left.spec.state, left.spec.last.written) == (False, "open", True)
    committed = version(late) > before  # where the copy came a moment too late
    assert seen(late) == (NEW if committed else OLD)
    with prepare(spark, late, "fix", 0, 20, "1") as backfill:
        assert publish(backfill).committed != committed
    assert version(late) == before + 1 and seen(late) == NEW


def test_with_a_tolerance_a_result_that_is_no_finite_number_is_corrected(one_partition, tmp_path):
    table, inf, nan = tmp_path / "means", float("inf"), float("nan")
    kinds = {  # before and after
        ("nan", 0): (nan, 5.0), ("now nan", 0): (5.0, nan), ("inf", 0): (inf, 5.0), ("other inf", 0): (-inf, inf),
        ("near", 0): (1.0, 1.0 + 1e-12), ("both nan", 0): (nan, nan), ("both inf", 0): (inf, inf),
    }  # fmt: skip

    def rows(side):
        made = {key: number[side] for key, number in kinds.items()}
        return one_partition.createDataFrame(as_rows(made), SCHEMA.replace("orders bigint", "orders double"))

    MergeSink(str(table), ["shop"])(rows(0), 0)
    with prepare(one_partition, table, "fix", 0, 10, "1") as backfill:
        write(backfill, rows(1))
        summary = compare(backfill, 1e-9)
        assert (summary.windows, summary.differs, summary.due) == (7, 4, 4)
        assert summary.text() == "4 of 7 windows differ (4 other values, 0 new, 0 gone)"
        publish(backfill, 1e-9)
    found = seen(table)
    assert isnan(found.pop(("now nan", 0))) and isnan(found.pop(("both nan", 0)))
    assert found == {
        ("nan", 0): 5.0, ("inf", 0): 5.0, ("other inf", 0): inf, ("near", 0): 1.0, ("both inf", 0): inf
    }  # fmt: skip


def test_what_live_changes_meanwhile_is_left_and_computed_again(one_partition, table, tmp_path, monkeypatch):
    """Live commits before the publish, while its first merge runs, and between the next one and its comparison."""
    spark = one_partition
    live_ = live(spark, table)
    merges, merge = [], publishing.merge
    begun, told_ = tmp_path / "begun", tmp_path / "told"

    def waits(_):
        """In the merge, once: until live has committed."""
        try:
            begun.touch(exist_ok=False)
        except FileExistsError:
            return True
        end = time.monotonic() + 120
        while not told_.exists() and time.monotonic() < end:
            time.sleep(0.02)
        return True

    def tell():
        try:
            wait_until(begun.exists, "the merge to run")
            live_(told(spark, {("b", 0): 8}), 2)
        finally:
            told_.touch()

    def beside(form, source, among, matched):
        merges.append(1)
        if len(merges) == 1:
            from pyspark.sql import functions as F

            other = threading.Thread(target=tell)
            other.start()
            try:
                return merge(form, source.where(F.udf(waits, "boolean")("shop")), among, matched)
            finally:
                other.join()
        if len(merges) == 2:
            live_(told(spark, {("c", 0): 1}), 3)
        return merge(form, source, among, matched)

    monkeypatch.setattr(publishing, "merge", beside)
    asked, shown = [], []
    with prepare(spark, table, "fix", 0, 20, "1") as backfill:
        write(backfill, told(spark, TRUE))
        live_(told(spark, {("a", 10): 2}), 1)

        def recompute(windows):
            shown.append(seen(table))
            asked.append({(row.shop, row._window_start) for row in windows.collect()})
            return told(spark, {("a", 10): 3, ("c", 0): 4, ("a", 0): 999})

        done = settle(backfill, recompute)
        assert done.waiting == 0 and list_backfills(table)[0].spec.state == "published"
    assert asked == [{("a", 10)}, {("b", 0), ("c", 0)}]
    assert len(merges) == 3, "the merge that ran beside live's was not refused"
    # in the second round, of what live had told meanwhile, its own
    assert shown == [{**OLD, ("a", 10): 2}, {("a", 0): 6, ("b", 0): 8, ("c", 0): 1, ("a", 10): 3, ("a", 20): 50}]
    assert seen(table) == {("a", 0): 6, ("c", 0): 4, ("a", 10): 3, ("a", 20): 50}


def test_a_replay_by_micro_batches_goes_on_where_it_stands_and_another_plan_waits_for_its_promotion(
    one_partition, table, tmp_path
):
    """Of another plan than live's it is compared, and published once that plan is live's."""
    spark = one_partition
    source = tmp_path / "source"
    source.mkdir()
    for number, rows in enumerate(
        ({("a", 0): 4, ("b", 0): 9}, {("a", 0): 6, ("b", 0): None, ("c", 0): 3, ("a", 10): 1})
    ):
        names = ("shop", "_window_start", "_window_end", "orders", "_deleted")
        lines = [json.dumps(dict(zip(names, row, strict=True))) for row in as_rows(rows)]
        file = source / f"{number}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (number, number))  # files are read by their age

    def run(backfill, take):
        stream = spark.readStream.schema(
            "shop string, _window_start bigint, _window_end bigint, orders bigint, _deleted boolean"
        )
        stream = stream.option("maxFilesPerTrigger", 1).json(str(source))
        writer = stream.writeStream.foreachBatch(take).trigger(availableNow=True)
        writer.option("checkpointLocation", str(backfill.checkpoint)).start().awaitTermination(300)

    batches = []
    with prepare(spark, table, "fix", 0, 20, "2") as backfill:
        whole = sink(backfill)

        def dies(batch, number):
            batches.append(number)
            whole(batch, number)
            if number == 1:
                raise RuntimeError("killed after the merge, before the micro-batch is noted as done")

        with pytest.raises(Exception, match="killed after the merge"):
            run(backfill, dies)
        with pytest.raises(BackfillError, match="not written to its end"):
            compare(backfill)
    with prepare(spark, table, "fix", 0, 20, "2") as backfill:
        whole = sink(backfill)
        run(backfill, lambda batch, number: (batches.append(number), whole(batch, number)))
        kept = folder(table, "fix") / KEPT
        assert sorted(path.name for path in kept.iterdir()) == ["0", "1"] and not backfill.shadow.exists()
        finish(backfill)
        assert batches == [0, 1, 1] and not kept.exists() and version(backfill.shadow) == 0
        assert compare(backfill).differs == 1
        with pytest.raises(BackfillError, match="runs plan '2', the live query runs '1': it can be compared only"):
            publish(backfill)
        assert seen(table) == OLD
        set_properties(spark, str(table), plan="2")  # as the live query of that plan does before its first batch
        assert publish(backfill).committed
    assert seen(table) == NEW


def test_a_finished_range_and_an_open_gap_begin_anew_with_a_later_plan(one_partition, table):
    """As where the plan was mended and deployed since, or the driver was restarted with another one."""
    spark = one_partition
    with prepare(spark, table, "fix", 0, 20, "1") as first:
        write(first, told(spark, TRUE))
        assert publish(first).committed
    set_properties(spark, str(table), plan="2")  # as the live query of that plan does before its first batch
    with prepare(spark, table, "fix", 0, 30, "2") as again:
        assert (again.spec.plan, again.spec.end, again.spec.last.number) == ("2", 30, 1) and not again.spec.last.written
        write(again, told(spark, {**TRUE, ("a", 0): 7, ("a", 20): 50}))
        assert publish(again).committed and seen(table) == {**NEW, ("a", 0): 7}
    with prepare(spark, table, "fix", 0, 30, "2", follow=True) as followed:
        assert followed.spec.last.written
    discard_written(table, "fix")
    with prepare(spark, table, "fix", 0, 30, "2", follow=True) as followed:
        assert not followed.spec.last.written  # nothing is left to be followed
        write(followed, told(spark, {**TRUE, ("a", 0): 7, ("a", 20): 50}))
        assert not publish(followed).committed
    prepare(spark, table, "later", 0, 30, "2").close()  # what it publishes is not taken back by an older one
    with pytest.raises(BackfillError, match="a later one took over its range"):
        prepare(spark, table, "fix", 0, 30, "2", follow=True)
    with pytest.raises(BackfillError, match="exists with plan '2', not '3': cancel it, and order the range again"):
        prepare(spark, table, "later", 0, 30, "3")  # which is open
    assert cancel(table, "later")
    with prepare(spark, table, "fix", 20, 30, "2", most=0) as gap:
        assert gap.spec.begin == 20 and not gap.spec.last.written  # of one that was taken over all begins anew
        gap.shadow.mkdir()
        gap.save(gap.spec.with_written())
    with prepare(spark, table, "fix", 20, 30, "3", most=0) as gap:
        assert gap.spec.plan == "3" and not gap.spec.last.written and not gap.shadow.exists()


def test_windows_of_several_lengths_are_refused_where_they_stand_in_the_range_or_are_replayed(one_partition, tmp_path):
    table = tmp_path / "changed"

    def of(rows):
        return told(one_partition, rows).withColumn("_window_end", F.expr("_window_start + if(shop = 'long', 10, 5)"))

    sink_ = MergeSink(str(table), ["shop"])
    sink_(of({("long", 0): 1, ("short", 0): 2, ("long", 20): 3, ("short", 40): 4}), 0)
    for begin, end in ((2, 20), (7, 42)):  # a window reaches over the begin of one, and over the end of the other
        with pytest.raises(BackfillError, match="windows of 5 and of 10 ms: a replay is for windows of one length"):
            prepare(one_partition, table, "fix", begin, end, "1")
    with pytest.raises(RecoveryError, match="windows of 5 and of 10 ms: live_first is for windows of one length"):
        _window_ms(one_partition, str(table))
    assert not (tmp_path / "changed.backfills").exists()
    sink_(of({("long", 0): None}), 1)  # as a publish with windows of another length leaves it
    beside = {("long", 20): 3, ("short", 40): 4}
    with prepare(one_partition, table, "fix", 0, 20, "1") as backfill:
        write(backfill, of({("long", 0): 7, ("short", 0): 8}))
        for act in (compare, publish):
            with pytest.raises(BackfillError, match="windows of 5 and 10 ms: a replay is for windows of one length"):
                act(backfill)
        assert seen(table) == {("short", 0): 2, **beside}
        write(backfill, of({("short", 0): 5, ("short", 5): 6}))
        assert publish(backfill).summary.due == 2
    assert seen(table) == {("short", 0): 5, ("short", 5): 6, **beside}


def test_what_does_not_fit_is_refused_with_a_remedy(one_partition, table, tmp_path):
    spark = one_partition
    rows = told(spark, OLD)

    def begin(name="fix", begin=0, end=20, plan="1", at=table):
        return prepare(spark, at, name, begin, end, plan, now=100)

    with pytest.raises(BackfillError, match="is no Delta table, so it is a sink that does not merge: refused for over"):
        begin(at=tmp_path / "absent")
    of_others(tmp_path)
    with pytest.raises(BackfillError, match="is no Delta table"):
        begin(at=tmp_path / "parquet")
    with pytest.raises(MergeError, match="plain is a sink that does not merge"):
        begin(at=tmp_path / "plain")
    assert not (tmp_path / "plain.backfills").exists()
    assert _window_ms(spark, str(table)) == 10
    with pytest.raises(BackfillError, match="is empty"):
        begin(end=0)
    with pytest.raises(BackfillError, match="reaches into the future"):
        begin(end=101)
    mine = begin()
    with pytest.raises(BackfillError, match=r"fix of .* is still running in this process"):
        begin()
    with pytest.raises(BackfillError, match=r"fix .* is running over a part of other .*wait until it ends"):
        begin("other", 10, 30)
    with pytest.raises(BackfillError, match="exists with end 20, not 30: give another id, or cancel it"):
        begin(end=30)
    begin("beside", 20, 30).close()
    mine.close()
    with pytest.raises(BackfillError, match=r"fix .* was begun and is not published: go on with it, or\s+cancel it"):
        begin("other", 10, 20)
    with begin() as mine:
        with pytest.raises(BackfillError, match="write its replay before windows are computed again"):
            begin_round(mine)
        for early in (compare, publish):
            with pytest.raises(BackfillError, match="not written to its end"):
                early(mine)
        with pytest.raises(BackfillError, match="has told nothing: write its replay first"):
            finish(mine)
        with pytest.raises(MergeError, match="values"):
            write(mine, rows.withColumnRenamed("orders", "many"))
    assert seen(table) == OLD
