"""What may be said of where the lake is, and what a path on HDFS says of itself."""

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.errors import SettingsError
from configs.settings import load
from pipelines.lake.folder import lake_folder
from pipelines.lake.hdfs_path import HdfsPath

PART = st.from_regex(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,8}", fullmatch=True)
PARTS = st.lists(PART, min_size=1, max_size=4)


def test_nothing_said_is_a_folder_under_var(tmp_path):
    settings = load(var=tmp_path)
    assert lake_folder(settings) == tmp_path / "lake" == Path(settings.lake_address)


def test_a_mounted_folder_is_a_path(tmp_path):
    assert lake_folder(load(lake={"address": f"{tmp_path}/far"})) == tmp_path / "far"


@pytest.mark.parametrize("host", ["namenode:8020", "127.0.0.1:9000", "nameservice1", "nn-1.example.com"])
def test_a_folder_of_hdfs_is_one(host, monkeypatch):
    monkeypatch.setenv("TIDECAST_LAKE__ADDRESS", f"hdfs://{host}/tidecast/lake/")
    found = lake_folder(load())
    assert found == HdfsPath(f"hdfs://{host}", PurePosixPath("/tidecast/lake"))
    assert str(found) == f"hdfs://{host}/tidecast/lake"


@pytest.mark.parametrize(
    "address",
    [
        "s3://bucket/lake", "s3a://bucket/lake", "webhdfs://namenode:9870/lake", "file:///data/lake", "lake", "./lake",
        "", "hdfs://namenode:8020", "hdfs://namenode:8020/", "hdfs:///tidecast/lake", "hdfs:/lake",
        "hdfs://name_node/lake", "hdfs://me@namenode/lake", "hdfs://namenode:port/lake", "hdfs://namenode/a//b", "hdfs://namenode/a/../b",
        "hdfs://namenode/a b", "hdfs://namenode/a%20b", "hdfs://namenode/{a,b}", "hdfs://namenode/a?b#c", "hdfs://nn/a`b",
        "HDFS://namenode/lake", "hdfs://namenode/lake\n",
    ],
)  # fmt: skip
def test_what_no_lake_can_be_at_is_refused_with_its_value_and_the_remedy(address):
    with pytest.raises(SettingsError) as refused:
        load(lake={"address": address})
    assert f"lake.address: {address!r}" in str(refused.value) and "hdfs://HOST:PORT/FOLDER" in str(refused.value)


@given(PARTS, PART)
def test_a_path_of_hdfs_is_cut_as_any_path(parts, name):
    plain = PurePosixPath("/", *parts)
    path = HdfsPath.parse(f"hdfs://a:1{plain}")
    child = path / name
    assert (child.path, child.name, child.stem) == (plain / name, (plain / name).name, (plain / name).stem)
    assert child.parent == path and child.parents == (path, *path.parents)
    assert [str(above) for above in child.parents] == [f"hdfs://a:1{above}" for above in (plain / name).parents]
    assert HdfsPath.parse(str(child)) == child


@given(st.lists(PARTS, max_size=6))
def test_paths_of_one_file_system_are_ordered_as_any_paths(many):
    plain = [PurePosixPath("/", *parts) for parts in many]
    assert [path.path for path in sorted(HdfsPath("hdfs://a:1", path) for path in plain)] == sorted(plain)
