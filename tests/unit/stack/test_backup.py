"""A backup brings back what it took, to another folder too; what is damaged, used or in the way changes nothing."""

import gzip
import io
import json
import os
import re
import shutil
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from configs.settings import ROOT, load
from pipelines.cli.app import app
from pipelines.stack import state
from pipelines.stack.backup import archive, write
from pipelines.stack.backup.archive import MANIFEST, BackupError, kept_files
from pipelines.stack.backup.paths import move_paths
from pipelines.stack.backup.restore import restore_backup
from pipelines.stack.backup.write import write_backup
from pipelines.stack.began import began_s

KEPT = {
    "lake/metrics/part-0.parquet": b"rows", "lake/metrics/_delta_log/0.json": b"{}",
    "kafka/data/events-0/0.log": b"\0" * 9, "fast/token": b"secret", "jobs/adverts/plan.json": b"[]",
}  # fmt: skip
REMADE = {
    "settings.yaml": b"password: hunter2", "ivy/jars/a.jar": b"jar", "log/broker.log": b"", "stack.lock": b"",
    "demo/stack.lock": b"", "demo/lake/part": b"the main job's",
    "bench/backfill/stack.lock": b"", "bench/backfill/x": b"", "compiled/.ready": b"",
}  # fmt: skip


SCHEMAS = 'v2\n{{"stateSchemaFilePaths":["file:{}/state/0/_stateSchema/default/0_a"]}}'


