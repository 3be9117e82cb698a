"""Advice and the page of acting, as people read them."""

from dataclasses import replace

import numpy as np
import pytest

from models.twin.advice.advise import Advice, Tried
from models.twin.advice.changes import Change
from models.twin.advice.facts import Facts
from models.twin.advice.serve import Cost
from models.twin.sim.job import TwinJob
from pipelines.advise.acting import Acting, Served
from pipelines.advise.measured import MeasuredJob
from pipelines.advise.page import render_acting
from pipelines.advise.text import advice_to_json, format_advice
from tests.unit.advise.test_measured_job import CONTRACT

JOB = TwinJob(0.4, 0.01)
SEEN = MeasuredJob(
    CONTRACT, JOB, 8, Facts({}, None, None, None, None, None, 0.1), np.arange(7201.0), np.full(7200, 3.0), 72.0, 7200.0,
    True, True, True,
)  # fmt: skip
TOLD = {
    "ceiling": {"most": 6, "to": 9, "tasks": 6, "to_tasks": 9}, "partitions": {"tasks": 4, "to": 8},
    "trigger": {"trigger_s": 1.0, "batch_s": 2.0, "to_s": 8.0}, "memory": {"gc_share": 0.3, "spilled_bytes": 2e8},
    "sink": {"wait_share": 0.6}, "overhead": {"phase": "log_s", "seconds": 1.4, "to_s": 0.3},
    "skew": {"skew": 6.0, "parallel": 2.2, "tasks": 8},
}  # fmt: skip
SAID = {
    "ceiling": "executors.max 6 → 9, with 9 partitions instead of 6", "partitions": "4 → 8 tasks",
    "trigger": "A longer trigger: 1 → 8 s, planning.batch_s 2 → 8 s", "memory": "30 % of the tasks' time collects",
    "sink": "60 % of the tasks' time", "overhead": "the write-ahead log takes 1.40 s of a batch, 0.30 s are usual",
    "skew": "6.0 times as long as the median, 8 tasks do the work of 2.2",
}  # fmt: skip


def advice(*kinds, worth=None, budget=None):
    tried = tuple(Tried(Change(kind, TOLD[kind], JOB, CONTRACT), Cost(0.002, 18_000.0, 4.0), 0.3) for kind in kinds)
    return Advice(Cost(0.03, 21_600.0, 9.0), tried, len(kinds) if worth is None else worth, budget)


@pytest.mark.parametrize("kind", TOLD)
def test_every_kind_says_its_figures_and_what_it_comes_to(kind):
    first, line = format_advice("orders", SEEN, advice(kind)).splitlines()
    assert "at most 1.0 % of the seconds over 5 s; by its own batches 1.0 % were" in first
    assert first.endswith("on the newest 2.0 hours of its load: 3.0 % late, 6.00 executor-hours.")
    assert line.startswith("1. ") and line.endswith(" Then 0.2 % late, 5.00 executor-hours.")
    assert SAID[kind] in line


def test_it_is_about_five_lines_and_money_is_told_where_there_is_a_price():
    priced = replace(SEEN, contract=CONTRACT.model_copy(update={"price_per_executor_hour": 0.5}), lead_known=False)
    text = format_advice("orders", priced, advice(*TOLD))
    assert len(text.splitlines()) == 5 and "6.00 executor-hours for 3.00" in text
    assert text.splitlines()[-1].startswith("Not known: no start-up was seen, 12 s are taken")
    found = advice_to_json("orders", priced, advice(*TOLD))
    assert found["now"] == {"late": 0.03, "executor_hours": 6.0, "money": 3.0} and found["advised"] == "ceiling"


def test_nothing_and_another_promise_are_said():
    assert "Nothing: of what was tried, a longer trigger would gain most, 30 %." in format_advice(
        "orders", SEEN, advice("trigger", worth=0)
    )
    text = format_advice("orders", SEEN, advice(worth=0, budget=0.02))
    assert "Another promise" in text and "at best 2.0 %" in text and "Nothing" not in text


def test_the_page_sets_acting_beside_what_was_recorded_and_names_the_twin():
    acting = Acting(Served(72, 6.0), Served(70, 6.0), Served(36, 4.5), 7200, np.full(7200, 2.0))
    page = render_acting("a<b", SEEN, acting, "1. do < this")
    assert "a&lt;b" in page and "do &lt; this" in page
    assert "6.00 were there: −25 %" in page and "a simulator, fitted to this job" in page
    assert "Twin against twin, acting would have saved 1.50 executor-hours of 6.00, and 34 fewer seconds" in page
    assert "Money" not in page and "2.0 hours of load were recorded, in which the agent only observed" in page
    priced = replace(SEEN, contract=CONTRACT.model_copy(update={"price_per_executor_hour": 2.0}))
    assert "12.00 were paid: 3.00 saved" in render_acting("j", priced, acting, "")
    same = replace(acting, acting=replace(acting.acting, late_s=70))
    assert "and no second more or less would have been late" in render_acting("j", SEEN, same, "")


def test_every_share_on_the_page_is_of_the_seconds_of_production():
    rested = replace(SEEN, arrived=np.repeat(np.arange(3601.0), 2)[:7201], seconds=3600.0)
    acting = Acting(Served(72, 6.0), Served(90, 6.0), Served(36, 4.5), 7200, np.full(7200, 2.0))
    page = render_acting("j", rested, acting, "")
    assert all(f">{share}</td>" in page for share in ("2.00 %", "2.50 %", "1.00 %"))
