"""When a placement is looked for and put in force: edges of the Pa-Stream seed's rules, and what must always hold."""

import numpy as np
import pytest

from models.placement.learned.actions import moves_between
from models.placement.learned.online import (
    BARRED_S,
    COOL_S,
    MARGIN,
    MOVE_COST,
    Scheduled,
    StepOutcome,
    choose_proposal,
    is_trusted,
    judge_change,
    trigger,
)
from models.placement.learned.reward import PlacementOutcome, RewardWeights
from models.placement.learned.schemes import Proposal

HERE = np.array([[2, 0], [1, 1]])


def proposal(counts, score):
    return Proposal(np.array(counts), PlacementOutcome(1.0, np.ones(2)), score)


def steps(state, measured, expected, times):
    for _ in range(times):
        state = state.after_step(StepOutcome(20.0, measured), StepOutcome(20.0, expected))
    return state


@pytest.mark.parametrize(("latency_ms", "load", "why"), [
    (100.0, 1.0, ""), (100.1, 1.0, "expected over the limit"), (100.1, 2.0, "expected over the limit"),
    (96.0, 1.0, ""), (60.0, 1.01, "expected to have too much load"), (60.0, 0.0, ""),
])  # fmt: skip
def test_limits_themselves_ask_for_nothing_and_what_does_admits_no_fewer_instances(latency_ms, load, why):
    calm = Scheduled(tuple(StepOutcome(90.0, 0.8) for _ in range(30)))
    assert trigger(calm, StepOutcome(latency_ms, load), 100.0) == (why, False)


def test_slower_than_usual_is_more_than_a_fifth_over_the_median_of_thirty_steps():
    state = Scheduled()
    for latency_ms in [90.0] * 16 + [10.0] * 14 + [20.0] * 16:
        state = state.after_step(StepOutcome(latency_ms, 0.8), StepOutcome(latency_ms, 0.8))
    assert len(state.measured) == 30  # without the first 16, of which the median would be 20 or 90 ms
    assert trigger(state, StepOutcome(24.0, 0.8), 100.0) == ("", False)
    assert trigger(state, StepOutcome(24.1, 0.8), 100.0) == ("expected slower than usual", False)
    assert trigger(Scheduled(), StepOutcome(90.0, 0.8), 100.0) == ("", False)


@pytest.mark.parametrize(("measured", "expected", "times", "fewer"), [
    (0.49, 0.49, 5, True), (0.49, 0.49, 4, False), (0.5, 0.49, 9, False), (0.49, 0.5, 9, False),
])  # fmt: skip
def test_only_five_steps_of_low_load_measured_and_expected_admit_fewer_instances(measured, expected, times, fewer):
    state = steps(steps(Scheduled(), 0.8, 0.8, 10), measured, expected, times)
    assert trigger(state, StepOutcome(20.0, expected), 100.0).fewer == fewer
    assert not trigger(steps(state, 0.5, 0.4, 1), StepOutcome(20.0, 0.4), 100.0).fewer
    # Where something is amiss too, capacity is not what there is too much of.
    assert trigger(state, StepOutcome(101.0, expected), 100.0) == ("expected over the limit", False)
    less = [proposal([[1, 0], [1, 1]], 0.9)]
    admitted = trigger(state, StepOutcome(20.0, 0.4), 100.0).fewer
    assert choose_proposal(state, 1e6, HERE, 0.4, less, admitted) is (less[0] if fewer else None)


def test_a_move_costs_a_hundredth_and_of_equals_fewer_moves_are_made():
    one, three = proposal([[1, 1], [1, 1]], 0.5 + MOVE_COST), proposal([[0, 2], [2, 1]], 0.5 + 2 * MOVE_COST)
    assert [moves_between(each.counts, HERE) for each in (one, three)] == [1, 3]
    even = three._replace(score=one.score - MOVE_COST + 3 * MOVE_COST)
    assert even.score - 3 * MOVE_COST == one.score - MOVE_COST
    for both in ([one, even], [even, one]):
        assert choose_proposal(Scheduled(), 0.0, HERE, 0.4, both, fewer=False) is one
    better = even._replace(score=even.score + 1e-6)
    assert choose_proposal(Scheduled(), 0.0, HERE, 0.4, [one, better], fewer=False) is better