def fill(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def database(file, *rows):
    file.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute('CREATE TABLE "runs" ("order" TEXT, uri TEXT, size INTEGER)')
        connection.executemany("INSERT INTO runs VALUES (?, ?, ?)", rows)


def rows(file):
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT * FROM runs").fetchall()


@pytest.fixture
def old(tmp_path):
    made = load(var=tmp_path / "old" / "var")
    fill(made.var_dir, KEPT | REMADE)
    (made.var_dir / "fast" / "token").chmod(0o600)
    os.utime(made.var_dir / "lake/metrics/part-0.parquet", (1e9, 1e9))
    database(made.var_dir / "mlflow/mlflow.db", ("1", f"{made.var_dir}/mlflow/artifacts/1", 5), (None, "s3://a/b", 7))
    noted = made.var_dir / "autoscaler/state/0/_metadata/v2"
    fill(noted, {"0": SCHEMAS.format(made.var_dir / "autoscaler").encode(), ".0.crc": b"sum"})
    return made


@pytest.fixture
def new(tmp_path):
    """A folder as a setup leaves it, with nothing of a deployment."""
    made = load(var=tmp_path / "new" / "var")
    ready = dict.fromkeys(("class-archive/.ready", "compiled/.ready"), b"")
    fill(made.var_dir, {"ivy/jars/b.jar": b"another", "jars.json": b"{}", **ready})
    return made


@pytest.fixture
def file(tmp_path):
    return tmp_path / "kept.tar.gz"


def test_what_was_kept_comes_back_and_what_is_made_again_does_not(old, new, file):
    made = write_backup(old, file)
    assert made.files == len(KEPT) + 3 and file.stat().st_mode & 0o777 == 0o600
    assert b"hunter2" not in gzip.decompress(file.read_bytes())
    assert restore_backup(new, file) == made
    assert {name: (new.var_dir / name).read_bytes() for name in KEPT} == KEPT
    assert set(kept_files(new.var_dir)) == {*KEPT, "mlflow/mlflow.db", "autoscaler/state/0/_metadata/v2/0"}
    assert (new.var_dir / "ivy/jars/b.jar").read_bytes() == b"another"
    assert (new.var_dir / "fast/token").stat().st_mode & 0o777 == 0o600
    assert (new.var_dir / "lake/metrics/part-0.parquet").stat().st_mtime == 1e9
    assert not (new.var_dir / ".restoring").exists()


def test_an_archive_that_still_holds_what_a_setup_makes_again_is_restored_without_it(old, new, file, monkeypatch):
    fill(old.var_dir, {"compiled/.ready": b"of another computer"})
    monkeypatch.setattr(archive, "REMADE", archive.REMADE - archive.ONCE_KEPT)
    assert write_backup(old, file).files == len(KEPT) + 4
    monkeypatch.undo()
    restore_backup(new, file)
    assert {name: (new.var_dir / name).read_bytes() for name in KEPT} == KEPT
    assert (new.var_dir / "compiled/.ready").read_bytes() == b""


def test_all_that_a_setup_leaves_in_var_is_made_again():
    named = set(re.findall(r"\bvar/([\w.-]+)", (ROOT / "Makefile").read_text()))
    assert {"jars.json", "compiled"} <= named <= archive.REMADE


def test_paths_in_databases_become_those_of_the_new_folder(old, new, file):
    write_backup(old, file)
    restore_backup(new, file)
    found = rows(new.var_dir / "mlflow/mlflow.db")
    assert found == [("1", f"{new.var_dir}/mlflow/artifacts/1", 5), (None, "s3://a/b", 7)]
    assert rows(old.var_dir / "mlflow/mlflow.db")[0][1].startswith(str(old.var_dir))
    noted = new.var_dir / "autoscaler/state/0/_metadata/v2/0"
    assert noted.read_text() == SCHEMAS.format(new.var_dir / "autoscaler")


@pytest.mark.parametrize("moved", [True, False])
def test_a_job_s_state_names_its_schemas_in_the_new_folder_also_where_the_old_one_was_a_link(tmp_path, file, moved):
    """A launch gives Spark the folder that the link leads to, which is that of a disk that may be lost."""
    disk, link, checkpoint = tmp_path / "disk", tmp_path / "var", "jobs/adverts/blocks/a/1/a.checkpoint"
    disk.mkdir()
    link.symlink_to(disk)
    fill(disk, {f"{checkpoint}/state/0/_metadata/v2/0": SCHEMAS.format(disk / checkpoint).encode()})
    write_backup(load(var=link), file)
    disk.rename(tmp_path / "lost")
    there = tmp_path / "another"
    there.mkdir()
    if not moved:
        link.unlink()
        link.symlink_to(there)
    restore_backup(load(var=there if moved else link), file)
    noted = there / checkpoint / "state/0/_metadata/v2/0"
    assert noted.read_text() == SCHEMAS.format(there / checkpoint)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("/srv/var", "/new"), ("/srv/var/a/b", "/new/a/b"), ("file:///srv/var/a", "file:///new/a"),
        ('{"root": "/srv/var", "b": "/srv/var/b"}', '{"root": "/new", "b": "/new/b"}'),
        ("/mnt/srv/var/a", "/mnt/srv/var/a"), ("/srv/variable/a", "/srv/variable/a"), ("/srv/var-2/a", "/srv/var-2/a"),
    ],
)  # fmt: skip
def test_only_what_is_in_the_folder_is_moved(tmp_path, text, moved):
    database(tmp_path / "a.db", (text, None, 3))
    move_paths(tmp_path, "/srv/var", Path("/new"))
    assert rows(tmp_path / "a.db") == [(moved, None, 3)]


def test_a_folder_of_the_same_path_is_restored_byte_by_byte(old, file):
    write_backup(old, file)
    before = {name: (old.var_dir / name).read_bytes() for name in kept_files(old.var_dir)}
    shutil.rmtree(old.var_dir)
    restore_backup(old, file)
    assert {name: (old.var_dir / name).read_bytes() for name in kept_files(old.var_dir)} == before


def test_a_damaged_database_restores_nothing(old, new, file):
    (old.var_dir / "mlflow/mlflow.db").write_bytes(b"SQLite format 3\0" + b"x" * 4000)
    write_backup(old, file)
    refused(lambda: restore_backup(new, file), "mlflow.db", "damaged database")
    assert kept_files(new.var_dir) == {}


