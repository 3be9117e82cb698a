import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.limits import Priorities, ShedTerms
from models.contract.declared import TermsError, build, plain
from models.contract.terms import ControlBox, Terms, compile_terms
from tests.fakes.shared_job import declared, shared_terms


def test_what_is_left_out_has_the_papers_defaults():
    terms = shared_terms()
    assert (terms.version, terms.interval_s, terms.seed) == (1, 10, 0)
    assert dataclasses.astuple(terms.weights) == (1.0, 0.2, 0.5, 1.0)
    assert dataclasses.astuple(terms.util_max) == (0.85, 0.85, 0.7, 0.7)
    assert dataclasses.astuple(terms.recovery) == (60.0, 300.0, 0.05, "in_order")
    assert dataclasses.astuple(terms.priorities) == (100, 50, 10)
    assert (terms.shed.allowed, terms.shed.max_fraction) == (False, 0.0)
    assert (terms.fairness.policy, terms.fairness.floor, terms.controls.replay_rps.slew) == ("maxmin", 0.05, 0.1)
    assert terms.memory is terms.lag is terms.energy is terms.net is None
    assert [(path.kind, path.name) for path in terms.paths] == [("live", "live map 0.99")]


def test_a_whole_contract_is_kept_by_json():
    terms = shared_terms(
        memory={"max_bytes": 1e9}, lag={"max_ms": 5000}, net={"bytes_per_record_max": 400}, energy={"max_cores": 6},
        paths=[{"ops": ["a", "b"], "quantile": 0.95, "max_ms": 80, "class": "live"},
               {"ops": ["b"], "quantile": 0.5, "max_ms": 900, "class": "replay"}],
        error={"sketch": {"eps_abs": 3, "pf": 0.01}, "hll": {"eps_rel": 0.02, "pf": 0.05}},
        recall={"join": {"min": 0.9}}, shed={"allowed": True, "max_fraction": 0.2},
        fairness={"policy": "log", "weights": {"gold": 2}},
        controls={"replay_rps": {"min": 0, "max": 5}, "live_rps": {"min": 1, "max": 9, "slew": 0.5}},
    )  # fmt: skip
    assert compile_terms(json.loads(terms.text)) == terms
    assert terms.lag.drift_max == 0 and terms.error["hll"].eps_abs is None
    assert build(Terms, plain(terms)).hash == terms.hash


def test_the_hash_is_of_what_is_said_not_of_how():
    terms = shared_terms()
    assert len(terms.hash) == 16 and int(terms.hash, 16)
    assert shared_terms(weights={"alpha": 1}, name="clicks").hash == terms.hash
    assert compile_terms(dict(reversed(declared().items()))).hash == terms.hash
    assert shared_terms(weights={"alpha": 1.5}).hash != terms.hash


WRONG = [
    ({"scales": {"latency_ms": 20, "energy_cores": 8, "error_rel": 0.02}}, "scales.goodput_rps: missing.*State it"),
    ({"scales": {**declared()["scales"], "latency_ms": 0}}, "scales.latency_ms=0: .*greater than 0"),
    ({"memory": {"max_bytes": -1}}, "memory.max_bytes=-1: .*greater than 0"),
    ({"paths": [{"ops": ["map"], "quantile": 1, "max_ms": 20}]}, "paths.0.quantile=1: .*less than 1"),
    ({"paths": [{"ops": ["map"], "quantile": 0.9, "max_ms": 0}]}, "paths.0.max_ms=0: .*greater than 0"),
    ({"paths": [{"ops": [], "quantile": 0.9, "max_ms": 1}]}, "paths.0.ops=.*at least 1 item"),
    ({"paths": []}, "paths=.*at least 1 item"),
    ({"paths": [{"ops": ["map"], "quantile": 0.9, "max_ms": 1, "class": "replay"}]}, "none has the class live"),
    ({"paths": 2 * declared()["paths"]}, "'live map 0.99' is limited twice"),
    ({"controls": {"replay_rps": {"min": 3, "max": 2}}}, "controls.replay_rps: min=3 is above max=2; swap them"),
    ({"controls": {"replay_rps": {"min": 0, "max": 2, "slew": 0}}}, "controls.replay_rps.slew=0"),
    ({"controls": {"replay_rps": {"min": 0, "max": 2}, "thetta": {}}}, "controls.thetta={}: no such field"),
    ({"controls": {"replay_rps": {"min": 0, "max": 2}, "theta": {"min": 0, "max": 2}}}, "theta.max=2: it is a share"),
    ({"latencies": 3}, "latencies=3: no such field. Look for a misspelling"),
    ({"error": {"a": {"pf": 0.1}}}, "error.a: .*state one of the two"),
    ({"error": {"a": {"pf": 0.1, "eps_abs": 1, "eps_rel": 1}}}, "error.a: .*state one of the two"),
    ({"shed": {"max_fraction": 0.1}}, "shed: max_fraction=0.1: nothing is shed"),
    ({"priorities": {"replay": 200}}, "priorities: .*must not rise"),
    ({"fairness": {"policy": "first"}}, "fairness.policy='first': .*maxmin"),
    ({"fairness": {"weights": {"gold": 0}}}, "fairness.weights.gold=0: .*greater than 0"),
    ({"recovery": {"order": "any"}}, "recovery.order='any'"),
    ({"lag": {"max_ms": float("nan")}}, "lag.max_ms=nan: .*finite"),
    ({"energy": {"max_cores": float("inf")}}, "energy.max_cores=inf: .*finite"),
    ({"interval_s": 0}, "interval_s=0: .*greater than or equal to 1"),
    ({"name": ""}, "name='': .*at least 1 character"),
    ({"weights": 3}, "weights=3: "),
]


@pytest.mark.parametrize(("change", "told"), WRONG)
def test_a_wrong_field_is_named_with_its_value_and_the_remedy(change, told):
    with pytest.raises(TermsError, match=told):
        shared_terms(**change)


@pytest.mark.parametrize("data", [None, 3, "terms", [], {}])
def test_what_is_no_contract_is_refused(data):
    with pytest.raises(TermsError, match=r"Terms=|missing"):
        compile_terms(data)


def test_all_that_is_wrong_is_told_at_once():
    with pytest.raises(TermsError) as told:
        shared_terms(memory={"max_bytes": 0}, surprise=1)
    assert len(str(told.value).splitlines()) == 2


def test_fields_that_do_not_go_together_are_refused_without_a_mapping_too():
    for wrong in (lambda: ControlBox(2, 1), lambda: ShedTerms(False, 0.5), lambda: Priorities(1, 2, 3)):
        with pytest.raises(ValueError):
            wrong()


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
                        ["paths", "scales", "controls", "weights", "name", "x"]), inner, max_size=3)))  # fmt: skip
def test_any_mapping_is_a_contract_or_an_error(data):
    with pytest.raises(TermsError):
        compile_terms(data)
