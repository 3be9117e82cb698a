"""Planted troubles are counted as told only where their own alert comes, in time, once and alone."""

import pytest

from pipelines.bench.team.alerts.measure import measure_alerts
from pipelines.bench.team.alerts.troubles import TROUBLES

SILENT = TROUBLES["silent"]


def measured(trouble, name="silent"):
    told = []
    found = measure_alerts(told.append, {name: trouble}, hours=0.1)
    assert told == [trouble.what] and found["n"] == 1
    return found


def test_a_trouble_that_is_told_has_its_seconds_and_its_window():
    found = measured(SILENT)
    assert (found["told"], found["quiet"], found["quiet_h"]) == (1, 0, 0.1)
    (row,) = found["troubles"]
    assert 60 < row["told after, s"] <= row["window, s"] == SILENT.within_s and row["told besides"] == "nothing"
    assert found["slowest"] == row["told after, s"] / SILENT.within_s


@pytest.mark.parametrize(
    ("changed", "after_s", "besides"),
    [
        ({"within_s": 20.0}, 90.0, "nothing"),
        ({"alert": "TidecastBrokerAway"}, None, "TidecastJobSilent"),
    ],
    ids=["too late", "another alert"],
)
def test_what_is_told_too_late_or_by_another_alert_does_not_count(changed, after_s, besides):
    found = measured(SILENT._replace(**changed))
    (row,) = found["troubles"]
    assert found["told"] == 0
    assert (row["told after, s"], row["told besides"]) == (after_s, besides)
    assert found["slowest"] == (after_s or 0.0) / row["window, s"]


def test_alerts_of_quiet_hours_are_counted(monkeypatch):
    monkeypatch.setattr("pipelines.bench.team.alerts.measure.MadeUpJob", lambda *planted: Broken())
    assert measure_alerts(print, {}, hours=0.1)["quiet"] == 1


class Broken:
    """A job whose broker is always away."""

    def look(self, now):
        from pipelines.bench.team.alerts.made_up_job import MadeUpJob

        return MadeUpJob("broker", 0.0).look(now)
