import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.adapt.gate import BLOCK, better, rolling, verdict
from models.forecast.core.series import SeriesError

errors = st.floats(0.01, 100)


def test_an_adapted_model_must_beat_all_three():
    found = verdict(8.0, 9.0, 10.0, 11.0)
    assert (found.served, found.accepted, found.transfer) == ("adapted", True, pytest.approx(-0.2))
    assert found.errors == {"adapted": 8.0, "source_only": 9.0, "target_only": 10.0, "last_value": 11.0}


@pytest.mark.parametrize(
    ("given_errors", "served", "transfer"),
    [
        ((12.0, 20.0, 10.0, 15.0), "target_only", 0.2),  # negative transfer
        ((9.0, 8.0, 10.0, 15.0), "source_only", -0.1),  # not better than not adapting
        ((9.0, 20.0, 10.0, 7.0), "last_value", -0.1),  # not better than doing nothing
        ((10.0, 20.0, 10.0, 15.0), "target_only", 0.0),  # a draw is no win
        ((float("nan"), 20.0, 10.0, 15.0), "target_only", float("nan")),
        ((float("inf"), float("nan"), 10.0, 15.0), "target_only", float("inf")),
    ],
)
def test_otherwise_the_best_of_the_others_serves(given_errors, served, transfer):
    found = verdict(*given_errors)
    assert (found.served, found.accepted) == (served, False)
    assert found.transfer == pytest.approx(transfer, nan_ok=True)


@given(errors, errors, errors, errors)
def test_what_is_served_is_never_worse_than_target_only(adapted, source, own, last):
    found = verdict(adapted, source, own, last)
    assert found.errors[found.served] <= own
    assert found.accepted == (adapted < min(source, own, last))


def test_without_a_finite_error_there_is_no_verdict():
    with pytest.raises(SeriesError, match="no candidate has a finite error"):
        verdict(*[float("nan")] * 4)


def test_better_asks_for_more_than_one_lucky_block():
    draw = np.random.default_rng(0)
    steady = np.ones(10 * BLOCK) + 0.1 * draw.standard_normal(10 * BLOCK)
    lucky = steady.copy()
    lucky[:BLOCK] -= 0.5  # a single block; alone its mean gain is just its standard error
    lucky[BLOCK : 2 * BLOCK] += 0.1
    assert better(steady - 0.1, steady)
    assert not better(lucky, steady)
    assert not better(steady + 0.1, steady)
    assert not better(steady, steady)
    assert not better(steady[: 4 * BLOCK - 1] - 0.5, steady[: 4 * BLOCK - 1])


def losses(**parts: np.ndarray) -> dict[str, np.ndarray]:
    return parts


def test_the_rolling_gate_opens_with_evidence_and_closes_again():
    steps, change = 1600, 800
    draw = np.random.default_rng(1).uniform(0.9, 1.1, steps)
    other = np.where(np.arange(steps) < change, 0.5, 2.0) * draw
    served = rolling(losses(own=draw, other=other), "own", begin=0, lag=3)
    assert served[: 4 * BLOCK] == ["own"] * (4 * BLOCK)
    assert set(served[5 * BLOCK : change]) == {"other"}
    assert served[-1] == "own"
    assert len(served) == steps


def test_evidence_from_before_counts_and_missing_rows_do_not():
    steps = 200
    other = np.full(steps, 0.5)
    other[:50] = np.nan
    other += 0.01 * np.random.default_rng(2).standard_normal(steps)
    found = losses(own=np.ones(steps), other=other)
    assert rolling(found, "own", begin=120, lag=1)[0] == "other"
    assert rolling(found, "own", begin=60, lag=1)[0] == "own"  # ten rows known of both


@given(st.integers(13, 150), st.integers(1, 12))
def test_no_judgement_reads_what_is_not_known_yet(at, lag):
    steps = 160
    draw = np.random.default_rng(3)
    own, other = draw.uniform(1, 2, steps), draw.uniform(0.5, 1.8, steps)
    before = rolling(losses(own=own, other=other), "own", 0, lag)
    changed = other.copy()
    changed[max(0, at - lag + 1) :] = 100.0
    after = rolling(losses(own=own, other=changed), "own", 0, lag)
    assert before[: at // BLOCK * BLOCK + 1] == after[: at // BLOCK * BLOCK + 1]
