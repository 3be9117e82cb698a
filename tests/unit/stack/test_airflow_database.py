"""The embedded Airflow's database: whole or not there, and migrated once per version of Airflow."""

import errno
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipelines.stack.services import airflow


class Context:
    """A stack that notes what it runs, starts and waits for."""

    def __init__(self, folder):
        self.home, self.given, self.dags, self.secret, self.ports = folder, {}, folder, "", {"airflow": 1}
        self.id = "0f"
        self.ran, self.spawned = [], []

    def folder(self, name, part=None):
        return self.home

    def fill(self, address):
        return address

    def run(self, name, argv, env):
        self.ran.append(argv[-2:])

    def spawn(self, name, argv, env, probe):
        self.spawned.append(name)

    def await_ready(self, name, timeout_s):
        assert name in self.spawned


def made_by(env):
    """The database file of which Airflow is told."""
    from sqlalchemy import make_url  # it takes a part of a second, which workers that only collect do without

    return Path(make_url(env[airflow.CONNECTION]).database)


@pytest.fixture
def context(tmp_path, monkeypatch):
    (tmp_path / "made").mkdir()
    with closing(sqlite3.connect(tmp_path / "made" / "template.db")) as connection, connection:
        connection.execute("CREATE TABLE dag (id TEXT)")
    monkeypatch.setattr(airflow, "migrated_database", lambda context: tmp_path / "made" / "template.db")
    monkeypatch.setattr(airflow, "version", lambda package: "3.3.2")
    return Context(tmp_path)


def test_a_new_database_is_a_copy_of_a_migrated_one(context):
    airflow.start(context)
    airflow.start(context)
    assert (context.home / "airflow.db").read_bytes() == (context.home / "made" / "template.db").read_bytes()
    assert context.ran == []


def test_a_copy_that_is_cut_short_is_no_database(context, monkeypatch):
    def cut(source, target):
        Path(target).write_bytes(Path(source).read_bytes()[:1000])
        raise OSError(errno.ENOSPC, "No space left on device", str(target))

    monkeypatch.setattr(airflow, "shutil", SimpleNamespace(copy=cut))
    with pytest.raises(OSError, match="No space"):
        airflow.start(context)
    assert not (context.home / "airflow.db").exists()
    monkeypatch.setattr(airflow, "shutil", shutil)
    airflow.start(context)
    assert airflow.database_fault(context.home / "airflow.db") == ""


def test_the_database_of_another_version_is_migrated_once(context, monkeypatch):
    airflow.start(context)
    monkeypatch.setattr(airflow, "version", lambda package: "3.4.0")
    airflow.start(context)
    airflow.start(context)
    assert context.ran == [["db", "migrate"]]


def test_on_the_way_back_nothing_is_migrated_and_on_the_next_way_forth_it_is_again(context, monkeypatch):
    """An older Airflow cannot migrate what a newer one has; its `db downgrade` may have been run in between."""
    airflow.start(context)
    os.utime(context.home / "migrated-3.3.2", (1e9, 1e9))
    for release, migrations in (("3.4.0", 1), ("3.4.0", 1), ("3.3.2", 1), ("3.3.2", 1), ("3.4.0", 2), ("3.3.2", 2)):
        monkeypatch.setattr(airflow, "version", lambda package, release=release: release)
        airflow.start(context)
        assert len(context.ran) == migrations


def test_a_migration_that_fails_is_tried_again(context, monkeypatch):
    airflow.start(context)
    monkeypatch.setattr(airflow, "version", lambda package: "3.4.0")
    tried = []

    def failing(*given):
        tried.append(given)
        raise airflow.StackError("airflow-migrate failed")

    context.run = failing
    for _ in range(2):
        with pytest.raises(airflow.StackError):
            airflow.start(context)
    assert len(tried) == 2


def test_a_migration_that_fails_leaves_no_database_behind(tmp_path):
    context = Context(tmp_path)

    def failing(name, argv, env):
        making = made_by(env)
        for file in (making, making.with_name(f"{making.name}-journal")):
            file.write_bytes(b"half of it")
        raise airflow.StackError("airflow-migrate failed")

    context.run = failing
    with pytest.raises(airflow.StackError):
        airflow.migrated_database(context)
    assert list(tmp_path.iterdir()) == []
    context.run = lambda name, argv, env: made_by(env).write_bytes(b"whole")
    assert airflow.migrated_database(context).read_bytes() == b"whole" and len(list(tmp_path.iterdir())) == 1


def test_a_write_waits_as_long_for_anothers_as_a_busy_computer_may_take(tmp_path):
    from sqlalchemy import create_engine, make_url, text
    from sqlalchemy.ext.asyncio import create_async_engine

    url = make_url(airflow._settings(Context(tmp_path), tmp_path, tmp_path / "airflow.db")[airflow.CONNECTION])
    assert made_by({airflow.CONNECTION: str(url)}) == tmp_path / "airflow.db"
    with create_engine(url).connect() as connection:
        assert connection.execute(text("PRAGMA busy_timeout")).scalar() == 20_000
    alike = url.set(drivername="sqlite+aiosqlite")  # as Airflow makes it of the other
    assert create_async_engine(alike).dialect.create_connect_args(alike)[1]["timeout"] == 20.0
