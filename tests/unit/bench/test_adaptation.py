import numpy as np
import pytest

from models.adapt.candidates import CandidateErrors, Target, adapted, best_of, learn, of_source, of_target
from models.adapt.served import serve
from models.adapt.transfer import LossWeights, TransferPlan
from models.forecast.core.series import Series, SeriesError
from pipelines.bench.adapt.adaptation import SERVED_DAYS, Domain, Study, cuts, figures, pairs
from pipelines.bench.adapt.page import render
from pipelines.bench.adapt.text import pair_lines, table

pytestmark = pytest.mark.study

DAY, HORIZON = 144, 2
PLAN = TransferPlan(
    hidden=4,
    batch=32,
    pretraining=4,
    adapting=2,
    tuning=2,
    alone=4,
    every=2,
    grid=(LossWeights(0, 0), LossWeights(0.1, 0.1)),
)


def load(days: int, seed: int, level: float = 100.0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    course = 1 + 0.4 * np.sin(np.arange(days * DAY) * 2 * np.pi / DAY) + 0.1 * np.sin(np.arange(days * DAY) * np.pi / 4)
    return level * course * (1 + 0.02 * draw.standard_normal(days * DAY))


def target(days: int = 1, seed: int = 1, values: np.ndarray | None = None) -> Target:
    return Target(load(days + 3, seed) if values is None else values, days * DAY, DAY, HORIZON)


def test_errors_belong_to_the_moment_the_forecast_was_made():
    made = Target(np.arange(60.0), 48, DAY, 2)
    assert made.naive[23].tolist() == [1.0, 2.0]
    assert np.isnan(made.naive[22]).all() and np.isnan(made.naive[58, 1]) and made.naive[58, 0] == 1.0
    assert made.unit.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("build", [of_target, lambda t, plan, seed: {"adapted": adapted(t, source(), plan, seed)}])
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
        np.testing.assert_allclose(one.judged[first], before[name].judged[first], rtol=1e-9)
        known = np.isfinite(one.judged).all(axis=1)
        assert np.flatnonzero(known)[0] == first and np.flatnonzero(known)[-1] < end - HORIZON


def source():
    return learn(load(8, 2), DAY, HORIZON, PLAN, 5)


def test_a_source_is_learned_the_same_way_twice():
    one, two = source(), source()
    assert one.rule.tolist() == two.rule.tolist() and np.array_equal(one.weights, two.weights)
    made = [of_source(target(), each)["source_only"].errors for each in (one, two)]
    np.testing.assert_array_equal(made[0], made[1])


def test_ridge_and_last_value_are_compared_over_the_whole_history():
    made = target()
    quiet, loud = np.full((len(made.values), HORIZON), 0.1), np.full((len(made.values), HORIZON), 5.0)
    on_gate = np.where((np.arange(len(loud)) >= made.gate)[:, None], 0.01, np.nan)
    own = {
        "ridge": CandidateErrors(quiet, quiet, fair=True),
        "last_value": CandidateErrors(loud, on_gate, fair=True),  # lucky on the gate's part, bad before
    }
    assert best_of(made, own) == "ridge"
    assert best_of(made, {**own, "gru": CandidateErrors(loud, on_gate)}) == "gru"


def test_a_source_that_was_not_kept_has_no_part_in_what_is_served():
    made = target()
    own = of_target(made, PLAN, 3)
    served = serve(made, own, {}, np.zeros(4))
    assert served.from_source == 0 and served.verdict is None
    assert len(served.by_row) == len(made.values) - made.history + 1 == len(served.errors)
    assert served.by_row[0] == f"{served.target_only}+memory"


def test_an_overwhelming_candidate_is_let_through_and_a_hopeless_one_is_not():
    made = target(2)
    own = of_target(made, PLAN, 3)
    for factor, share in ((0.01, 0.9), (100.0, 0.0)):
        errors = own["ridge"].errors * factor
        theirs = {
            "adapted": CandidateErrors(errors, own["ridge"].judged * factor),
            "source_only": CandidateErrors(made.naive * 2, own["last_value"].judged * 2),
        }
        served = serve(made, own, theirs, np.zeros(4))
        assert served.verdict is not None and served.verdict.accepted == (factor < 1)
        assert served.from_source >= share if factor < 1 else served.from_source == share


def test_moments_leave_a_past_and_the_days_served():
    found = cuts(20 * DAY, DAY, 3)
    assert found == sorted(found, reverse=True) and found[0] == (20 - SERVED_DAYS) * DAY and found[-1] == 10 * DAY
    assert cuts(7 * DAY, DAY, 2) == [4 * DAY]
    assert cuts(4 * DAY, DAY, 2) == []


@pytest.fixture(scope="module")
def study():
    step, names = 86400.0 / DAY, ("a", "b", "c")
    loads = [Domain(name, Series(1e8 * i, step, load(15, i, 10.0**i))) for i, name in enumerate(names, 1)]
    asked = Study(days=(1, 3), cuts=1, horizon=HORIZON, plan=PLAN)
    return asked, list(pairs(loads, asked, tell=lambda _: None))


def test_every_ordered_pair_is_judged_between_its_bounds(study):
    asked, seen = study
    assert {(pair.source, pair.target) for pair in seen} == {(a, b) for a in "abc" for b in "abc" if a != b}
    assert len(seen) == 12
    found = figures(seen, asked)
    assert found["days"]["1"]["models"]["adapted"]["pairs"] == 6  # ungated, whether its shape was near or not
    for data in found["days"].values():
        assert data["pairs"] == 6
        assert data["models"]["target_only"]["all"]["geometric_mean"] == pytest.approx(1)
        for one in data["table"]:
            assert set(one["ratios"]) >= {"served", "source_only", "shrunk", "ridge", "gru", "last_value"}
        assert data["models"]["served"]["1"]["worst"] >= data["models"]["served"]["1"]["geometric_mean"]


def test_the_study_is_said_and_drawn(study, tmp_path):
    asked, seen = study
    found = figures(seen, asked)
    said = table(found)
    assert "1 day of history: 6 pairs" in said and "3 days of history: 6 pairs" in said
    assert len(pair_lines(found, "1").splitlines()) == 7
    page = render(found, tmp_path / "sub" / "page.html").read_text(encoding="utf-8")
    assert "What other loads teach a new one" in page and page.count("<section>") == 6


def test_a_source_that_lived_through_the_served_days_is_left_out():
    step = 86400.0 / DAY
    loads = [Domain(name, Series(0.0, step, load(15, i))) for i, name in enumerate(("a", "b"))]
    assert list(pairs(loads, Study(days=(1,), cuts=1, horizon=HORIZON, plan=PLAN), tell=lambda _: None)) == []


def test_a_history_that_is_too_short_says_what_is_needed():
    with pytest.raises(SeriesError, match="a history of 80 steps: at least 91 are needed"):
        of_target(Target(load(3, 1), 100, DAY, HORIZON), PLAN, 1)


def test_a_single_series_is_no_comparison():
    with pytest.raises(SeriesError, match="at least two series"):
        list(pairs([Domain("a", Series(0.0, 1800.0, load(9, 1)))], Study(), tell=lambda _: None))