def test_what_is_elsewhere_is_said(old, file, tmp_path, monkeypatch):
    monkeypatch.setenv("TIDECAST_FILE", str(tmp_path / "mine.yaml"))
    fill(tmp_path, {"mine.yaml": b"job: {state_partitions: 2}", "pools/shared.yaml": b""})
    settings = load(
        var=old.var_dir,
        contracts=tmp_path / "contracts",
        kafka={"bootstrap": "kafka:9092", "signing_keys": tmp_path / "keys"},
        lake={"address": "hdfs://nn/lake"},
    )
    (old.var_dir / "lake" / "far").symlink_to(tmp_path)
    (old.var_dir / "lake" / "near").symlink_to(old.var_dir / "kafka")
    said = write_backup(settings, file).elsewhere
    assert said[0] == "topics of the broker at kafka:9092" and f"signing keys in {tmp_path / 'keys'}" in said
    assert "the lake at hdfs://nn/lake" in said and f"pools in {tmp_path / 'pools'}" in said
    assert f"settings in {tmp_path / 'mine.yaml'} (TIDECAST_FILE)" in said
    assert said[-1] == f"what {old.var_dir / 'lake' / 'far'} leads to" and not any("near" in one for one in said)


def test_the_release_is_told_with_its_commit(old, file):
    assert re.fullmatch(r"\S+ [0-9a-f]{40}(-dirty)?", write_backup(old, file).release)


def test_a_login_is_not_told(old, file):
    settings = load(var=old.var_dir, mlflow={"tracking_uri": "https://me:hunter2@mlflow.example/a"})
    said = write_backup(settings, file).elsewhere
    assert "models and runs of MLflow at https://mlflow.example/a" in said
    assert b"hunter2" not in gzip.decompress(file.read_bytes())


def refused(call, *words):
    with pytest.raises(BackupError) as error:
        call()
    assert all(word in str(error.value) for word in words), error.value


def test_nothing_is_overwritten(old, new, file):
    file.write_text("mine")
    refused(lambda: write_backup(old, file), str(file), "is there already")
    assert file.read_text() == "mine"
    refused(lambda: write_backup(old, old.var_dir / "kept.tar.gz"), "lies in the folder")
    (file.parent / "link").symlink_to(old.var_dir)
    for var, kept in ((old.var_dir, file.parent / "link"), (file.parent / "link", old.var_dir)):
        refused(lambda var=var, kept=kept: write_backup(load(var=var), kept / "kept.tar.gz"), "lies in the folder")
    file.unlink()
    write_backup(old, file)
    fill(new.var_dir, {"lake/mine": b"mine", "mlflow/other": b""})
    refused(lambda: restore_backup(new, file), str(new.var_dir), "holds lake, mlflow")
    assert (new.var_dir / "lake/mine").read_bytes() == b"mine" and not (new.var_dir / "kafka").exists()
    shutil.rmtree(new.var_dir)
    fill(new.var_dir, {"mlflow/stack.lock": b""})  # of a stack of that name, which is not looked into
    refused(lambda: restore_backup(new, file), "mlflow: is in the way")
    assert not (new.var_dir / "kafka").exists()
    shutil.rmtree(new.var_dir)
    fill(new.var_dir, {"jars.json": b"{}"})
    (new.var_dir / "lake").symlink_to(new.var_dir.parent / "of a disk that is not mounted")
    refused(lambda: restore_backup(new, file), "lake: is in the way")
    assert (new.var_dir / "lake").is_symlink() and kept_files(new.var_dir) == {}


def test_an_empty_folder_and_a_missing_archive_are_named(new, file):
    refused(lambda: write_backup(new, file), str(new.var_dir), "nothing to keep")
    refused(lambda: restore_backup(new, file), str(file), "No such file")
    assert not file.exists()


