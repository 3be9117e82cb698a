"""Which logs of a table are read whole, and which are left to Spark."""

from __future__ import annotations

import json
import time

import pytest

from pipelines.lake import table_files as module
from pipelines.lake.size import day_growth
from pipelines.lake.table_files import table_files

FIRST = [
    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
    {"metaData": {"partitionColumns": [], "schemaString": json.dumps({"fields": [{"name": "job", "type": "string"}]})}},
]


@pytest.fixture
def lake(tmp_path):
    log = tmp_path / "metrics" / "_delta_log"
    log.mkdir(parents=True)
    actions = [FIRST, [{"add": {"path": "a.parquet"}}], [{"remove": {"path": "a.parquet"}}, {"add": {"path": "b%20c"}}]]
    for version, said in enumerate(actions):
        (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, said)))
    return tmp_path


def test_what_was_removed_is_no_file_of_the_table(lake):
    found = table_files(lake, "metrics")
    assert found.paths == (lake / "metrics" / "b c",) and found.version == 2 and found.columns.names == ["job"]


def test_a_log_that_is_longer_than_is_read_whole_is_left_to_spark(lake, monkeypatch):
    monkeypatch.setattr(module, "MOST_COMMITS", 3)
    assert table_files(lake, "metrics") is not None
    monkeypatch.setattr(module, "MOST_COMMITS", 2)
    assert table_files(lake, "metrics") is None


def test_a_log_whose_begin_is_gone_is_left_to_spark(lake):
    (lake / "metrics" / "_delta_log" / f"{0:020}.json").unlink()
    assert table_files(lake, "metrics") is None


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("protocol", {"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}),
        ("metaData", {"partitionColumns": ["job"]}),
        ("metaData", {"schemaString": json.dumps({"fields": [{"name": "at", "type": "timestamp"}]})}),
    ],
)
def test_a_feature_a_layout_or_a_type_that_is_not_known_is_left_to_spark(lake, action, said):
    plain = next(one[action] for one in FIRST if action in one)
    newest = lake / "metrics" / "_delta_log" / f"{3:020}.json"
    newest.write_text(json.dumps({action: plain}))
    assert table_files(lake, "metrics") is not None
    newest.write_text(json.dumps({action: plain | said}))
    assert table_files(lake, "metrics") is None


def test_a_line_of_the_log_ends_where_json_says_so(lake):
    smallest = json.dumps({"minValues": {"job": "a\u2028b\x85c\u2029"}}, ensure_ascii=False)
    added = {"add": {"path": "d", "size": 5, "dataChange": True, "stats": smallest}}
    for version, said in enumerate([*FIRST, added]):
        path = lake / "odd" / "_delta_log" / f"{version:020}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(said, ensure_ascii=False) + "\n")
    assert table_files(lake, "odd").paths == (lake / "odd" / "d",)
    assert day_growth(lake, "odd", time.time()) == 5
