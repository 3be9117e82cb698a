"""The folder beside the table: leases that end with their process, specs that are whole, removals that are careful."""

import os
import signal
import subprocess
import sys

import pytest

from configs.settings import ROOT
from tidecast.backfill import namespace
from tidecast.backfill.kept import discard_orphans, kept_batches, kept_folder
from tidecast.backfill.running import cancel, check_range_is_free, list_backfills
from tidecast.backfill.spec import BackfillError, Spec
from tidecast.replay.replayable import HeldElsewhereError

HOLD = """
import sys, time
from pathlib import Path
from tidecast.backfill.namespace import take_lease
take_lease(Path(sys.argv[1]), "fix")
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def table(tmp_path):
    (tmp_path / "hourly").mkdir()
    (tmp_path / "hourly" / "part.parquet").write_text("rows")
    return tmp_path / "hourly"


def begun(table, name="fix"):
    spec = Spec(name, str(table), 0, 10, "1", ("k",)).started_over(3, 4)
    (namespace.folder(table, name) / "shadow").mkdir(parents=True)
    namespace.write_spec(table, spec)
    return spec


def test_what_was_written_is_listed(table):
    spec = begun(table)
    assert [(one.spec, one.running) for one in list_backfills(table)] == [(spec, False)]
    assert namespace.folder(table, "fix") == table.parent / "hourly.backfills" / "fix"


def test_no_table_has_no_backfills(tmp_path):
    assert list_backfills(tmp_path / "none") == []
    assert not cancel(tmp_path / "none", "fix") and not (tmp_path / "none.backfills").exists()


def test_a_lease_ends_with_its_process_however_it_ends(table):
    begun(table)
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(table)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout.readline() == "held\n"
        assert list_backfills(table)[0].running
        for take in (lambda: namespace.take_lease(table, "fix"), lambda: cancel(table, "fix")):
            with pytest.raises(BackfillError, match=f"fix of {table} is running in process {holder.pid}: wait for it"):
                take()
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        holder.stdout.close()
    assert not list_backfills(table)[0].running
    assert cancel(table, "fix") and list_backfills(table) == []


def test_a_cancel_removes_what_is_its_own_and_nothing_else(table):
    begun(table)
    begun(table, "other")
    (namespace.folder(table, "other") / "notes.txt").write_text("a person's")
    (namespace.folder(table, "fix") / "checkpoint" / "0").mkdir(parents=True)
    assert cancel(table, "fix") and cancel(table, "other")
    left = sorted(str(path.relative_to(table.parent)) for path in table.parent.rglob("*") if path.is_file())
    assert left == ["hourly.backfills/.lock", "hourly.backfills/other/notes.txt", "hourly/part.parquet"]
    assert not cancel(table, "fix")


@pytest.mark.parametrize(("there", "stays"), [
    (("position", "kept"), True), (("kept",), False), (("checkpoint", "shadow", "kept"), False),
])  # fmt: skip
def test_micro_batches_without_their_checkpoint_go(table, there, stays):
    """The last as an earlier release left it, whose checkpoint says nothing of them."""
    own = namespace.folder(table, "fix")
    for part in there:
        (own / part / "10").mkdir(parents=True)
    discard_orphans(table, "fix")
    assert kept_batches(kept_folder(table, "fix")) == ([str(own / "kept" / "10")] if stays else [])
    assert [part for part in there if (own / part).exists()] == [part for part in there if part != "kept" or stays]
    namespace.write_spec(table, Spec("fix", str(table), 0, 10, "1", ("k",)))
    assert cancel(table, "fix") and not own.exists()


def test_a_replay_has_begun_from_its_checkpoint_on_and_until_it_is_over_or_begins_anew(table):
    begun(table)
    position = namespace.folder(table, "fix") / "position" / "0"
    assert not namespace.has_begun(table, "fix")
    position.mkdir(parents=True)
    assert namespace.has_begun(table, "fix") and not namespace.has_begun(table, "other")
    namespace.discard_written(table, "fix")
    assert not namespace.has_begun(table, "fix")
    position.mkdir(parents=True)
    namespace.discard(table, "fix", namespace.SPEC)
    assert not namespace.has_begun(table, "fix")


def test_of_a_published_one_the_spec_stays_and_what_cannot_be_removed(table, monkeypatch):
    begun(table)
    own, rmtree = namespace.folder(table, "fix"), namespace.shutil.rmtree
    for part in ("position", "kept", "range", "checkpoint"):
        (own / part).mkdir()

    def refuses(path):
        if path.name == "position":
            raise OSError(39, "Directory not empty")
        rmtree(path)

    with monkeypatch.context() as patched:
        patched.setattr(namespace.shutil, "rmtree", refuses)
        namespace.discard_written(table, "fix")
    assert sorted(path.name for path in own.iterdir()) == ["position", "spec.json"]
    namespace.discard_written(table, "fix")
    assert sorted(path.name for path in own.iterdir()) == ["spec.json"]


def test_a_link_in_the_place_of_a_shadow_is_removed_and_what_it_leads_to_is_not(table):
    begun(table)
    (namespace.folder(table, "fix") / "shadow").rmdir()
    (namespace.folder(table, "fix") / "shadow").symlink_to(table)
    assert cancel(table, "fix") and (table / "part.parquet").exists()


@pytest.mark.parametrize("name", ["../hourly", "a/b", ".lock"])
def test_a_cancel_of_what_is_no_id_is_refused(table, name):
    with pytest.raises(BackfillError, match="letters, digits"):
        cancel(table, name)
    assert (table / "part.parquet").exists()


def test_a_spec_is_replaced_whole_or_not_at_all(table, monkeypatch):
    spec = begun(table)
    monkeypatch.setattr(namespace.os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        namespace.write_spec(table, spec.with_written())
    assert namespace.read_spec(table, "fix") == spec


def test_a_broken_spec_is_named(table):
    begun(table)
    (namespace.folder(table, "fix") / "spec.json").write_text("{")
    with pytest.raises(BackfillError, match=r"fix/spec\.json is no spec of a backfill"):
        list_backfills(table)


def test_when_a_backfill_ended_is_kept_beside_what_goes(table):
    begun(table)
    assert namespace.end_of(table, "fix") == 0.0
    namespace.note_end(table, "fix", 1700000000.25)
    assert cancel(table, "fix") and list_backfills(table) == []
    assert (namespace.end_of(table, "fix"), namespace.end_of(table, "other")) == (1700000000.25, 0.0)
    namespace.note_end(table, "fix", 1700000001.5)
    assert namespace.end_of(table, "fix") == 1700000001.5


def test_a_range_of_which_another_one_has_a_part_is_waited_for_while_that_runs_and_refused_if_it_was_left(table):
    begun(table)
    lease, other = namespace.take_lease(table, "fix"), Spec("other", str(table), 0, 10, "1", ("k",))
    with pytest.raises(HeldElsewhereError, match=r"fix .* is running over a part of other .*: wait until"):
        check_range_is_free(table, other)
    os.close(lease)
    with pytest.raises(BackfillError, match="go on with it, or cancel it") as left:
        check_range_is_free(table, other)
    assert not isinstance(left.value, HeldElsewhereError)
