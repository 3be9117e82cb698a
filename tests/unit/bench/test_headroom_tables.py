"""What cells of `tidecast bench headroom` come to, by hand, its actions, and what a run goes on from."""

import numpy as np
import pytest

from configs.errors import SettingsError
from models.policy.catalogue import entry
from pipelines.bench.dqn import headroom
from pipelines.bench.dqn.headroom import MIDDLE, _allowed, list_actions
from pipelines.bench.dqn.headroom_tables import summarise_headroom
from pipelines.figures.form import Figure, read_figure


def cell(above, learned, lead_s=600.0):
    return {
        "load": "made", "lead_s": lead_s, "power": 1.0, "budget": 0.01, "above": above,
        "constant": {"all": 0.98}, "by_part": {"all, 12 leads": 0.9, "all, 48 leads": 0.95},
        "learned": {"seed 1": learned, "seed 2": learned},
    }  # fmt: skip


def test_only_cells_with_something_to_gain_are_judged():
    found = summarise_headroom([cell(1.05, 0.5), cell(1.2, 1.1), cell(1.3, 0.96), cell(1.4, None), cell(None, 0.1)])
    assert (found["judged"], found["above"]) == (4, 3)
    assert found["learned"] == {"median": 1.1, "worst": 1.1, "not_kept": 1}  # of 0.96, 1.1 and what is not kept
    assert found["chosen"]["learned"]["seed 1"]["gaining"] == 1
    assert found["by_group"][0]["above 1.10 ×"] == 3 and len(found["rows"]) == 5


def test_none_is_judged_where_none_is_kept():
    assert summarise_headroom([cell(None, None)])["learned"] == {"median": None, "worst": None, "not_kept": 0}


def test_actions_begin_with_the_planners_own():
    actions, families = list_actions(300.0)
    own = families["price"]
    assert actions.violation_cost[0] == MIDDLE and set(entry("mpc").values) <= set(actions.violation_cost[own])
    assert (actions.utilisation[own] == 1).all() and (actions.hold_s[own] == 300).all() and not actions.more[own].any()
    assert all(set(own) < set(families[name]) for name in families if name != "price")
    near = actions.violation_cost[_allowed(actions.violation_cost, 0)]
    assert (near.min(), near.max()) == (0.5, 1.7) and len(np.unique(near)) == 5


@pytest.fixture
def bench(monkeypatch, tmp_path):
    """The bench on small files, and the lead times that it judged."""
    file, judged = tmp_path / "headroom.json", []

    def judge(groups):
        judged.append(groups[0][0].lead_s)
        return [cell(1.2, 1.1, groups[0][0].lead_s)]

    monkeypatch.setattr(headroom, "_scenario", lambda _load, setup, _said: setup)
    monkeypatch.setattr(headroom, "judge_headroom", judge)

    def write(data):
        file.write_text(Figure("tidecast bench headroom", None, "2026-11-21", "2 cores", 1.0, [], data).to_text())

    def run(leads_s, days=2.0, **values):
        for name, value in ({"a.csv": 1.0, "b.csv": 2.0} | values).items():
            (tmp_path / name).write_text("\n".join(["time,load", *(f"{3600 * k},{value + k % 5}" for k in range(24))]))
        loads = [str(path) for path in sorted(tmp_path.glob("*.csv"))]
        return headroom.measure_headroom(loads, leads_s, days, file, write)

    return run, judged, file, write


def test_lead_times_that_a_file_has_of_the_same_loads_are_taken(bench):
    run, judged, file, _ = bench
    run([600.0])
    assert run([600.0, 1800.0])["leads_s"] == [600.0, 1800.0] and judged == [600.0, 1800.0]
    assert run([1800.0])["leads_s"] == judged == [600.0, 1800.0]  # what took an hour is not dropped
    assert read_figure(file).data["leads_s"] == [600.0, 1800.0]


@pytest.mark.parametrize(
    ("named", "other"),
    [
        (r"days 2\.0, and 3\.0", {"days": 3.0}),
        (r"digests\.b\.csv \w+, and \w+", {"b.csv": 7.0}),
        (r"digests\.c\.csv unknown, and \w+", {"c.csv": 3.0}),  # its cells were to teach those of the others
    ],
)
def test_cells_of_other_loads_or_days_are_not_gone_on_with(bench, named, other):
    run, judged, *_ = bench
    run([600.0])
    with pytest.raises(
        SettingsError, match=rf"headroom\.json holds figures with {named} is asked for.*leave --resume out"
    ):
        run([600.0, 1800.0], **other)
    assert judged == [600.0]


def test_cells_of_loads_that_are_not_named_are_not_gone_on_with(bench):
    run, judged, _, write = bench
    write({"days": 2.0, "leads_s": [600.0], "cells": [cell(1.2, 1.1)]})  # as an earlier release left it
    with pytest.raises(SettingsError, match=r"digests\.a\.csv unknown, and \w+ is asked for"):
        run([600.0])
    assert judged == []
