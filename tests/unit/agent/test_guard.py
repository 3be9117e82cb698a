from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidecast.guard import REMEMBERED, Limits, SeenDecisions, check_decision
from tidecast.messages import Decision

NOW = 1_700_000_000.0
LIMITS = Limits(least=1, most=4)


def wish(executors=3, age=0.5, **fields):
    made = Decision("d7", "orders", NOW, NOW - age, 1.0, "act", "reactive", executors, "because", ["up"], {}, {})
    return replace(made, **fields)


def verdict(decision, mode="act", current=2, limits=LIMITS, ceiling=8, seen=None, now=NOW):
    return check_decision(decision, "orders", mode, current, limits, ceiling, seen or SeenDecisions(), now)


def test_a_good_decision_is_applied_with_its_reason():
    assert verdict(wish()) == verdict(wish())
    assert (verdict(wish()).action, verdict(wish()).reason) == ("apply", "because")


def test_a_hold_needs_nothing():
    assert verdict(wish(2)).action == "hold"


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (wish(0), "out of bounds: executors=0; 1 to 4"),
        (wish(5), "out of bounds: executors=5; 1 to 4"),
        (wish(age=10.1), "stale: decided 10.1 s ago"),
        (wish(age=-11), "future"),
    ],
)
def test_refusals_say_what_is_wrong(decision, words):
    said = verdict(decision)
    assert said.action == "refuse"
    assert words in said.reason


def test_a_replayed_decision_is_refused():
    seen = SeenDecisions().after(wish(), accepted=True)
    assert verdict(wish(), seen=seen).reason.startswith("duplicate")
    assert verdict(wish(), seen=seen).action == "refuse"
    assert verdict(wish(2), current=2, seen=seen).action == "ignore"  # a replayed hold disturbs nobody


def test_a_decision_older_than_the_accepted_one_is_refused():
    seen = SeenDecisions().after(wish(age=0.5, id="d8"), accepted=True)
    said = verdict(wish(age=1.0), seen=seen)
    assert said.action == "refuse"
    assert "d8" in said.reason
    assert verdict(wish(age=0.4), seen=seen).action == "apply"


def test_decisions_are_taken_again_once_all_clocks_were_set_back():
    seen = SeenDecisions().after(wish(age=0.5, id="d8"), accepted=True)
    hour = 3600.0
    assert verdict(wish(age=hour + 0.5), seen=seen, now=NOW - hour).action == "apply"
    assert verdict(wish(age=1.0), seen=seen, now=NOW - 5).action == "refuse"  # of clocks a little apart


def test_a_refusal_says_whether_the_number_of_executors_is_all_that_is_wrong():
    seen = SeenDecisions().after(wish(), accepted=True)
    assert verdict(wish(9)).number_alone and verdict(wish(4), ceiling=3).number_alone
    others = verdict(wish(9, age=60)), verdict(wish(9), seen=seen), verdict(wish(9), mode="freeze"), verdict(wish())
    assert not any(other.number_alone for other in others)


def test_executors_that_run_are_as_decided_be_they_out_of_reach():
    found, useless = verdict(wish(9), current=9), verdict(wish(4), current=4, ceiling=3)
    assert (found.action, useless.action) == ("hold", "hold")
    assert not found.number_alone and not useless.number_alone


def test_a_refused_decision_does_not_make_others_old():
    seen = SeenDecisions().after(wish(9, age=0.0, id="d8"), accepted=False)
    assert verdict(wish(age=1.0), seen=seen).action == "apply"


def test_what_was_decided_by_metrics_from_before_the_take_over_changes_no_executors():
    """It knows of one executor that had come, and the agent asks for all that its driver was started with."""
    seen = SeenDecisions(taken_over_at=NOW - 1)

    def said(measured_at, executors=1, now=NOW, age=0.5):
        return verdict(wish(executors, age, inputs={"metric_wall_time": measured_at}), current=4, seen=seen, now=now)

    assert (said(NOW - 1.5).action, said(NOW - 1.5).number_alone) == ("ignore", True)
    assert said(NOW - 0.9).action == said(None).action == "apply"
    assert said(NOW - 1.5, executors=4).action == "hold" and said(NOW - 1.5, executors=9).action == "refuse"
    assert said(NOW - 3601.0, now=NOW - 3600, age=3600.5).action == "apply"  # all clocks were set back


def test_the_ceiling_is_named():
    said = verdict(wish(4), ceiling=3)
    assert said.action == "refuse"
    assert "ceiling" in said.reason and "3 tasks" in said.reason
    assert verdict(wish(4), ceiling=None).action == "apply"
    assert verdict(wish(4), ceiling=7, limits=Limits(1, 4, slots_per_executor=2)).action == "apply"  # 2+2+2+1
    assert verdict(wish(4), ceiling=6, limits=Limits(1, 4, slots_per_executor=2)).action == "refuse"
    assert verdict(wish(4), ceiling=3, limits=Limits(4, 6)).action == "apply", "fewer are out of bounds"


def test_another_jobs_decision_is_rejected():
    assert verdict(wish(job="payments")).action == "reject"


@pytest.mark.parametrize("mode", ["observe", "freeze"])
def test_only_an_acting_agent_applies(mode):
    assert verdict(wish(), mode=mode).action == "ignore"
    assert verdict(wish(99), mode=mode).action == "ignore"


def test_a_recommendation_is_not_applied():
    assert verdict(wish(mode="observe")).action == "ignore"


@given(
    executors=st.integers(-5, 50),
    age=st.floats(-1e6, 1e6),
    mode=st.sampled_from(["observe", "act", "freeze"]),
    current=st.integers(0, 10),
    ceiling=st.none() | st.integers(1, 20),
    cores=st.integers(1, 4),
)
def test_whatever_is_applied_is_within_all_bounds(executors, age, mode, current, ceiling, cores):
    limits = Limits(1, 4, cores)
    said = verdict(wish(executors, age), mode, current, limits, ceiling)
    if said.action == "apply":
        assert mode == "act"
        assert 1 <= executors <= 4
        assert abs(age) <= limits.fresh_s + 1e-6
        assert executors != current
        assert ceiling is None or (executors - 1) * cores < ceiling
    assert said.reason


def test_memory_is_bounded():
    seen = SeenDecisions()
    for i in range(REMEMBERED + 10):
        seen = seen.after(wish(id=f"d{i}"), accepted=False)
    assert len(seen.ids) == REMEMBERED
    assert seen.ids[-1] == f"d{REMEMBERED + 9}"
