"""In the short form everything follows from the promise; what is stated stands, and one account serves both."""

import json

import pytest

from configs.contract import Contract, load_contract, read_contracts
from configs.settings import ROOT
from models.contract.declared import TermsError
from models.contract.promised.derive import SustainedRates, derive_terms, refuse_unsustained
from models.contract.promised.level import records_level
from models.contract.signals import PlannedOperator, SharedPlan
from models.contract.state import begin
from models.contract.terms import compile_terms
from models.policy.core.batch_time import BatchTime
from models.policy.core.budget import Promise
from models.policy.core.sustained import sustained_rates

RATES = SustainedRates(100.0, 400.0)
SCALES = {"latency_ms": 100, "energy_cores": 2, "error_rel": 0.1, "goodput_rps": 50}


def derived(**section):
    return derive_terms(Contract(job="a", error_budget=0.05, latency_target_s=10.0, backpressure=section), RATES)


def test_the_short_form_by_hand():
    """10 s and 5 %: batches of 4 s, late for 2 s at a stretch; its oldest record is 4/30 s over the level."""
    terms = derive_terms(Contract(job="a", error_budget=0.05, latency_target_s=10.0), RATES)
    (path,) = terms.paths
    assert (path.ops, path.kind, path.quantile) == (("a",), "live", pytest.approx(1 - 0.05 * 2 / 3))
    assert path.max_ms == pytest.approx(10_000 - 4000 * 0.05 * 2 / 3)
    scales = terms.scales
    assert (scales.latency_ms, scales.energy_cores, scales.error_rel, scales.goodput_rps) == (10_000, 4, 0.05, 400)
    assert (terms.controls.replay_rps.min, terms.controls.replay_rps.max) == (0, 400)
    assert terms.controls.live_rps is None and terms.lag.max_ms == 40_000 and terms.name == "a"
    assert terms == derived() and compile_terms(json.loads(terms.text)) == terms
    assert derived(tables={"sales": "/lake/sales"}) == terms  # which no decision depends on


def test_the_path_is_the_promise_of_the_account():
    """Scaling and admission go by one promise: its target is the path's limit, its budget the path's level."""
    contract = Contract(job="a", error_budget=0.02, latency_target_s=8.0)
    promise, path = Promise.of(contract), derive_terms(contract, RATES).paths[0]
    assert path.quantile == records_level(promise.budget, contract.batch_s / 2)
    assert path.max_ms / 1000 + (1 - path.quantile) * contract.batch_s == pytest.approx(promise.target_s)


def test_rates_are_what_the_executors_sustain_as_guessed_or_as_learned():
    contract = Contract(job="a", executors={"min": 1, "max": 4}, latency_target_s=10.0)
    least, most = sustained_rates(contract)
    assert least == pytest.approx((1 - 0.6 / 4) / 0.0055) and most == pytest.approx(4 * least)
    learned = sustained_rates(contract, BatchTime.guess(2.0, 0.01), tasks=2)
    assert learned == pytest.approx((0.5 / 0.01, 2 * 0.5 / 0.01))


def test_what_is_stated_stands():
    terms = derived(
        weights={"alpha": 3}, scales=SCALES, memory={"max_bytes": 5}, lag={"max_ms": 7}, seed=4, interval_s=3,
        paths=[{"quantile": 0.5}, {"class": "replay", "quantile": 0.9, "max_ms": 60_000}],
        error={"hll": {"eps_rel": 0.01, "pf": 0.05}},
        controls={"replay_rps": {"max": 50, "slew": 0.2}, "live_rps": {}, "theta": {"max": 0.5}},
    )  # fmt: skip
    assert terms.weights.alpha == 3 and terms.memory.max_bytes == 5 and terms.lag.max_ms == 7 and terms.seed == 4
    assert [(path.kind, path.quantile) for path in terms.paths] == [("live", 0.5), ("replay", 0.9)]
    assert terms.paths[0].max_ms == 8000  # half of a batch's interval under the target
    boxes = terms.controls
    assert (boxes.replay_rps.max, boxes.replay_rps.slew, boxes.theta.max) == (50, 0.2, 0.5)
    assert (boxes.live_rps.min, boxes.live_rps.max) == (100, 400) and terms.scales.error_rel == 0.1


def test_the_promise_holds_beside_limits_of_the_replay_alone():
    terms = derived(paths=[{"class": "replay", "quantile": 0.9, "max_ms": 60_000}])
    assert [path.kind for path in terms.paths] == ["live", "replay"]


def test_the_strictest_relative_error_scales_errors():
    limits = {"hll": {"eps_rel": 0.01, "pf": 0.05}, "cms": {"eps_rel": 0.2, "pf": 0.05}}
    assert derived(error=limits).scales.error_rel == 0.01


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"paths": [{"quantile": 0.5}, {"quantile": 0.5}]}, "paths: 'live a 0.5' is limited twice"),
    ],
)
def test_what_does_not_go_together_with_what_follows_is_refused(section, told):
    with pytest.raises(TermsError, match=told):
        derived(**section)


def test_a_least_rate_above_what_executors_sustain_is_refused_by_the_first_guess_and_falls_with_what_is_learned():
    stated = Contract(job="a", backpressure={"controls": {"replay_rps": {"min": 500}}})
    with pytest.raises(TermsError, match=r"controls\.replay_rps\.min=500: .*sustain 400 records/s. State less"):
        refuse_unsustained(stated, RATES)
    refuse_unsustained(stated, SustainedRates(100.0, 500.0))
    box = derive_terms(stated, RATES).controls.replay_rps
    assert box.min == box.max == 400.0


@pytest.mark.parametrize("job", read_contracts(ROOT / "configs" / "contracts")[0])
def test_every_shipped_contract_compiles_to_terms_that_a_controller_begins_with(job):
    contract = load_contract(job, ROOT / "configs" / "contracts")
    terms = derive_terms(contract, sustained_rates(contract))
    assert begin(terms, SharedPlan((PlannedOperator(job, 10.0),), contract.batch_s), 1e9).controls.replay_rps == 0
