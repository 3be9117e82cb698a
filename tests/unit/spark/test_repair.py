"""Checkpoints with damage of every kind, laid out as Spark and Hadoop do."""

import io
import json
import os
import shutil
import sqlite3
import struct
import time
import zipfile
import zlib
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from pipelines.bench.chaos.damage import spoil_database
from pipelines.cli.app import app
from pipelines.spark.checkpoint.files import is_sound
from pipelines.spark.checkpoint.repair import (
    CheckpointError,
    describe_repair,
    diagnose,
    remedy_of,
    repair_checkpoint,
)
from pipelines.stack.services.airflow import database_fault

LONG_AGO = time.time() - 3600


def write(file, data=b"v1\n{}"):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    sums = b"".join(struct.pack(">I", zlib.crc32(data[at : at + 512])) for at in range(0, len(data), 512))
    file.with_name(f".{file.name}.crc").write_bytes(b"crc\0" + struct.pack(">i", 512) + sums)
    return file


def snapshot(*shared):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        told = {"sstFiles": [{"localFileName": "1.sst", "dfsSstFileName": name, "sizeBytes": 1} for name in shared]}
        archive.writestr("metadata", f"v1\n{json.dumps(told)}")
    return raw.getvalue()


def age(folder):
    for one in (folder, *folder.rglob("*")):
        os.utime(one, (LONG_AGO, LONG_AGO))


@pytest.fixture
def checkpoint(tmp_path):
    """Batches 0 to 5 are finished and 6 is planned; two stores, one with a snapshot of version 4."""
    folder = tmp_path / "orders.checkpoint"
    for name in ("metadata", "sources/0/0", "state/0/_metadata/metadata", "state/0/0/_metadata/schema"):
        write(folder / name)
    for batch in range(7):
        write(folder / "offsets" / str(batch), f"v1\n{batch}".encode())
        if batch < 6:
            write(folder / "commits" / str(batch))
            for store in ("state/0/0", "state/0/1/left"):
                write(folder / store / f"{batch + 1}.changelog", b"x" * 1300)
    write(folder / "state/0/0/SSTs/7-a.sst", b"table")
    write(folder / "state/0/0/4.zip", snapshot("7-a.sst"))
    age(folder)
    return folder


def damage(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(bytes(data))
    os.utime(file, (LONG_AGO, LONG_AGO))


def kept(folder):
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()}


def listed(checkpoint, log):
    return sorted(int(one) for one in os.listdir(checkpoint / log) if one.isdigit())


def test_a_sound_checkpoint_is_left_as_it_is(checkpoint):
    before = kept(checkpoint)
    assert repair_checkpoint(checkpoint) is None
    assert remedy_of(checkpoint) == ""
    assert kept(checkpoint) == before
    assert "left as it is" in describe_repair(checkpoint, None)


@pytest.mark.parametrize(
    "file", ["state/0/0/2.changelog", "state/0/0/SSTs/8-b.sst", "offsets/2", "commits/4", "sources/0/0"]
)
def test_what_no_restart_reads_is_no_damage(checkpoint, file):
    if not (checkpoint / file).exists():
        write(checkpoint / file)
    damage(checkpoint / file)
    age(checkpoint)
    assert repair_checkpoint(checkpoint) is None and remedy_of(checkpoint) == ""


def test_one_batch_is_run_again_as_it_was_for_any_sink(checkpoint):
    (checkpoint / "offsets/6").unlink()
    damage(checkpoint / "state/0/1/left/6.changelog")  # what batch 5 left
    remedy = remedy_of(checkpoint)
    assert f"tidecast job repair {checkpoint}" in remedy and "--keyed-sink" not in remedy
    found, aside = repair_checkpoint(checkpoint)
    assert (found.batch, found.again, found.exact) == (4, [5], True)
    assert listed(checkpoint, "offsets") == [*range(6)] and listed(checkpoint, "commits") == [*range(5)]
    assert not (checkpoint / "state/0/0/6.changelog").exists()
    assert "Batch 5 is run again" in describe_repair(checkpoint, (found, aside))


