import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.adapt.gate import decide_transfer
from models.forecast.core.series import SeriesError

errors = st.floats(0.01, 100)


def test_an_adapted_model_must_beat_all_three():
    found = decide_transfer(8.0, 9.0, 10.0, 11.0)
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
        ((8.0, float("nan"), 10.0, 11.0), "target_only", -0.2),  # a rival that is not known is not beaten
        ((8.0, 9.0, 10.0, float("nan")), "source_only", -0.2),
    ],
)
def test_otherwise_the_best_of_the_others_serves(given_errors, served, transfer):
    found = decide_transfer(*given_errors)
    assert (found.served, found.accepted) == (served, False)
    assert found.transfer == pytest.approx(transfer, nan_ok=True)


@given(errors, errors, errors, errors)
def test_what_is_served_is_never_worse_than_target_only(adapted, source, own, last):
    found = decide_transfer(adapted, source, own, last)
    assert found.errors[found.served] <= own
    assert found.accepted == (adapted < min(source, own, last))


@pytest.mark.parametrize("adapted", [8.0, float("nan")])
def test_without_a_model_to_fall_back_on_there_is_no_verdict(adapted):
    with pytest.raises(SeriesError, match="no candidate without transfer has a finite error"):
        decide_transfer(adapted, *[float("nan")] * 3)
