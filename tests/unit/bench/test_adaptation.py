from contextlib import contextmanager

import numpy as np
import pytest

from configs.sections import Training
from models.adapt.candidates import (
    adapt_to_target,
    best_own_candidate,
    decide_on_gate_part,
    fit_own_candidates,
    pretrain_source,
    score_source_only,
)
from models.adapt.target_load import CandidateErrors, TargetLoad
from models.adapt.training import LossWeights, TransferPlan
from models.forecast.core.series import Series, SeriesError
from pipelines.bench.adapt import adaptation, pretrained
from pipelines.bench.adapt.adaptation import SERVED_DAYS, Study, evaluate_pairs, place_cuts
from pipelines.bench.adapt.pretrained import WAYS, PretrainedCase, evaluate_pretrained, summarise_pretrained
from pipelines.bench.adapt.summary import MODELS, format_summary, summarise_pairs

pytestmark = pytest.mark.study

DAY, HORIZON = 120, 2
PLAN = TransferPlan(
    hidden=4,
    batch=32,
    pretraining=4,
    adapting=2,
    tuning=2,
    target_only=4,
    every=2,
    grid=(LossWeights(0, 0), LossWeights(0.1, 0.1)),
)


def load(days: int, seed: int, level: float = 100.0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    course = 1 + 0.4 * np.sin(np.arange(days * DAY) * 2 * np.pi / DAY) + 0.1 * np.sin(np.arange(days * DAY) * np.pi / 4)
    return level * course * (1 + 0.02 * draw.standard_normal(days * DAY))


def target(days: int = 1, seed: int = 1, values: np.ndarray | None = None) -> TargetLoad:
    return TargetLoad(load(days + 3, seed) if values is None else values, days * DAY, DAY, HORIZON)


def test_errors_belong_to_the_moment_the_forecast_was_made():
    made = TargetLoad(np.arange(60.0), 48, DAY, 2)
    naive = made.last_value_errors
    assert naive[23].tolist() == [1.0, 2.0]
    assert (
        np.isnan(made.last_value_errors[22]).all()
        and np.isnan(made.last_value_errors[58, 1])
        and made.last_value_errors[58, 0] == 1.0
    )
    assert made.unit.tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "build", [fit_own_candidates, lambda t, plan, seed: {"adapted": adapt_to_target(t, source(), plan, seed)[2]}]
)
def test_no_candidate_has_seen_what_it_is_judged_on(build):
    values = load(4, 1)
    end, gate = DAY, int(0.8 * DAY)
    before = build(target(values=values), PLAN, 3)
    later = values.copy()
    later[end:] *= 3
    held = values.copy()
    held[gate + 5 : end] *= 1.5
    for name, one in build(target(values=later), PLAN, 3).items():
        said, again = values[end] - before[name].errors[end - 1, 0], later[end] - one.errors[end - 1, 0]
        assert again == pytest.approx(said, rel=1e-9)
    for name, one in build(target(values=held), PLAN, 3).items():
        first = gate - 1
        np.testing.assert_allclose(one.gate[first], before[name].gate[first], rtol=1e-9)
        known = np.isfinite(one.gate).all(axis=1)
        assert np.flatnonzero(known)[0] == first and np.flatnonzero(known)[-1] < end - HORIZON


def source():
    return pretrain_source([load(8, 2)], HORIZON, PLAN, 5)


def test_a_source_is_learned_the_same_way_twice():
    made = [score_source_only(target(), source()).errors for _ in range(2)]
    np.testing.assert_array_equal(made[0], made[1])


def test_what_a_source_taught_is_judged_in_a_scale_of_before():
    values, end, gate = load(4, 1), DAY, int(0.8 * DAY)
    held, learned = values.copy(), source()
    held[gate + 5 : end] *= 1.5
    before, after = (score_source_only(target(values=one), learned).gate for one in (values, held))
    np.testing.assert_allclose(after[gate - 1], before[gate - 1], rtol=1e-9)


def test_ridge_and_last_value_are_compared_over_the_whole_history():
    made = target()
    quiet, loud = np.full((len(made.values), HORIZON), 0.1), np.full((len(made.values), HORIZON), 5.0)
    on_gate = np.where((np.arange(len(loud)) >= made.gate_begin)[:, None], 0.01, np.nan)
    own = {
        "ridge": CandidateErrors(quiet, quiet, out_of_sample=True),
        "last_value": CandidateErrors(loud, on_gate, out_of_sample=True),  # lucky on the gate's part, bad before
    }
    assert best_own_candidate(made, own) == "ridge"
    assert best_own_candidate(made, {**own, "gru": CandidateErrors(loud, on_gate)}) == "gru"


def test_an_overwhelming_candidate_is_let_through_and_a_hopeless_one_is_not():
    made = target(2)
    own = fit_own_candidates(made, PLAN, 3)
    as_is = CandidateErrors(made.last_value_errors * 2, own["last_value"].gate * 2)
    for factor in (0.01, 100.0):
        moved = CandidateErrors(own["ridge"].errors * factor, own["ridge"].gate * factor)
        found = decide_on_gate_part(made, own, as_is, moved)
        assert found.accepted == (factor < 1)
        assert found.served == ("adapted" if factor < 1 else "target_only")


def test_moments_leave_a_past_and_the_days_served():
    found = place_cuts(20 * DAY, DAY, 3)
    assert found == sorted(found, reverse=True) and found[0] == (20 - SERVED_DAYS) * DAY and found[-1] == 10 * DAY
    assert place_cuts(7 * DAY, DAY, 2) == [4 * DAY]
    assert place_cuts(4 * DAY, DAY, 2) == []