def test_more_batches_are_run_again_only_for_a_sink_with_keys(checkpoint):
    damage(checkpoint / "state/0/1/left/5.changelog")
    before = {one: (checkpoint / one).read_bytes() for one in kept(checkpoint)}
    assert "tidecast job repair" not in remedy_of(checkpoint)
    assert f"repair {checkpoint} --keyed-sink" in remedy_of(checkpoint, keyed=True)
    with pytest.raises(CheckpointError, match="batches 4 to 6 would not all read"):
        repair_checkpoint(checkpoint)
    assert kept(checkpoint) == before.keys()
    found, aside = repair_checkpoint(checkpoint, keyed=True)
    assert (found.batch, found.again, found.exact) == (3, [4, 5, 6], False)
    assert diagnose(checkpoint) is None
    # The next batch is to read what it had read; of later ones nothing is left.
    assert listed(checkpoint, "offsets") == [*range(5)] and listed(checkpoint, "commits") == [*range(4)]
    assert not (checkpoint / "state/0/0/5.changelog").exists() and (checkpoint / "state/0/0/4.zip").exists()
    moved = {one: (aside / one).read_bytes() for one in kept(aside)}
    assert moved.items() | {one: (checkpoint / one).read_bytes() for one in kept(checkpoint)}.items() == before.items()
    assert "4 to 6 are run again, cut otherwise" in describe_repair(checkpoint, (found, aside))


def test_the_damaged_plan_of_the_next_batch_may_have_been_run(checkpoint):
    damage(checkpoint / "offsets/6")
    with pytest.raises(CheckpointError, match="keyed-sink"):
        repair_checkpoint(checkpoint)
    found, _ = repair_checkpoint(checkpoint, keyed=True)
    assert (found.batch, found.again) == (5, [6]) and listed(checkpoint, "offsets") == [*range(6)]


def test_a_snapshot_that_lacks_a_table_is_moved_and_the_changelogs_serve(checkpoint):
    damage(checkpoint / "state/0/0/SSTs/7-a.sst")
    found, aside = repair_checkpoint(checkpoint)
    assert (found.batch, found.again) == (5, [])
    assert not (checkpoint / "state/0/0/4.zip").exists() and (aside / "state/0/0/4.zip").exists()
    assert (checkpoint / "offsets/6").exists() and "No batch is run again" in describe_repair(
        checkpoint, (found, aside)
    )


@pytest.mark.parametrize("content", [b"", b"PK", snapshot()[:40]], ids=["empty", "magic", "cut"])
def test_a_snapshot_that_is_no_archive_is_damage_though_it_has_no_checksum(checkpoint, content):
    (checkpoint / "state/0/0/.4.zip.crc").unlink()
    (checkpoint / "state/0/0/4.zip").write_bytes(content)
    age(checkpoint)
    assert "tidecast job repair" in remedy_of(checkpoint)
    found, _ = repair_checkpoint(checkpoint)
    assert found.moving == [checkpoint / "state/0/0/4.zip"]


def test_where_changelogs_are_gone_too_it_goes_on_from_before_the_snapshot(checkpoint):
    damage(checkpoint / "state/0/0/4.zip")
    (checkpoint / "state/0/0/3.changelog").unlink()
    age(checkpoint)
    found, _ = repair_checkpoint(checkpoint, keyed=True)
    assert found.batch == 1 and found.again == [2, 3, 4, 5, 6]


def test_commits_that_are_lost_are_seen_by_the_offsets(checkpoint):
    for batch in (3, 4, 5):
        (checkpoint / "commits" / str(batch)).unlink()
    age(checkpoint)
    found, _ = repair_checkpoint(checkpoint, keyed=True)
    assert found.batch == 2 and listed(checkpoint, "offsets") == [0, 1, 2, 3]


def test_where_no_batch_is_left_it_is_said_without_a_checksum_too(checkpoint):
    for store in ("state/0/0", "state/0/1/left"):
        (checkpoint / store / "1.changelog").unlink()
    (checkpoint / "state/0/0/4.zip").unlink()
    age(checkpoint)
    with pytest.raises(CheckpointError, match="no batch is left"):
        repair_checkpoint(checkpoint, keyed=True)


