"""A change of the lead time in mid run: when it is known, and when the account is back on its line."""

import numpy as np
import pytest

from models.forecast.core.series import Series
from models.twin.promise.change import account_around, learned_after
from models.twin.promise.learning import Raise
from pipelines.bench.twin import lead_change


def told(decided_s, median_s, planned_s):
    return Raise(0, decided_s, decided_s + 60.0, 60.0, 1, False, median_s, planned_s)


def test_start_ups_until_both_quantiles_are_near_by_hand():
    raises = [told(1.0, 12.0, 15.0), told(1.0, 49.0, 50.0), told(5.0, 50.0, 60.0), told(9.0, 100.0, 100.0)]
    found = learned_after(0.01, raises, (60.0, 70.0))
    assert found.starts == 1  # the second outcome of a start-up is no further one
    assert (found.median, found.planned) == (pytest.approx(100 / 60), pytest.approx(100 / 70))
    many = [told(float(at), 60.0 + at, 70.0) for at in range(1, 12)]
    assert learned_after(0.01, many, (60.0, 70.0)).median == pytest.approx(68 / 60)  # of the eighth
    never = learned_after(0.01, [told(1.0, 60.0, 100.0)], (60.0, 70.0))
    assert never.starts is None and never.median == 1.0


def test_an_account_is_on_its_line_a_day_later_by_hand():
    late = np.zeros(24 * 4 + 1)
    late[25:] = 1000.0  # in the hour after the change
    late[49:] += 36.0  # a day later, and then nothing
    found = account_around(0.001, late, 86_400, 1 / 100)
    assert found.before == 0 and found.first_day == pytest.approx(1000 / 86_400)
    assert found.later == pytest.approx(36 / 172_800) and found.back_h == 1
    assert found.leads == pytest.approx(1728)
    late[90:] += 1000.0
    assert account_around(0.001, late, 86_400, 1 / 100).back_h is None


def part(load, starts, later=0.01, why=""):
    learned = [{"budget": 0.01, "starts": one, "median": 1.1, "planned": 0.9} for one in starts]
    account = {"budget": 0.01, "before": 0.01, "first_day": 0.03, "later": later, "back_h": 3, "leads": 9.0}
    accounts = [account | {"judged": True}, account | {"judged": False, "later": 1.0}]
    return {"load": load, "learned": [] if why else learned, "accounts": [] if why else accounts, "why": why}


def test_parts_are_judged_together_by_hand():
    parts = [part("a", [2, 4]), part("b", [3, None], later=0.013), part("c", [], why="no")]
    found = lead_change.summarise_change(parts)
    assert (found["runs"], found["starts"], found["starts_worst"]) == (4, 3.5, None)
    assert (found["accounts"], found["back"], found["back_h"], found["near"]) == (2, 0.5, 3, 1.0)
    assert [row["two days from then"] for row in found["rows"]] == pytest.approx([1.0, 100.0, 1.3, 100.0])
    assert [row["start-ups until known"] for row in found["rows"]] == [4, 4, None, None]
    nothing = lead_change.summarise_change([])
    assert nothing["runs"] == 0 and nothing["starts"] is None and nothing["back"] is None


def test_loads_are_taken_until_there_are_enough_and_those_known_are_not_measured_again(monkeypatch):
    measured, saved = [], []

    def judge(name, _series):
        measured.append(name)
        return part(name, [3], why="too short" if name == "short" else "")

    monkeypatch.setattr(lead_change, "judge_changed_load", judge)
    monkeypatch.setattr(lead_change, "read_load", lambda name: type("Load", (), {"series": None}))
    loads = ["short", *"abcdef"]
    found = lead_change.measure_change(loads, [part("a", [5])], lambda parts: saved.append(len(parts)))
    assert sum(not one["why"] for one in found["parts"]) == lead_change.LOADS and "a" not in measured
    assert saved == list(range(1, len(found["parts"]) + 1))


def test_a_load_that_is_too_short_says_so():
    said = lead_change.judge_changed_load("x", Series(0.0, 3600.0, np.ones(24 * 10)))
    assert said["why"] == "x: 2.0 days are left to judge; 4 are needed" and said["accounts"] == []
