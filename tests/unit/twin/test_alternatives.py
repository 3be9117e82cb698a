"""What else could have served a load, where the answers are known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from configs.contract import Contract
from models.policy.core.choice import make_choice
from models.twin.experiment.alternatives import _always, _served, price_alternatives
from models.twin.sim.given import Looks
from models.twin.sim.job import TwinJob

# Batches of 2 s with 0.5 s of overhead: each executor sustains 75 records/s.
JOB = TwinJob(0.5, 0.01, most=6, tasks=60, startup_s=(5.0,), latency_target_s=5.0)


def contract(budget=0.05):
    planning = {"overhead_s": 0.5, "per_record_s": 0.01, "lead_s": 6.0, "batch_s": 2.0, "scale_down_delay_s": 10}
    return Contract(job="j", executors={"min": 1, "max": 6}, error_budget=budget, planning=planning)


def arrived(rates):
    return np.concatenate([[0.0], np.cumsum(rates)])


def test_a_steady_load_takes_the_same_of_everybody():
    found = price_alternatives(JOB, contract(), arrived(np.full(300, 140.0)))
    assert found.fixed == 2 and found.fixed_executor_s == pytest.approx(600, rel=0.02)
    assert found.clairvoyant_executor_s == pytest.approx(600, rel=0.05)
    assert found.reactive_executor_s < 3.2 * 300


def test_a_load_with_two_peaks_is_cheapest_for_who_knows_it():
    seconds = np.arange(600)
    found = price_alternatives(JOB, contract(), arrived(180 - 150 * np.cos(seconds * 2 * np.pi / 300)))
    assert found.fixed is not None and found.fixed >= 4
    assert found.clairvoyant_executor_s < 0.8 * found.fixed_executor_s
    assert found.clairvoyant_executor_s < found.reactive_executor_s * (1 if found.reactive_late <= 0.05 else 2)


def test_all_are_judged_by_the_seconds_of_production_as_the_run_is():
    """15 s of 90 records/s a minute: one executor is late in 50 seconds of 600, which is a third of the 150 that count.

    `reactive` is late in 9 of them. One executor alone takes 600, and the plan is allowed 15 late seconds, not 60.
    """
    found = price_alternatives(JOB, contract(0.1), arrived(np.tile([90.0] * 15 + [0.0] * 45, 10)))
    assert found.fixed == 2 and found.reactive_late == pytest.approx(0.06)
    assert found.clairvoyant_executor_s is not None and found.clairvoyant_executor_s > 605


def test_where_no_number_carries_the_load_none_is_named():
    found = price_alternatives(JOB, contract(), arrived(np.full(200, 900.0)))
    assert found.fixed is None and found.fixed_executor_s is None and found.clairvoyant_executor_s is None
    assert found.reactive_late > 0.5 and found.reactive_executor_s <= 6 * 200


def test_a_fixed_number_is_not_charged_for_the_time_in_which_its_executors_start():
    rates = np.concatenate([np.full(60, 30.0), np.full(240, 140.0)])
    found = price_alternatives(replace(JOB, startup_s=(30.0,)), contract(), arrived(rates))
    assert found.fixed == 2 and found.fixed_executor_s == pytest.approx(30 + 2 * 270, abs=1.1)


class Flickering:
    """Asks for three executors, and calls two of them off a second later."""

    name = "flickering"

    def fresh(self, runs):
        return {}

    def decide(self, memory, view):
        asked = 3.0 if view.now_s % 2 == 0 else 1.0
        return memory, make_choice(np.full(len(view.target), asked))


def test_executors_that_are_called_off_before_they_come_neither_cost_nor_save_anything():
    slow = replace(JOB, startup_s=(30.0,))
    paid, _ = _served(slow, contract(), arrived(np.full(200, 30.0)), Looks(1, 5, 2.0), Flickering())
    assert paid == 200


def test_who_uses_all_of_the_budget_keeps_the_promise(monkeypatch):
    """6 late seconds of 600 in which anything is produced, of 610, are 1 %, not more by its last bit."""
    outcome = SimpleNamespace(violation=np.full(8, 6 / 610))
    monkeypatch.setattr("models.twin.experiment.alternatives.simulate", lambda *_: outcome)
    load = arrived([30.0] * 600 + [0.0] * 10)
    assert _served(JOB, contract(0.01), load, Looks(1, 5, 2.0), _always(contract(), 1))[1] == 0.01


def test_a_plan_may_use_all_of_the_budget(monkeypatch):
    """29 % of 100 seconds in which anything is produced, of 120, are 29 late ones, not fewer by the last bit."""
    budgets = []

    def planned(jobs, load, looks, seeds, shares):
        budgets.extend(shares)
        return _always(contract(), 6)

    monkeypatch.setattr("models.twin.experiment.alternatives.plan_clairvoyantly", planned)
    price_alternatives(JOB, contract(0.29), arrived([140.0] * 100 + [0.0] * 20))
    assert budgets == [29 / 120]
