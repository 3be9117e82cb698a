"""What a restore or an upgrade lost, in words; how long nobody decided; which release is before this one."""

from datetime import date

import pytest

from pipelines.bench.site.kept import older, silence
from pipelines.bench.site.kept.held import lasting_records, list_lost
from pipelines.bench.site.kept.older import day_before, known_settings
from pipelines.bench.site.kept.silence import ReleaseChange, describe_change, list_faults, longest_gap
from pipelines.bench.site.servers import SiteError
from pipelines.kafka.broker import Record

BEFORE = {"rows of the table metrics": 5, "aliases of word_count-forecaster 2": "champion"}
COUNTS = {"produced": 7, "counted": 7, "lost": 0, "duplicated": 0}


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({}, []),
        ({"rows of the table metrics": 6, "more": 1}, []),
        ({"rows of the table metrics": 4}, ["rows of the table metrics: 4, 5 before"]),
        ({"rows of the table metrics": None}, ["rows of the table metrics: nothing, 5 before"]),
        (
            {"aliases of word_count-forecaster 2": "previous"},
            ["aliases of word_count-forecaster 2: previous, champion before"],
        ),
    ],
)
def test_what_is_gone_less_or_other_is_lost_and_growth_is_not(after, said):
    assert list_lost(BEFORE, {name: now for name, now in (BEFORE | after).items() if now is not None}) == said


def test_of_a_compacted_topic_the_newest_of_each_key_lasts_and_of_others_all():
    told = [("a", b"1"), ("b", b"2"), ("a", b"3"), ("b", b"")]
    records = [Record("control", 0, offset, key, value, 0.0) for offset, (key, value) in enumerate(told)]
    assert lasting_records(records, compacted=True) == {"a": b"3"}
    assert lasting_records(records, compacted=False) == {"0/0": b"1", "0/1": b"2", "0/2": b"3"}


@pytest.mark.parametrize(
    ("moments", "longest"),
    [
        ([1, 12, 14, 40, 41], 26),  # 14 to 40
        ([41, 1, 40, 14, 12], 26),
        ([0, 38, 45], 38),  # that began before, too
        ([10, 11, 12, 90], 78),  # and that ends after
        ([3, 5], 35),  # nothing more until 40
        ([], 30),
        ([15], 25),
        ([0, 200, 10, 40], 30),
    ],
)
def test_the_longest_gap_is_that_around_a_change(moments, longest):
    assert longest_gap(moments, 10.0, 40.0) == longest


def record(wall_time, **more):
    return {"job": "word_count", "wall_time": wall_time, **more}


def decision(wall_time, version="3", starts=2, job="word_count", executors=2):
    inputs = {"forecast_version": version, "lead": {"starts": starts}}
    return {"id": f"{job}-{wall_time}", "job": job, "wall_time": wall_time, "executors": executors, "inputs": inputs}


def test_a_change_is_described_by_what_each_part_said_of_the_job(monkeypatch):
    monkeypatch.setattr(silence, "SETTLE_S", 10.0)
    said = {
        "decisions": [decision(99.0), decision(121.0, None), decision(126.0), decision(127.0, job="other")],
        "heartbeats": [record(129.0, by="autoscaler"), record(104.0, by="serving")],
        "forecasts": [record(98.0), record(115.0)],
    }
    assert describe_change(said, "word_count", ReleaseChange(100.0, 120.0, 1)) == {
        "silent_s": 22.0, "no_forecast_s": 15.0, "decisions": 2, "on_forecasts": 1, "restarts": 1,
    }  # fmt: skip


def test_nothing_is_lost_where_counts_decisions_and_knowledge_are_as_they_should_be():
    said = {
        "decisions": [decision(1), decision(2, starts=0, job="other"), decision(3, starts=4), decision(3, starts=4)],
        "rejects": [],
    }
    assert list_faults(COUNTS, said, "word_count", "autoscaler: ready") == []


def test_records_refusals_and_what_is_forgotten_are_told():
    said = {
        "decisions": [decision(1, starts=4), decision(2, starts=0), decision(2, starts=1, executors=3)],
        "rejects": [{}, {}],
    }
    found = list_faults(COUNTS | {"counted": 6, "lost": 1}, said, "word_count", "autoscaler: x: begun anew, because")
    assert [words.split(",")[0] for words in found] == [
        "counts differ: produced 7", "2 records were rejected", "decisions of one id ask for different executors",
        "raises from which the lead time was learned are forgotten", "a job's state was begun anew",
    ]  # fmt: skip


def test_the_release_before_is_the_newest_tag_or_of_the_day_before_the_newest(monkeypatch, tmp_path):
    (tmp_path / "CHANGELOG.md").write_text("**More** (2026-11-27)\n**Fixed** (2026-11-27)\n**Less** (2026-11-23 to 25)")
    monkeypatch.setattr(older, "ROOT", tmp_path)
    asked = []

    def git(*arguments):
        asked.append(arguments)
        return "" if arguments[0] == "describe" else "abc"

    monkeypatch.setattr(older, "_git", git)
    assert older.choose_release()[0] == "abc" and "--until=2026-11-23T23:59:59Z" in asked[-1]
    monkeypatch.setattr(older, "_git", lambda *arguments: "v1.2" if arguments[0] == "describe" else "def")
    assert older.choose_release() == ("def", "the newest tag, v1.2")
    monkeypatch.setattr(older, "_git", lambda *arguments: "")
    with pytest.raises(SiteError, match="whole history"):
        older.choose_release()


def test_a_changelog_of_one_day_has_no_day_before():
    assert day_before("2026-01-02, 2026-01-01, 2026-01-02") == date(2026, 1, 1)
    with pytest.raises(SiteError, match="fewer than two days"):
        day_before("2026-01-02")


def test_an_older_release_is_told_what_it_knows_of_our_settings():
    own = {"var": "/ours", "serving": {"path": "fast", "cores": 1}, "retraining": {"at_once": 2}, "lake": None}
    known = {"var": "var", "serving": {"path": "stream", "publish_s": 1.0}, "lake": {"versions_h": 168}}
    assert known_settings(own, known) == {"var": "/ours", "serving": {"path": "fast", "publish_s": 1.0}, "lake": None}
