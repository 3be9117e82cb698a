"""How much of a staged range a query has committed, by the logs that Spark keeps."""

import json
from types import SimpleNamespace

import pytest

from tidecast.replay.staged import LIST, ROWS, StagedRange
from tidecast.replay.table import RecordTableError

FILES = 25


def entry(folder, batch):
    return json.dumps({"path": f"file://{folder / ROWS}/{batch:06d}.parquet", "timestamp": 1, "batchId": batch})


@pytest.fixture
def folder(tmp_path):
    """A replay of 25 files, of which one was read by each of 14 batches, and a fifteenth batch is under way."""
    checkpoint, log = tmp_path / "position" / "0", tmp_path / "position" / "0" / "sources" / "0"
    for made in (log, checkpoint / "commits", checkpoint / "offsets"):
        made.mkdir(parents=True)
    (tmp_path / LIST).write_text(json.dumps({"files": FILES}))
    for batch in range(15):
        before = range(batch + 1) if batch == 9 else [batch]
        name = f"{batch}.compact" if batch == 9 else f"{batch}"
        (log / name).write_text("\n".join(["v1", *(entry(tmp_path, one) for one in before)]))
        (checkpoint / "offsets" / f"{batch}").write_text("v1\n{}\n" + json.dumps({"logOffset": batch}))
        if batch < 14:
            (checkpoint / "commits" / f"{batch}").write_text("v1\n{}")
    return tmp_path


def of(folder):
    execution = SimpleNamespace(resolvedCheckpointRoot=lambda: f"file://{folder}/position/0")
    return StagedRange(SimpleNamespace(_jsq=SimpleNamespace(streamingQuery=lambda: execution)))


def test_the_files_of_committed_batches_are_counted(folder):
    assert of(folder).files() == (14, FILES)


def test_that_spark_deletes_old_files_of_its_log_meanwhile_is_no_failure(folder):
    log = folder / "position" / "0" / "sources" / "0"
    for batch in range(9):
        (log / f"{batch}").unlink()
        (log / f"{batch}").symlink_to(log / "gone")  # it is listed, and cannot be read any more
    assert of(folder).files() == (14, FILES)


@pytest.mark.parametrize("left", ["", '{"fil', "[]", "{}"])
def test_a_list_that_is_damaged_is_named_with_the_remedy(folder, left):
    (folder / LIST).write_text(left)
    with pytest.raises(RecordTableError, match=r"files\.json is damaged .*: cancel the replay, then order it again"):
        of(folder).files()
