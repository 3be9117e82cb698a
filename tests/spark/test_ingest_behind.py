"""Whose clock is wrong: of one job that is ahead its own, of several, or by the broker's stamps, the ingest's."""

from __future__ import annotations

import pytest

from configs.settings import load
from pipelines.ingest import run
from pipelines.ingest.clock import ClockError, refuse_if_behind
from pipelines.ingest.columns import KINDS
from pipelines.ingest.offsets import Range
from pipelines.ingest.parse import parse_records
from pipelines.lake import tables as lake
from pipelines.lake.folder import lake_folder
from tests.fakes.records import NOW, record

pytestmark = pytest.mark.spark
SET_BY_SENDER, SET_BY_BROKER = 0, 1
COLUMNS = "key binary, value binary, partition int, offset bigint, timestamp double, timestampType int"
BEHIND_S, DECADES_S = 600.0, 2.2e9


@pytest.fixture
def settings(tmp_path):
    """Three jobs have a contract."""
    settings = load(var=tmp_path, contracts=tmp_path / "contracts")
    settings.contracts_dir.mkdir()
    for job in ("a", "b", "c"):
        (settings.contracts_dir / f"{job}.yaml").touch()
    return settings


def sent(spark, records, stamped=SET_BY_SENDER):
    """Records of jobs, each with its seconds ahead."""
    rows = [
        (job.encode(), record("metrics", job=job, wall_time=NOW + ahead_s), 0, offset, NOW + ahead_s, stamped)
        for offset, (job, ahead_s) in enumerate(records)
    ]
    frame = spark.createDataFrame(rows, COLUMNS)
    return frame.withColumn("timestamp", frame["timestamp"].cast("timestamp"))


@pytest.fixture
def taken(spark, settings, monkeypatch):
    """Ingests records; returns the counts, and whether there is a quarantine."""

    def take(records, now=NOW):
        monkeypatch.setattr(run, "_records", lambda *_: sent(spark, records))
        wanted = Range("metrics", "id", "2014-10-22T04", {0: 0}, {0: len(records)}, now, behind=-1)
        counts = run.ingest_ranges(spark, settings, [wanted])["metrics"]
        return counts, lake.exists(lake_folder(settings), lake.QUARANTINE)

    return take


@pytest.fixture
def looked_at(spark, settings):
    """Looks whether the clock is behind, as an ingest does that would refuse some of the records."""

    def look(records, stamped=SET_BY_SENDER):
        kind = KINDS["metrics"]
        refuse_if_behind(parse_records(sent(spark, records, stamped), kind, NOW), kind, NOW, settings.contracts_dir)

    return look


def test_a_job_that_is_ahead_by_itself_has_a_wrong_clock_itself(looked_at):
    """The ingest goes on, and quarantines what is ahead, as in `test_ingest` the newest of the metrics."""
    looked_at([("a", -1.0), ("b", BEHIND_S), ("c", -1.0), ("b", BEHIND_S)])


def test_where_several_jobs_end_ahead_nothing_is_taken_and_with_a_right_clock_all_of_it(taken):
    records = [("a", -1.0), ("b", -1.0), ("c", -1.0), ("a", BEHIND_S), ("b", BEHIND_S + 1)]
    counts, quarantined = taken(records)
    assert (counts["stored"], counts["quarantined"], counts["offsets"], quarantined) == (0, 0, {}, False)
    assert "2 of 3 jobs are up to 601 s ahead of this computer's clock" in counts["trouble"]
    assert "Set this clock (NTP)" in counts["trouble"]
    counts, quarantined = taken(records, now=NOW + BEHIND_S)
    assert (counts["stored"], counts["quarantined"], counts["trouble"], quarantined) == (5, 0, "", False)


def test_jobs_without_a_contract_do_not_outvote_one_that_has_one(looked_at, settings):
    records = [("a", -1.0), ("x", DECADES_S), ("y", DECADES_S)]
    looked_at(records)
    for job in ("x", "y"):
        (settings.contracts_dir / f"{job}.yaml").touch()
    with pytest.raises(ClockError, match=f"2 of 3 jobs are up to {DECADES_S:.0f} s ahead"):
        looked_at(records)


def test_the_brokers_own_stamps_tell_it_of_a_single_job(looked_at):
    looked_at([("a", BEHIND_S)])
    with pytest.raises(ClockError, match="the broker itself stamped records 600 s ahead"):
        looked_at([("a", BEHIND_S)], SET_BY_BROKER)
