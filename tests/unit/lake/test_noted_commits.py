"""What a person commits to a table of ours, with a note that may hold anything."""

import json
from dataclasses import asdict

import pytest

from pipelines.lake import tables

INGESTED = tables.Origin("metrics", "id", "2014-10-22T04", {0: 0}, {0: 9}, 5.0, 9, 0, {"orders": 60.0})


@pytest.mark.parametrize("note", ["removed\u2028bad rows", "[1]", "7", '{"origin": "me"}', '{"ticket": 7}'])
def test_a_repair_by_hand_leaves_what_ingests_have_said(tmp_path, note):
    log = tmp_path / "metrics" / "_delta_log"
    log.mkdir(parents=True)
    for version, said in enumerate((json.dumps({"origin": asdict(INGESTED)}), note)):
        told = {"commitInfo": {"operation": "DELETE", "userMetadata": said}}
        (log / f"{version:020}.json").write_text(json.dumps(told, ensure_ascii=False) + "\n")
    assert tables.commit_origins(tmp_path, "metrics") == [INGESTED]
    assert tables.job_spans_s(tmp_path) == {"orders": 60.0}