STEP = 86400.0 / DAY
LEVELS = (0.1, 0.5, 0.9)


def asked(*days: float) -> Study:
    settings = Training(step_s=STEP, horizon=HORIZON, levels=LEVELS, models=("last_value", "ridge", "blend"))
    return Study(days, 1, settings, PLAN)


@contextmanager
def one_served_day():
    """Serving costs most, and a day of it shows what is judged."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (adaptation, pretrained):
            patch.setattr(module, "SERVED_DAYS", 1)
        yield


@pytest.fixture(scope="module")
def study():
    loads = {name: Series(1e8 * i, STEP, load(15, i, 10.0**i)) for i, name in enumerate("ab", 1)}
    with one_served_day():
        return asked(1, 3), list(evaluate_pairs(loads, asked(1, 3), report_progress=lambda _: None))


def test_every_ordered_pair_is_judged_between_its_bounds(study):
    made, seen = study
    assert {(pair.source, pair.target) for pair in seen} == {("a", "b"), ("b", "a")}
    assert len(seen) == 4
    found = summarise_pairs(seen, made)
    for data in found["days"].values():
        assert data["pairs"] == 2
        assert data["models"]["target_only"]["all"]["geometric_mean"] == pytest.approx(1)
        assert data["models"].get("adapted", {"pairs": 0})["pairs"] == data["kept"]
        beside = data["beside_no_source"]  # where no source was let in the two are the same
        assert beside["pairs"] == 2 and (data["chosen"] or beside["all"]["geometric_mean"] == pytest.approx(1))
        assert all(data["models"][model]["pairs"] == 2 for model in set(MODELS) - {"adapted"})
        assert data["models"]["served"]["1"]["worst"] >= data["models"]["served"]["1"]["geometric_mean"]


def test_a_source_that_was_refused_has_no_part_in_what_is_served(study):
    for pair in study[1]:
        if not pair.transfer.forecasters:
            np.testing.assert_array_equal(pair.errors["served"], pair.errors["no_source"])
            assert pair.chosen != "adapted" and pair.transfer.refused


def test_what_is_measured_is_what_the_training_would_choose(study):
    made, seen = study
    pair = next(pair for pair in seen if pair.transfer.forecasters and pair.days == 3)
    numbers = {name: i for i, name in enumerate("ab", 1)}
    whole = {name: Series(1e8 * i, STEP, load(15, i, 10.0**i)) for name, i in numbers.items()}
    known, _ = whole[pair.target].split(DAY)
    known = known.split(3 * DAY)[1]
    older = whole[pair.source].split(DAY)[0]
    assert made.choose_forecaster(known, {pair.source: older}).name == pair.chosen


def test_the_study_is_said(study):
    made, seen = study
    found = summarise_pairs(seen, made)
    assert [line["RMSE ÷ target only"] for line in found["models"]] == list(MODELS.values())
    said = format_summary(found)
    assert "1 day of history: 2 pairs" in said and "3 days of history: 2 pairs" in said
    assert len(said.splitlines()) == len(MODELS) + 1 + 2


def test_a_source_that_lived_through_the_served_days_is_left_out():
    loads = {name: Series(0.0, STEP, load(15, i)) for i, name in enumerate(("a", "b"))}
    assert list(evaluate_pairs(loads, asked(1), report_progress=lambda _: None)) == []


def test_a_history_that_is_too_short_says_what_is_needed():
    with pytest.raises(SeriesError, match="a history of 80 steps: at least 91 are needed"):
        fit_own_candidates(TargetLoad(load(3, 1), 100, DAY, HORIZON), PLAN, 1)


def test_a_single_series_is_no_comparison():
    with pytest.raises(SeriesError, match="at least two series"):
        list(evaluate_pairs({"a": Series(0.0, 1800.0, load(9, 1))}, Study(), report_progress=lambda _: None))


def test_one_network_learns_from_all_others_and_from_nothing_that_is_judged():
    loads = {name: Series(1e8 * i, STEP, load(15, i, 10.0**i)) for i, name in enumerate("abc", 1)}
    study = asked(1)
    with one_served_day():
        made = list(evaluate_pretrained(loads, study, report_progress=lambda _: None))
        older, served = np.split(loads["b"].values, [14 * DAY])
        changed = {**loads, "b": Series(2e8, STEP, np.r_[older, 9 * served])}
        again = next(evaluate_pretrained(changed, study, report_progress=lambda _: None))
    assert [(case.target, case.days) for case in made] == [(name, 1) for name in "abc"]
    assert all(set(case.ratios) == {"as it is", *WAYS} and min(case.ratios.values()) > 0 for case in made)
    assert again.ratios == made[0].ratios


def test_what_pretraining_brings_is_a_mean_over_loads_with_an_interval():
    cases = [PretrainedCase(name, 1, (), {"as it is": ratio}) for name, ratio in (("a", 2.0), ("a", 0.5), ("b", 1.0))]
    found = summarise_pretrained([*cases, PretrainedCase("c", 1, ("as it is",), {"as it is": 8.0})])
    one = found["days"]["1"]["as it is"]
    assert one["geometric_mean"] == pytest.approx(2) and one["worst"] == pytest.approx(8) and one["targets"] == 3
    assert one["low"] == pytest.approx(1) and one["high"] == pytest.approx(8) and one["accepted"] == 0.25
    assert found["rows"][0]["95 % interval"] == "1.000 to 8.000"
