import numpy as np
import pytest

from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.selection.champion import Trial, choose_champion, simplest_best

TASK = Task(3600.0, 3, (0.1, 0.5, 0.9))
NAIVE = {
    "last_value": lambda task, history: Naive(task, seasonal=False),
    "seasonal_naive": lambda task, history: Naive(task),
}


def hours(values):
    return Series(0.0, 3600.0, np.asarray(values, dtype=float))


def trial(loss):
    return Trial(loss, loss, np.empty(0), np.empty(0))


def season(steps):
    return 100 + 50 * np.sin(2 * np.pi * np.arange(steps) / 24)


@pytest.mark.parametrize(
    ("losses", "name"),
    [
        ({"a": 1.0, "b": 0.995}, "a"),
        ({"a": 1.0, "b": 0.98}, "b"),
        ({"a": 1.0, "b": 0.98, "c": 0.975}, "b"),
        ({"a": float("nan"), "b": 3.0}, "b"),
        ({}, ""),
        ({"a": float("nan")}, ""),
    ],
)
def test_the_simpler_wins_ties(losses, name):
    assert simplest_best({key: trial(loss) for key, loss in losses.items()}) == name


def test_a_season_is_found_and_a_walk_has_none():
    rng = np.random.default_rng(0)
    assert (
        choose_champion(TASK, hours(season(600) + rng.normal(0, 1, 600)), NAIVE, "last_value").name == "seasonal_naive"
    )
    walk = 1000 + rng.normal(0, 5, 600).cumsum()
    assert choose_champion(TASK, hours(walk), NAIVE, "seasonal_naive").name == "last_value"


def test_the_champion_is_fitted_to_everything_and_compared_on_what_it_was_not_fitted_to():
    fitted = []

    def fit(task, history):
        fitted.append(len(history))
        return Naive(task)

    choice = choose_champion(TASK, hours(season(600)), {"seasonal_naive": fit}, "seasonal_naive")
    assert fitted == [480, 600]
    assert choice.name == "seasonal_naive" and choice.trials["seasonal_naive"].rmse == pytest.approx(0.0, abs=1e-9)


def test_the_default_stays_unless_another_is_significantly_better():
    rng = np.random.default_rng(3)
    spikes = 100 + rng.normal(0, 1, 600)
    spikes[590] = 900.0  # one spike: luck decides who is better, not skill
    choice = choose_champion(TASK, hours(spikes), NAIVE, "seasonal_naive")
    assert choice.trials["last_value"].loss != pytest.approx(choice.trials["seasonal_naive"].loss)
    assert choice.name == "seasonal_naive"
    better = choose_champion(TASK, hours(season(600) + rng.normal(0, 1, 600)), NAIVE, "last_value")
    assert better.trials["seasonal_naive"].significantly_better(better.trials["last_value"])
    assert not better.trials["last_value"].significantly_better(better.trials["seasonal_naive"])


def test_among_many_rivals_more_is_asked_of_each():
    rng = np.random.default_rng(4)
    theirs = rng.normal(0, 1, 400)
    mine = 0.9 * theirs * (1 + rng.normal(0, 0.3, 400))
    one, other = (Trial(1.0, 1.0, errors, np.abs(errors)) for errors in (mine, theirs))
    assert one.significantly_better(other) and not one.significantly_better(other, rivals=1000)


def test_with_too_little_to_compare_the_default_is_taken():
    candidates = NAIVE | {"blend": lambda task, history: Blend(task)}
    choice = choose_champion(TASK, hours(season(60)), candidates, "blend")
    assert choice.name == "blend" and choice.trials == {}


def test_while_no_record_comes_the_default_is_taken():
    candidates = NAIVE | {"blend": lambda task, history: Blend(task)}
    choice = choose_champion(TASK, hours(np.where(np.arange(600) < 240, season(600), 0.0)), candidates, "blend")
    assert choice.name == "blend" and choice.trials == {}


def test_a_candidate_that_cannot_be_fitted_is_left_out_and_says_why():
    def fit(task, history):
        raise SeriesError("too short for me")

    choice = choose_champion(TASK, hours(season(600)), {"never": fit, **NAIVE}, "last_value")
    assert choice.skipped == {"never": "too short for me"} and "never" not in choice.trials
    with pytest.raises(SeriesError, match="too short for me"):
        choose_champion(TASK, hours(season(60)), {"never": fit}, "never")


def test_a_trial_weighs_the_nearest_step_and_the_whole_horizon():
    choice = choose_champion(TASK, hours(season(600)), NAIVE, "last_value")
    last = choice.trials["last_value"]
    held = season(600)[479:]
    assert last.rmse == pytest.approx(np.sqrt(np.mean(np.diff(held) ** 2)))
    assert last.loss == pytest.approx(np.sqrt(last.rmse * last.pinball))


def test_the_next_best_serves_where_the_best_cannot_be_fitted_to_everything():
    def only_to_less(task, history):
        if len(history) == 600:
            raise SeriesError("refused by its gate")
        return Naive(task)

    candidates = {"last_value": NAIVE["last_value"], "fussy": only_to_less}
    choice = choose_champion(TASK, hours(season(600)), candidates, "last_value")
    assert choice.name == "last_value" and choice.skipped == {"fussy": "refused by its gate"}
    assert choice.trials["fussy"].loss < choice.trials["last_value"].loss


def test_some_hours_do_not_choose_for_the_day():
    """Of two days at 5 minutes ten hours would be held out, of three fourteen."""
    task = Task(300.0, 3, (0.1, 0.5, 0.9))
    load = 100 + 50 * np.sin(2 * np.pi * np.arange(6 * 288) / 288)
    for days, name in ((2, "last_value"), (3, "seasonal_naive")):
        chosen = choose_champion(task, Series(0.0, 300.0, load[: days * 288]), NAIVE, "last_value")
        assert chosen.name == name and bool(chosen.trials) is (days == 3)


@pytest.mark.parametrize(("step_s", "held"), [(30.0, 1440), (60.0, 1000)])
def test_half_a_day_chooses_also_where_it_is_of_many_short_steps(step_s, held):
    task = Task(step_s, 1, (0.1, 0.5, 0.9))
    load = 100 + 50 * np.sin(2 * np.pi * np.arange(4 * task.day) / task.day)
    chosen = choose_champion(task, Series(0.0, step_s, load), NAIVE, "last_value")
    assert chosen.name == "seasonal_naive" and len(chosen.trials["last_value"].errors) == held
