"""The log of a table on HDFS is read as one on a mounted file system, and Java's errors are told as ours."""

import json
from dataclasses import asdict
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JJavaError

from pipelines.lake import hdfs_path, tables
from pipelines.lake.errors import LakeAwayError, LakeError
from pipelines.lake.hadoop_client import HadoopClient
from pipelines.lake.hdfs_path import HdfsPath
from pipelines.lake.tables import Origin
from pipelines.lake.writable import refuse_read_only

AT = "hdfs://namenode:8020"
ROOT = HdfsPath(AT, PurePosixPath("/lake"))


class Files:
    """A client of files by their paths, which can be told not to let anybody write."""

    def __init__(self, files):
        self.files, self.asked = files, []

    def glob(self, pattern):
        seen = {str(above) for path in self.files for above in (PurePosixPath(path), *PurePosixPath(path).parents)}
        depth = len(PurePosixPath(pattern).parts)
        fit = [path for path in seen if PurePosixPath(path).match(pattern) and len(PurePosixPath(path).parts) == depth]
        return [AT + path for path in fit]

    def read(self, path):
        return self.files[path]

    def exists(self, path):
        return any(name == path or name.startswith(f"{path.rstrip('/')}/") for name in self.files)

    def refuse_read_only(self, path):
        self.asked.append(path)


def commits():
    """A table as Delta keeps it: its columns, two ingests, a merge of files in between, and files beside them."""
    columns = {"metaData": {"partitionColumns": ["job"]}}
    log = [[told(0), columns], [{"commitInfo": {"operation": "OPTIMIZE"}}], [told(2)]]
    names = {f"{at:020}.json": "\n".join(map(json.dumps, lines)).encode() for at, lines in enumerate(log)}
    return {**names, f"{0:020}.checkpoint.parquet": b"", f"{1:020}.json.tmp": b"", "_last_checkpoint": b"{}"}


def told(at):
    origin = Origin("metrics", "id", f"hour {at}", {0: at}, {0: at + 1}, 0.0, 1, 0, {"orders": 60.0 * (at + 1)})
    return {"commitInfo": {"userMetadata": json.dumps({"origin": asdict(origin)})}}


def read(root):
    origins = tables.commit_origins(root, "metrics")
    return (
        tables.tables(root), tables.exists(root, "metrics"), tables.newest_version(root, "metrics"), origins,
        tables.partition_columns(root, "metrics"), tables.job_spans_s(root), tables.exists(root, "decisions"),
        tables.newest_version(root, "decisions"), tables.commit_origins(root, "decisions"),
    )  # fmt: skip


def test_a_log_says_the_same_wherever_it_lies_and_only_one_on_hdfs_needs_a_client(tmp_path, monkeypatch):
    def refused(authority):
        raise AssertionError(f"{authority} was asked")

    log = tmp_path / "metrics" / "_delta_log"
    log.mkdir(parents=True)
    for name, held in commits().items():
        (log / name).write_bytes(held)
    monkeypatch.setattr(hdfs_path, "client_of", refused)
    refuse_read_only(tmp_path)
    local = read(tmp_path)
    assert local[:3] == (["metrics"], True, 2) and local[5] == {"orders": 240.0}

    files = Files({f"/lake/metrics/_delta_log/{name}": held for name, held in commits().items()})
    monkeypatch.setattr(hdfs_path, "client_of", {AT: files}.__getitem__)
    assert read(ROOT) == local


def test_a_folder_that_this_user_may_not_look_into_hides_no_table(monkeypatch):
    files, exists = Files({"/lake/lost+found/x": b"", "/lake/metrics/_delta_log/0.json": b""}), Files.exists

    def forbidden(path):
        if path.startswith("/lake/lost+found/"):
            raise LakeError("HDFS forbids it")
        return exists(files, path)

    files.exists = forbidden
    monkeypatch.setattr(hdfs_path, "client_of", {AT: files}.__getitem__)
    assert tables.tables(ROOT) == ["metrics"]


@pytest.mark.parametrize(("there", "asked"), [("/lake/metrics/0", "/lake"), ("/other", "/")])
def test_the_nearest_folder_that_there_is_must_be_writable(there, asked, monkeypatch):
    files = Files({there: b""})
    monkeypatch.setattr(hdfs_path, "client_of", lambda authority: files)
    refuse_read_only(ROOT)
    assert files.asked == [asked]


class Failing:
    """Whatever is called of it fails, all else is it again."""

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        return self

    def __call__(self, *given):
        raise self._error


def failing_client(error):
    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=Failing(error))), java=Failing(error))
    return HadoopClient(AT, SimpleNamespace(jvm=jvm))


def java_error(kind, said):
    one = SimpleNamespace(getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind), getMessage=lambda: said)
    one._target_id, one._gateway_client = "o1", None
    return Py4JJavaError("", one)


@pytest.mark.parametrize(
    ("kind", "said", "what", "told"),
    [
        (
            "ConnectException",
            "Connection refused; For more details see: page\n\tat java",
            LakeAwayError,
            "refused. Start",
        ),
        (
            "IllegalArgumentException",
            "java.net.UnknownHostException: nn",
            LakeAwayError,
            "UnknownHostException: nn. Start",
        ),
        ("AccessControlException", "denied: user=a", LakeError, "denied: user=a. Give this user the right"),
        ("EOFException", None, LakeAwayError, "EOFException"),
        ("IOException", "", LakeAwayError, "IOException"),
    ],
)
def test_javas_errors_are_told_with_address_and_remedy(kind, said, what, told):
    with pytest.raises(what) as seen:
        failing_client(java_error(kind, said))
    assert AT in str(seen.value) and told in str(seen.value) and "TIDECAST_LAKE__ADDRESS" in str(seen.value)
    assert "\n" not in str(seen.value)


def test_a_file_that_is_gone_is_as_on_any_file_system():
    with pytest.raises(FileNotFoundError, match="/lake/0"):
        failing_client(java_error("FileNotFoundException", "File does not exist: /lake/0"))


def test_a_client_that_has_ended_is_told():
    with pytest.raises(LakeAwayError, match="has ended, another one is next"):
        failing_client(Py4JError("Answer from Java side is empty"))
