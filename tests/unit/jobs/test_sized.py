"""Sketches are as large as the contract's limit asks for, and no contract is taken that no sketch keeps."""

from functools import partial

import pytest

from configs.contract import Contract, load_contract
from configs.errors import SettingsError
from configs.settings import ROOT
from models.replication.approximation.ledger import LedgerEntry
from pipelines.jobs.plans import key_estimates
from pipelines.jobs.plans.sized import sized
from tests.fakes.plan_truths import SignedEvent, true_differents
from tidecast.signed import SignedError, approx_distinct
from tidecast.signed.approximate.bounds import difference_error

DISTINCT = partial(approx_distinct, "user")


def contract(limit, **theta):
    said = {"error": {"users": limit}, "controls": {"theta": theta}}
    return Contract.model_validate({"job": "orders", "backpressure": said})


def asked(limit, expected=1000.0, **theta):
    """The error and probability that a result is declared with."""
    found = []
    sized(contract(limit, **theta), "users", lambda **given: found.append(given), expected)
    return found[-1]["eps"], found[-1]["pf"]


def test_a_tenth_of_the_limit_is_used_without_pressure_and_more_where_the_contract_says_so():
    assert asked({"eps_rel": 0.05, "pf": 0.01}) == (pytest.approx(0.005), 0.01)
    assert asked({"eps_rel": 0.05, "pf": 0.01}, min=0.5) == (pytest.approx(0.025), 0.01)
    assert asked({"eps_abs": 20.0, "pf": 0.01}, expected=1000.0) == (pytest.approx(0.002), 0.01)


def test_a_stricter_limit_makes_a_larger_sketch():
    sizes = [
        sized(contract({"eps_rel": eps, "pf": 0.01}), "users", DISTINCT, 1000.0)["precision"] for eps in (0.5, 0.2, 0.1)
    ]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]


def test_all_of_a_limit_is_used_where_no_sketch_keeps_a_tenth_of_it():
    limit = {"eps_rel": 0.005, "pf": 0.01}
    with pytest.raises(SignedError):
        DISTINCT(eps=0.0005, pf=0.01)
    found = sized(contract(limit), "users", DISTINCT, 1000.0)
    assert found["precision"] == DISTINCT(eps=0.005, pf=0.01)["precision"]


def test_what_cannot_be_kept_or_is_not_stated_is_refused_with_the_key():
    with pytest.raises(SettingsError, match=r"orders.yaml: backpressure.error.users cannot be kept: approx_distinct"):
        sized(contract({"eps_rel": 1e-6, "pf": 0.01}), "users", DISTINCT, 1000.0)
    with pytest.raises(SettingsError, match=r"backpressure.error.clicks is not stated"):
        sized(contract({"eps_rel": 0.1, "pf": 0.01}), "clicks", DISTINCT, 1000.0)
    with pytest.raises(SettingsError, match=r"orders.yaml: backpressure.error.users is not stated"):
        sized(Contract(job="orders"), "users", DISTINCT, 1000.0)


@pytest.mark.parametrize("pressed", [0.0, 1.0])
def test_the_shipped_plan_states_a_limit_that_is_kept(pressed):
    shipped = load_contract(key_estimates.JOB, ROOT / "configs" / "contracts" / "plans")
    limit = shipped.backpressure.error["different"]
    stated = contract({"eps_rel": limit.eps_rel, "pf": limit.pf}, min=pressed)
    found = sized(stated, "users", partial(approx_distinct, "seq", once=True), 100.0)
    many = 100_000_000
    bound = difference_error(many, many, 2 ** int(found["log_k"]), found.pf)
    told = LedgerEntry("users", (0, 600_000), many, bound, found.pf, many)
    assert found.kind == "remaining" and bound > 0 and told.keeps(limit)


def test_the_truth_of_the_plan_counts_what_stands():
    events = [SignedEvent(1, 0, "a"), SignedEvent(2, 5, "a"), SignedEvent(2, 5, "a", -1), SignedEvent(3, 600_000, "a")]
    assert true_differents(events) == {"key_estimates:a@0-600000": 1, "key_estimates:a@600000-1200000": 1}