@pytest.mark.parametrize("file", ["state/0/_metadata/metadata", "state/0/0/_metadata/schema", "metadata"])
def test_what_every_restart_reads_cannot_be_gone_back_behind(checkpoint, file):
    damage(checkpoint / file)
    before = kept(checkpoint)
    with pytest.raises(CheckpointError, match=rf"reads {file}.*start the query anew"):
        repair_checkpoint(checkpoint)
    assert kept(checkpoint) == before and "start the query anew" in remedy_of(checkpoint)


def test_a_repair_that_was_cut_off_is_ended_by_the_next(checkpoint, monkeypatch):
    damage(checkpoint / "state/0/1/left/4.changelog")
    whole = diagnose(checkpoint)
    for many in range(1, len(whole.moving)):
        copy = checkpoint.with_name(f"{many}")
        shutil.copytree(checkpoint, copy)
        age(copy)
        for file in whole.moving[:many]:
            (copy / file.relative_to(checkpoint)).unlink()
        found, _ = repair_checkpoint(copy, keyed=True)
        assert found.batch == whole.batch == 2
        assert diagnose(copy) is None and listed(copy, "offsets") == [0, 1, 2, 3]


def test_a_checkpoint_in_use_is_left_alone(checkpoint):
    damage(checkpoint / "commits/5")
    write(checkpoint / "offsets/7")
    with pytest.raises(CheckpointError, match="End its query"):
        repair_checkpoint(checkpoint)


def test_links_and_the_second_format_are_refused(checkpoint, tmp_path):
    (checkpoint / "state/1").symlink_to(tmp_path)
    with pytest.raises(CheckpointError, match="link"):
        repair_checkpoint(checkpoint)
    (checkpoint / "state/1").unlink()
    write(checkpoint / "state/0/0/7_3f2a.changelog")
    age(checkpoint)
    with pytest.raises(CheckpointError, match="format 2"):
        repair_checkpoint(checkpoint)


def test_a_folder_of_anything_else_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no checkpoint"):
        repair_checkpoint(tmp_path)
    assert remedy_of(tmp_path / "none") == ""


def test_the_command_says_what_it_did(checkpoint, monkeypatch):
    damage(checkpoint / "commits/5")
    said = CliRunner().invoke(app, ["job", "repair", str(checkpoint), "--keyed-sink"])
    assert said.exit_code == 0, said.output
    assert "goes on after batch 4" in said.output and f"{checkpoint}.damaged-1" in said.output
    monkeypatch.chdir(checkpoint)
    assert "left as it is" in CliRunner().invoke(app, ["job", "repair", "."]).output


def test_a_damaged_database_is_told_from_a_sound_one_and_from_one_in_use(tmp_path):
    file = tmp_path / "airflow.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("CREATE TABLE run (name TEXT)")
        database.executemany("INSERT INTO run VALUES (?)", [("x" * 100,)] * 1000)
        assert database_fault(file) == ""
        database.execute("BEGIN EXCLUSIVE")
        assert database_fault(file) == ""
        database.execute("ROLLBACK")
    spoil_database(file)
    assert database_fault(file) != ""
    file.write_bytes(b"no database at all, but some bytes of text" * 100)
    assert "not a database" in database_fault(file)


@given(st.binary(min_size=1, max_size=2000), st.data())
def test_any_other_byte_is_seen(tmp_path_factory, data, draw):
    file = write(tmp_path_factory.mktemp("file") / "1.changelog", data)
    assert is_sound(file)
    place, by = draw.draw(st.integers(0, len(data) - 1)), draw.draw(st.integers(1, 255))
    wrong = bytearray(data)
    wrong[place] ^= by
    file.write_bytes(bytes(wrong))
    assert not is_sound(file)
    file.write_bytes(data[:place])
    assert not is_sound(file)


@pytest.mark.parametrize("told", [b"", b"crc", b"crc\0\0\0\0\0", b"xyz\0\0\0\2\0abcd"])
def test_checksums_that_are_none_are_damage(tmp_path, told):
    file = write(tmp_path / "1")
    file.with_name(".1.crc").write_bytes(told)
    assert not is_sound(file)