def test_it_has_to_be_better_by_more_than_the_margin_after_the_moves():
    only = [proposal([[1, 1], [1, 1]], 0.46 + 1e-9)]
    assert choose_proposal(Scheduled(), 0.0, HERE, 0.4, only, fewer=False) is only[0]
    assert choose_proposal(Scheduled(), 0.0, HERE, 0.4 + 2e-9, only, fewer=False) is None
    assert (MARGIN, MOVE_COST, COOL_S, BARRED_S) == (0.05, 0.01, 180.0, 1_800.0)


def test_a_model_is_trusted_up_to_half_over_its_error_of_the_last_thirty_steps():
    assert is_trusted([1.5] * 30, 1.0) and not is_trusted([1.5] * 29 + [1.51], 1.0)
    assert is_trusted([100.0] * 5 + [1.5] * 30, 1.0)


def test_a_change_is_taken_back_to_fewer_instances_only_where_every_step_since_had_little_load():
    fewer, more = np.array([[1, 0]]), np.array([[2, 0]])
    before = Scheduled((StepOutcome(20.0, 0.6),)).after_change(0.0, fewer)

    def back(*loads):
        state = before
        for load in loads:
            state = state.after_step(StepOutcome(30.0, load), StepOutcome(30.0, load))
        return judge_change(state, 181.0, more, RewardWeights())[1]

    assert back(0.3, 0.3, 0.3) is fewer
    assert back(0.3, 0.3, 0.3, 0.3, 0.5) is None and back(0.3, 0.5, 0.3) is None


def test_fewer_instances_are_fewer_cores_where_executors_differ_in_size():
    """Four of one core, or two of four cores: the second has more, with fewer executors."""
    small, large, cores = np.array([[4, 0]]), np.array([[0, 2]]), np.array([1, 4])
    to_large, to_small = [proposal(large, 0.9)], [proposal(small, 0.9)]
    assert choose_proposal(Scheduled(), 0.0, small, 0.4, to_large, fewer=False, cores=cores) is to_large[0]
    assert choose_proposal(Scheduled(), 0.0, large, 0.4, to_small, fewer=False, cores=cores) is None
    assert choose_proposal(Scheduled(), 0.0, large, 0.4, to_small, fewer=True, cores=cores) is to_small[0]
    for old, new in ((small, large), (large, small)):
        state = steps(Scheduled((StepOutcome(10.0, 0.8),)).after_change(0.0, old), 0.8, 0.8, 3)
        assert judge_change(state, 181.0, new, RewardWeights(), cores)[1] is (old if old is large else None)


def test_of_all_minutes_of_a_schedule():
    """Drawn minutes, forecasts and proposals: what is put in force, when, and with how many instances."""
    kinds = set()
    for seed in range(30):
        random, counts, changed_s, state = np.random.default_rng(seed), HERE, -1e9, Scheduled()
        stretches = [(random.choice([15.0, 20.0, 30.0]), random.choice([0.3, 0.45, 0.9, 1.2])) for _ in range(20)]
        for at, told in enumerate(np.repeat(stretches, random.integers(1, 8, 20), axis=0).tolist()):
            now_s, measured = 60.0 * at, StepOutcome(*told)
            expected = [measured, StepOutcome(20.0, 0.3), StepOutcome(90.0, 1.1)][int(random.integers(3))]
            state, after = judge_change(state.after_step(measured, expected), now_s, counts, RewardWeights())
            back = after is not None
            if not back:
                reason, score = trigger(state, expected, 80.0), float(random.uniform(0.2, 0.5))
                near = [np.maximum(counts + random.integers(-1, 2, counts.shape), 0) for _ in range(5)]
                near += [np.frombuffer(key, np.int64).reshape(HERE.shape) for key, _ in state.barred]
                drawn = [proposal(one, float(random.uniform(0, 1))) for one in near]
                chosen = choose_proposal(state, now_s, counts, score, drawn, reason.fewer) if reason.why else None
                if chosen is None:
                    continue
                after, barred = chosen.counts, [key for key, until_s in state.barred if until_s > now_s]
                assert chosen.score - 0.01 * moves_between(after, counts) > score + 0.05
                assert after.tobytes() not in barred
                state = state.after_change(now_s, counts)
            assert now_s - changed_s >= 180
            assert after.sum() >= counts.sum() or measured.load < 0.5
            kinds.add((back, bool(after.sum() < counts.sum())))
            counts, changed_s = after, now_s
    assert len(kinds) == 4  # changes and ways back, with fewer instances and without
