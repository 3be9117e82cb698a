"""What the card of a registered version says, from facts that can be counted by hand."""

import json
import re

import numpy as np
import pytest

from models.forecast.baselines.naive import Naive
from models.forecast.core.series import Series
from pipelines.lake.load import LakeSeries
from pipelines.train.card import describe_data, describe_making
from pipelines.train.forecaster.card import model_card
from tests.fakes.forecasters import STEP, TASK

LOAD = LakeSeries(Series(0.0, STEP, np.array([10.0, np.nan, 20.0, 0.5])), 5)
"""Steps of an hour: (10 + 20 + 0.5) records/s of three of them are 109,800 records."""
SCORES = {
    "challenger": {"pinball": 1.25, "rmse_h1": 2.0, "rmse": 3.0, "coverage_0.1": 0.125, "coverage_0.5": 0.5,
                   "coverage_0.9": 0.875},
    "seasonal_naive": {"pinball": 2.5, "rmse_h1": 4.0, "coverage_0.1": 0.0},
}  # fmt: skip


def card(scores=SCORES, commit="c" * 40):
    return model_card("orders", Naive(TASK), LOAD, scores, "A note.", "r1", commit)


def test_the_data_are_counted_without_what_is_missing():
    said = describe_data(LOAD)
    assert "4 steps (1 missing), 1970-01-01 00:00 to 1970-01-01 04:00 UTC, 3 hours with 109,800 records" in said
    assert f"Delta version 5, digest {LOAD.lineage()['data.digest']}" in said


def test_a_card_says_what_it_was_measured_by_and_on_what_part():
    lines = card().splitlines()
    assert "| challenger | 1.25 | 2 | 3 | 0.875 |" in lines
    assert "| seasonal_naive | 2.5 | 4 |  |  |" in lines
    (calibration,) = [line for line in lines if line.startswith("Calibration")]
    assert calibration.endswith("at or under each quantile, 12.5 % under 0.1, 50 % under 0.5, 87.5 % under 0.9.")


def test_a_forecaster_that_was_never_measured_claims_nothing():
    assert "|" not in card({}) and "Calibration" not in card({})
    assert "Calibration" not in card({"challenger": {"coverage_0.9": float("nan")}})


def test_a_card_tells_how_it_is_made_again_and_what_it_is_not_for():
    (form,) = re.findall(r"`airflow dags trigger retrain_forecaster --conf '(.*)'`", card())
    assert json.loads(form) == {"job": "orders"}
    assert "commit " + "c" * 40 in card() and "in the run r1" in card() and "as of Delta version 5" in card()
    assert "**Not for:** another job, other steps than of 3600 s" in card()


@pytest.mark.parametrize(("commit", "sure"), [("abc", True), ("abc-dirty", False), (None, False)])
def test_code_that_no_commit_has_is_told(commit, sure):
    said = describe_making("r1", commit, "d", {}, "x", "y.")
    assert ("another run may differ" not in said) is sure


def test_what_matters_comes_before_what_a_cut_takes():
    """MLflow keeps 5,000 characters; notes grow with the number of candidates."""
    long = model_card("orders", Naive(TASK), LOAD, SCORES, "x" * 5_000, "r1", "c")
    assert max(long.index(words) for words in ("Not for", "Again", "| challenger", "Calibration")) < 3_000