def test_a_part_alone_is_brought_back_beside_what_is_there(old, new, file):
    write_backup(old, file)
    fill(new.var_dir, {"mlflow/new": b"mine", "lake/mine": b"mine"})
    refused(lambda: restore_backup(new, file, "mlflow"), f"{new.var_dir}/mlflow: is there", "Move it away")
    shutil.rmtree(new.var_dir / "mlflow")
    assert restore_backup(new, file, "mlflow").files == 1
    assert rows(new.var_dir / "mlflow/mlflow.db")[0] == ("1", f"{new.var_dir}/mlflow/artifacts/1", 5)
    assert set(kept_files(new.var_dir)) == {"mlflow/mlflow.db", "lake/mine"}
    made = restore_backup(new, file, "lake/metrics/")
    assert (made.files, made.size) == (2, 6)
    restore_backup(new, file, "jobs/adverts/plan.json")
    names = {one for one in KEPT if one.startswith(("lake", "jobs"))}
    assert set(kept_files(new.var_dir)) == {"mlflow/mlflow.db", "lake/mine", *names}
    assert (new.var_dir / "lake/metrics/part-0.parquet").stat().st_mtime == 1e9


def test_whose_topics_come_back_is_told_that_modes_and_orders_do_too(old, new, file, monkeypatch):
    made = write_backup(old, file)
    monkeypatch.setenv("TIDECAST_VAR", str(new.var_dir))
    told = f"modes and orders are those of {made.written}: say a freeze or a cancellation since then again"
    for only, said in ((["--only", "lake"], False), (["--only", "kafka"], True), (["--only", "mlflow"], False)):
        done = CliRunner().invoke(app, ["restore", str(file), *only], catch_exceptions=False)
        assert done.exit_code == 0 and (told in done.stdout) == said
    for gone, only in (("kafka", ["--only", "kafka/data"]), ("", [])):
        shutil.rmtree(new.var_dir / gone)
        assert told in CliRunner().invoke(app, ["restore", str(file), *only], catch_exceptions=False).stdout


def test_a_part_that_the_archive_lacks_is_named_with_what_it_has(old, new, file):
    write_backup(old, file)
    for part in ("jobs/rides", "../mlflow", "/mlflow", "mlfl"):
        refused(lambda part=part: restore_backup(new, file, part), f"has no {part}. It has autoscaler, fast, jobs, ")
    damaged(file, "flipped")
    refused(lambda: restore_backup(new, file, "lake/metrics"), "damaged, or no backup")
    assert kept_files(new.var_dir) == {}


@pytest.mark.parametrize("which", ["old", "new"])
def test_a_stack_that_runs_is_left_alone(old, new, file, which):
    if which == "new":
        write_backup(old, file)
    used = {"old": old, "new": new}[which]
    call = {"old": lambda: write_backup(old, file), "new": lambda: restore_backup(new, file)}[which]
    lock = state.lock(used.var_dir)
    refused(call, str(used.var_dir), f"in use by process {os.getpid()} (")  # by what `make down` does not know
    lock.close()
    me = os.getpid(), began_s(os.getpid())
    state.write(used.var_dir, state.StackState("id", 0.0, True, {"broker": me}, {}, {}))
    refused(call, str(used.var_dir), "a stack runs on it", "make down")
    assert file.exists() == (which == "new") and not (new.var_dir / "lake").exists()


@pytest.mark.parametrize("how", ["changed", "longer", "added", "gone"])
def test_a_file_that_changes_meanwhile_is_named_and_no_archive_is_left(old, file, how, monkeypatch):
    target, pack = old.var_dir / "lake/metrics/_delta_log/0.json", write._pack

    def disturbed(*given):
        if how == "longer":
            target.write_bytes(b"{ }")
        pack(*given)
        if how == "gone":
            target.unlink()
        elif how != "longer":
            (target if how == "changed" else target.with_name("1.json")).write_bytes(b"[]")

    monkeypatch.setattr(write, "_pack", disturbed)
    refused(lambda: write_backup(old, file), "_delta_log", "was written meanwhile")
    assert list(file.parent.glob("*kept*")) == [] and list(file.parent.glob(".*")) == []


