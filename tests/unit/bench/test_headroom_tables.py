"""What cells of `tidecast bench headroom` come to, by hand, and its actions."""

import numpy as np

from models.policy.catalogue import entry
from pipelines.bench.dqn.headroom import MIDDLE, _allowed, list_actions
from pipelines.bench.dqn.headroom_tables import summarise_headroom


def cell(above, learned):
    return {
        "load": "made", "lead_s": 600.0, "power": 1.0, "budget": 0.01, "above": above,
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
