"""One table's trouble stops no other's upkeep, and what frees room comes first; Spark is made up here."""

import json
from types import SimpleNamespace

import pytest

from configs.settings import load
from pipelines.lake import upkeep
from pipelines.lake.errors import LakeError, LakeFullError
from pipelines.lake.folder import lake_folder

FULL = "java.io.IOException: No space left on device"


@pytest.fixture
def settings(tmp_path):
    """Of a lake with three tables of ingests."""
    settings = load(var=tmp_path)
    for table in ("decisions", "forecasts", "metrics"):
        said = {"topic": table, "topic_id": "t", "partition": "p", "start": {"0": 0}, "end": {"0": 1}}
        origin = {**said, "judged_at": 1.0, "stored": 1, "quarantined": 0}
        log = lake_folder(settings) / table / "_delta_log"
        log.mkdir(parents=True)
        commit = {"commitInfo": {"userMetadata": json.dumps({"origin": origin})}}
        (log / f"{0:020d}.json").write_text(json.dumps(commit))
    return settings


def asked(monkeypatch, fails):
    """What is asked of Spark: the verb and the table; `fails` says which of these fail, and with what."""
    told = []

    def sql(text):
        verb, table = text.split()[0], text.split("`")[1].rpartition("/")[2]
        told.append((verb, table))
        if said := fails.get((verb, table)):
            raise RuntimeError(said)
        return SimpleNamespace(collect=lambda: [{"numFiles": 1}])

    spark = SimpleNamespace(sql=sql, conf=SimpleNamespace(set=lambda *_: None), stop=lambda: told.append("stopped"))
    monkeypatch.setattr("pipelines.spark.session.local_session", lambda *_, **__: spark)
    return told


def test_a_table_that_cannot_be_maintained_fails_the_run_once_the_others_are(settings, monkeypatch):
    told = asked(monkeypatch, {("OPTIMIZE", "decisions"): "a file is gone"})
    with pytest.raises(RuntimeError, match="a file is gone"):
        upkeep.maintain(settings)
    assert {("OPTIMIZE", "forecasts"), ("OPTIMIZE", "metrics")} < {*told} and told[-1] == "stopped"


def test_a_table_whose_log_cannot_be_read_fails_the_run_once_the_others_are_maintained(settings, monkeypatch):
    told = asked(monkeypatch, {})
    broken = lake_folder(settings) / "forecasts" / "_delta_log" / f"{1:020d}.json"
    broken.mkdir()
    with pytest.raises(IsADirectoryError, match=f"forecasts/_delta_log/{1:020d}.json"):
        upkeep.maintain(settings)
    assert {("OPTIMIZE", "decisions"), ("OPTIMIZE", "metrics")} < {*told}
    assert "forecasts" not in {table for _, table in told[:-1]}


def test_a_table_that_this_user_may_not_read_is_named_with_what_helps(settings, monkeypatch):
    told, read = asked(monkeypatch, {}), upkeep.commit_origins

    def forbidden(root, table):
        if table == "decisions":
            raise PermissionError(13, "Permission denied", f"{root / table}/_delta_log/0.json")
        return read(root, table)

    monkeypatch.setattr(upkeep, "commit_origins", forbidden)
    with pytest.raises(LakeError, match=r"lake/decisions: .*Permission denied.*Give this user the right to read it"):
        upkeep.maintain(settings)
    assert [table for verb, table in told[:-1] if verb == "OPTIMIZE"] == ["forecasts", "metrics"]


def test_on_a_full_disk_what_nobody_needs_is_removed_from_every_table(settings, monkeypatch):
    tables = ("decisions", "forecasts", "metrics")
    told = asked(monkeypatch, {("OPTIMIZE", table): FULL for table in tables})
    with pytest.raises(LakeFullError, match="decisions has no room left"):
        upkeep.maintain(settings)
    assert [table for verb, table in told[:-1] if verb == "VACUUM"] == [*tables]