def damaged(file, how):
    data = file.read_bytes()
    if how == "cut":
        file.write_bytes(data[: len(data) // 2])
    elif how == "flipped":
        file.write_bytes(gzip.compress(gzip.decompress(data).replace(b"rows", b"cows")))
    elif how == "no archive":
        file.write_bytes(b"no archive at all")
    elif how == "another archive":
        with tarfile.open(file, "w:gz") as other:
            add(other, "readme", b"hello")
    elif how == "without its end":
        rewrite(file, lambda members: members[:-1])
    elif how == "a file less":
        rewrite(file, lambda members: members[:1] + members[2:])


def add(made, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    made.addfile(info, io.BytesIO(data))


def rewrite(file, change):
    with tarfile.open(file) as read:
        members = [(member.name, read.extractfile(member).read()) for member in read]
    with tarfile.open(file, "w:gz") as made:
        for name, data in change(members):
            add(made, name, data)


@pytest.mark.parametrize("how", ["cut", "flipped", "no archive", "another archive", "without its end", "a file less"])
def test_a_damaged_archive_restores_nothing(old, new, file, how):
    write_backup(old, file)
    damaged(file, how)
    refused(lambda: restore_backup(new, file), str(file), "damaged, or no backup")
    assert kept_files(new.var_dir) == {} and not (new.var_dir / ".restoring").exists()


@pytest.mark.parametrize("told", [b"5", b'"a"', b"[]", b"null", pytest.param(b"[" * 100_000, id="deep")])
@pytest.mark.parametrize("place", [0, -1])
def test_an_archive_that_says_of_itself_what_no_backup_does_restores_nothing(old, new, file, told, place):
    write_backup(old, file)

    def changed(members):
        members[place] = members[place][0], told
        return members

    rewrite(file, changed)
    refused(lambda: restore_backup(new, file), str(file), "damaged, or no backup")
    assert kept_files(new.var_dir) == {}


@pytest.mark.parametrize("wrong", [{"var": 5}, {"release": None}, {"written": {}}, {"elsewhere": [1]}])
def test_an_archive_that_says_something_else_than_a_text_restores_nothing(old, new, file, wrong):
    write_backup(old, file)

    def changed(members):
        told = {**json.loads(members[0][1]), **wrong}
        return [(MANIFEST, json.dumps(told).encode()), *members[1:]]

    rewrite(file, changed)
    refused(lambda: restore_backup(new, file), str(file), "damaged, or no backup")
    assert kept_files(new.var_dir) == {}


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "ivy/jars/evil.jar", "a/../../outside", ".", "jobs"])
def test_an_archive_writes_nowhere_else(old, new, file, name):
    write_backup(old, file)
    rewrite(file, lambda members: [*members[:-1], (name, b"evil"), members[-1]])
    refused(lambda: restore_backup(new, file), "not a file of a backup")
    assert not list(Path(new.var_dir.parent).rglob("outside")) and not (new.var_dir / "ivy/jars/evil.jar").exists()


def keep_manifest(file, member):
    """Leave of an archive its manifest alone, and an empty member behind it."""
    with tarfile.open(file) as read:
        first = read.extractfile(MANIFEST).read()
    with tarfile.open(file, "w:gz") as made:
        add(made, MANIFEST, first)
        made.addfile(member)


def test_a_link_in_an_archive_is_refused(old, new, file):
    write_backup(old, file)
    link = tarfile.TarInfo("lake")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    keep_manifest(file, link)
    refused(lambda: restore_backup(new, file), "lake is not a file of a backup")


def test_a_file_of_a_time_that_no_disk_knows_is_refused(old, new, file):
    write_backup(old, file)
    late = tarfile.TarInfo("lake/late")
    late.mtime = 1e30
    keep_manifest(file, late)
    refused(lambda: restore_backup(new, file), str(file), "damaged, or no backup")
    assert kept_files(new.var_dir) == {}


def test_another_form_names_the_release_that_reads_it(old, new, file):
    write_backup(old, file)

    def later(members):
        told = {**json.loads(members[0][1]), "form": 9, "release": "7.1"}
        return [(MANIFEST, json.dumps(told).encode())]

    rewrite(file, later)
    refused(lambda: restore_backup(new, file), "form 9", "release 7.1")
