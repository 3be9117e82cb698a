import pandas as pd
import pytest

from pipelines.report import actions


def decision(name, wall, executors, codes, metric=None):
    inputs = {"metric_wall_time": metric} if metric is not None else {}
    return {
        "id": name, "wall_time": wall, "executors": executors, "codes": codes, "inputs": inputs, "expected": {},
        "evaluations": 3 if codes == ["hold", "stand_in"] else 1,
    }  # fmt: skip


def outcome(name, status, before, target, decided=None, applied=None, confirmed=None, useful=None, closed=None):
    return {
        "decision_id": name, "status": status, "reason": "", "observed": {}, "executors_before": before,
        "target": target, "executors_after": target, "decided_at": decided, "applied_at": applied,
        "confirmed_at": confirmed, "useful_at": useful, "wall_time": closed,
    }  # fmt: skip


@pytest.fixture
def acts():
    decisions = pd.DataFrame([
        decision("a", 10.4, 2, ["up", "forecast"], metric=10.0),
        decision("b", 11.4, 2, ["hold", "stand_in"], metric=11.0),
        decision("b2", 11.9, 2, ["hold"], metric=11.0),  # a second decision with the same metrics
        decision("c", 20.6, 3, ["up", "observed", "backlog"], metric=20.0),
        decision("d", 30.4, 2, ["down", "observed"], metric=30.0),
        decision("e", 40.4, 9, ["up", "forecast"], metric=40.0),
        decision("f", 50.0, 2, ["hold", "no_metrics"], metric=40.0),
    ])  # fmt: skip
    outcomes = pd.DataFrame([
        outcome("a", "confirmed", 1, 2, 10.4, 10.5, 11.6, 15.4),
        outcome("c", "ineffective", 2, 3, 20.6, 20.7, closed=25.2),
        outcome("d", "confirmed", 3, 2, 30.4, 30.5, 32.5, None),
        outcome("e", "refused", 2, 9),
        outcome("forged", "refused", 2, 99),  # of a decision that nobody can read
    ])  # fmt: skip
    return actions.join_outcomes(decisions, outcomes), outcomes


def test_counts(acts):
    assert actions.count_decisions(*acts) == {
        "decisions": 9, "stood_in": 3, "scale_ups": 2, "scale_downs": 1, "scale_ups_by_forecast": 1,
        "forecast_scale_ups_confirmed": 1, "ineffective": 1, "refused": 2, "failed": 0,
    }  # fmt: skip


def test_delays(acts):
    found = actions.action_delays(acts[0])
    known = {key: [round(float(v), 3) for v in values if v == v] for key, values in found.items()}
    assert known["decision_to_executor_s"] == [1.2]  # the scale-up that was of no use has none
    assert known["decision_to_useful_s"] == [5.0]
    assert known["metric_to_decision_s"] == [0.4, 0.4, 0.6, 0.4, 0.4]  # b2 and f led to nothing new


def test_seconds_in_action(acts):
    flags = actions.seconds_in_action(acts[0], start=0.0, seconds=60)
    begun = [s for s in range(60) if flags[s]]
    assert begun == [*range(10, 16), *range(20, 26), *range(30, 33)]  # c was given up at 25.2


def test_no_outcomes_and_no_decisions():
    columns = list(outcome("x", "confirmed", 1, 2))
    decisions = pd.DataFrame([decision("a", 1.0, 1, ["hold"], metric=0.5)])
    acts = actions.join_outcomes(decisions, pd.DataFrame(columns=columns))
    assert actions.count_decisions(acts, pd.DataFrame(columns=columns))["scale_ups"] == 0
    empty = actions.join_outcomes(decisions.iloc[:0], pd.DataFrame(columns=columns))
    assert len(actions.action_delays(empty)["metric_to_decision_s"]) == 0


def test_what_came_of_decisions_before_the_live_load_is_not_counted():
    acts = actions.join_outcomes(pd.DataFrame([decision("live", 10.4, 2, ["up", "forecast"])]), pd.DataFrame([
        outcome("live", "ineffective", 1, 2, 10.4, 10.5, closed=15.0)
    ]))  # fmt: skip
    outcomes = pd.DataFrame([
        outcome("warm-up", "ineffective", 1, 2, 9.0, 9.1, closed=11.0),  # it came while the load ran
        outcome("warm-up, unread", "refused", 1, 99, closed=9.5),
        outcome("live", "ineffective", 1, 2, 10.4, 10.5, closed=15.0),
        outcome("forged", "refused", 2, 99, closed=12.0),
    ])  # fmt: skip
    found = actions.count_decisions(acts, actions.made_between(outcomes, 10.0, 20.0))
    assert (found["ineffective"], found["refused"]) == (1, 1)
