"""A whole training run, from a series to the judged challenger, on a real MLflow store of its own."""

import time
from functools import partial

import numpy as np
import pandas as pd
import pytest

from configs.errors import SettingsError
from configs.sections import Training
from models.adapt.training import GRID, TransferPlan
from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from pipelines.lake.load import LakeSeries
from pipelines.registry.way_back import SERVED
from pipelines.train.forecaster import challenge
from pipelines.train.forecaster import run as forecaster
from pipelines.train.forecaster.candidates import Candidates
from pipelines.train.forecaster.challenge import train_challenger
from pipelines.train.forecaster.served import score_served_versions
from pipelines.train.form import with_form_values
from pipelines.train.promotion import ServesAlreadyError, promote_winner
from tests.fakes.forecasters import STEP, TASK, logged_naive, put, put_naive, series

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("elsewhere")]

TRAINING = Training(
    step_s=STEP,
    horizon=3,
    levels=(0.1, 0.5, 0.9),
    context=6,
    lanes=2,
    hidden=4,
    models=("seasonal_naive", "ridge", "gru", "networked_blend"),
    epochs=1,
    holdout_steps=24,
    minimum_steps=120,
)
TRANSFER = TransferPlan(24, 32, pretraining=150, adapting=10, tuning=10, target_only=10, grid=GRID[-1:])
"""A quarter of the shipped one's work; it lets the other load in, too."""


def test_what_was_served_is_scored_against_what_came(registry):
    put_naive(registry, "served")
    now = time.time()
    served = pd.DataFrame(
        {
            "version": ["1", "1", "1", "9"],
            "model": "served-forecaster",
            "kind": "last value",
            "time": [10 * STEP, 10 * STEP, 11 * STEP, 10 * STEP],
            "wall_time": [now, now + 0.5, now + 1.0, now + 2.0],
            "step_s": [STEP / 6, STEP, STEP, STEP],  # the first is from before the setting was changed
            "levels": [[0.1, 0.5, 0.9]] * 4,
            "quantiles": [
                [[0.0] * 3],
                [[8.0, 9.0, 10.0], [9.0, 11.0, 12.0]],
                [[8.0, 10.0, 12.0], [8.0, 10.0, 12.0]],
                [[0.0] * 3],
            ],
        }
    )
    source = LakeSeries(Series(0.0, STEP, np.full(12, 10.0)), 1, served)
    with registry.run("served", "test") as run:
        found = score_served_versions(registry, run, "served", source)
    # steps 10 and 11 came: |9 - 10| + |11 - 10| + |10 - 10| of 30; version 9 was never registered
    assert found["1"]["n"] == 3 and found["1"]["wape"] == pytest.approx(2 / 30, abs=1e-4)
    assert registry.versions("served")[0].tags["live.wape"] == "0.0667"


def test_a_first_run_registers_the_naive_forecast_and_a_challenger(registry, settings):
    run = train_challenger(registry, "first", TRAINING, LakeSeries(series(400), 5))
    naive, challenger = registry.versions("first")
    assert naive.tags["kind"] == "seasonal_naive"
    assert registry.champion_version("first") == "1" and registry.alias_version("first", "challenger") == "2"
    metrics, parameters, tags = registry.figures(run)
    for name in ("challenger", "champion", "seasonal_naive", "last_value"):
        assert metrics[f"{name}.pinball"] > 0 and metrics[f"{name}.rmse_h3"] > 0
    assert metrics["champion.pinball"] == metrics["seasonal_naive.pinball"]  # it is the champion
    assert tags["adapt.source"] == "none" and "of its own are enough" in tags["adapt.why"]
    assert (parameters["context"], tags["data.delta_version"], tags["data.steps"]) == ("6", "5", "400")
    assert challenger.tags["data.digest"] == tags["data.digest"]
    # 400 steps teach no network: the default kind is then the blend without one.
    assert (tags["chosen"], challenger.tags["kind"]) == ("networked_blend", "blend")
    assert set(TRAINING.models) == {name.split(".")[1] for name in metrics if name.startswith("trial.")}
    assert metrics[f"trial.{tags['chosen']}.rmse"] <= metrics["trial.seasonal_naive.rmse"]
    assert "| champion |" in challenger.description and "Chosen by rolling origin" in challenger.description
    for version in (naive, challenger):
        assert f"in the run {run}" in version.description and "as of Delta version 5" in version.description
        assert "**Not for:** another job" in version.description
    assert "Calibration: of the held-out outcomes" in challenger.description
    files = {p.name for p in (settings.var_dir / "mlflow" / "artifacts" / run).rglob("*.*")}
    assert {"fan.png", "error_by_horizon.png", "training_curve.png", "card.md"} <= files

    verdict = forecaster.decide_on_challenger("first", run, settings)
    assert registry.champion_version("first") == "1"  # judged, not yet promoted
    forecaster.promote(verdict, settings)
    assert metrics["gate.champion"] == metrics["gate.seasonal_naive"] < 1  # this load is no seasonal one
    assert verdict["promoted"] and "the champion's" in verdict["reason"]
    assert registry.champion_version("first") == "2"
    assert forecaster.decide_on_challenger("first", run, settings) == verdict == registry.read_verdict("first")
    with pytest.raises(forecaster.UnchangedError, match="first: version 2"):
        forecaster.refuse_unchanged(registry, "first", TRAINING, tags["data.digest"])


def run_with(registry, job, losses, champion="1"):
    """A run as training leaves it, with given losses."""
    model_id = logged_naive(registry, False)
    with registry.run(job, "made up") as run:
        version = registry.register_version(run, job, model_id, "", {"kind": "last_value"})
        run.parameters({"improvement": 0.0})
        run.metrics({f"{name}.pinball": loss for name, loss in losses.items()})
        run.metrics({f"gate.{name}": losses["challenger"] / loss for name, loss in losses.items()})
        run.tags({"challenger": version, "champion": champion})
        return run.id, version


def test_the_gate_moves_the_champion_and_refuses_what_is_worse_or_late(registry, settings):
    registry.set_champion("gate", put_naive(registry, "gate"))
    worse, _ = run_with(registry, "gate", {"challenger": 3.0, "champion": 2.0, "seasonal_naive": 4.0})
    late, _ = run_with(registry, "gate", {"challenger": 1.0, "champion": 2.0, "seasonal_naive": 4.0})
    better, version = run_with(registry, "gate", {"challenger": 1.0, "champion": 2.0, "seasonal_naive": 4.0})
    refused = forecaster.decide_on_challenger("gate", worse, settings)
    assert not refused["promoted"] and forecaster.promote(refused, settings) == refused
    slow = forecaster.decide_on_challenger("gate", late, settings)
    won = forecaster.decide_on_challenger("gate", better, settings)
    assert won["promoted"] and forecaster.promote(won, settings) == forecaster.promote(won, settings) == won
    assert registry.champion_version("gate") == version
    overtaken = forecaster.promote(slow, settings)  # approved when another served already
    assert slow["promoted"] and not overtaken["promoted"] and f"but {version} serves by now" in overtaken["reason"]
    assert forecaster.decide_on_challenger("gate", late, settings) == overtaken
    later, _ = run_with(registry, "gate", {"challenger": 1.0, "champion": 2.0, "seasonal_naive": 4.0})
    refused = forecaster.decide_on_challenger("gate", later, settings)
    assert not refused["promoted"] and "Train again" in refused["reason"]
    assert registry.champion_version("gate") == version


def test_what_a_person_took_back_is_not_brought_back_by_the_next_training(registry, settings):
    losses = {"challenger": 1.0, "champion": 2.0, "seasonal_naive": 4.0}
    first, taken = put_naive(registry, "held"), put_naive(registry, "held", seasonal=False)
    registry.set_champion("held", first)
    asked, _ = run_with(registry, "held", losses)
    waits = forecaster.decide_on_challenger("held", asked, settings)
    registry.set_champion("held", taken)
    registry.roll_back("held")
    twin, version = run_with(registry, "held", losses)
    held = forecaster.decide_on_challenger("held", twin, settings)
    assert not held["promoted"] and held["reason"].startswith("held: a person took version 2 back")
    assert f"`tidecast models promote held {version}`" in held["reason"] and "promoted: loss 1" in held["reason"]
    late = forecaster.promote(waits, settings)  # it was judged before, and approved after the rollback
    assert waits["promoted"] and not late["promoted"] and late["reason"].startswith("held: ")
    assert registry.champion_version("held") == first
    registry.promote("held", version)
    run, last = run_with(registry, "held", losses, champion=version)
    forecaster.promote(forecaster.decide_on_challenger("held", run, settings), settings)
    assert registry.champion_version("held") == last


@pytest.mark.parametrize("earlier", [True, False])
def test_where_what_a_rollback_went_back_to_is_deleted_it_holds_on(registry, settings, earlier):
    losses, job = {"challenger": 1.0, "champion": 2.0, "seasonal_naive": 4.0}, f"deleted-{earlier}"
    *before, second, third = (put_naive(registry, job) for _ in range(3 if earlier else 2))
    for version in (*before, second, third):
        registry.set_champion(job, version)
    assert registry.roll_back(job) == (third, second)
    registry._client.delete_model_version(f"{job}-forecaster", second)  # as on MLflow's pages, and its alias with it
    run, _ = run_with(registry, job, losses, champion="")
    verdicts = [forecaster.decide_on_challenger(job, run, settings)]
    train_challenger(registry, job, TRAINING, LakeSeries(series(50), 1))
    serves = registry.champion_version(job)
    assert serves == (before[0] if earlier else str(registry.versions(job)[-1].version)), "else a naive one"
    run, version = run_with(registry, job, losses, champion=serves)
    verdicts.append(forecaster.decide_on_challenger(job, run, settings))
    for decided in verdicts:
        assert not decided["promoted"] and decided["reason"].startswith(f"held: a person took version {third} back")
    registry.promote(job, version)
    assert (registry.champion_version(job), registry.taken_back(job)) == (version, None)


def test_where_the_champion_is_deleted_what_served_before_serves_again_and_nothing_is_held(registry, settings):
    first, second = put_naive(registry, "vacant"), put_naive(registry, "vacant", seasonal=False)
    for version in (first, second):
        registry.set_champion("vacant", version)
    registry._client.delete_model_version("vacant-forecaster", second)
    assert registry.taken_back("vacant") is None
    train_challenger(registry, "vacant", TRAINING, LakeSeries(series(50), 1))
    assert (registry.champion_version("vacant"), registry.taken_back("vacant")) == (first, None)
    assert [str(one.version) for one in registry.versions("vacant")] == [first]


def test_where_the_champion_is_deleted_no_version_serves_again_that_cannot(registry, settings):
    first = put(registry, "useless", Naive(TASK))
    written = (settings.var_dir / "mlflow" / "artifacts").rglob("forecaster.json")
    max(written, key=lambda path: path.stat().st_mtime_ns).write_text("{}")
    second = put(registry, "useless", Naive(TASK))
    for version in (first, second):
        registry.set_champion("useless", version)
    registry._client.delete_model_version("useless-forecaster", second)
    train_challenger(registry, "useless", TRAINING, LakeSeries(series(50), 1))
    serves = registry.champion_version("useless")
    assert serves not in (None, first) and registry.load("useless", serves) == Naive(TASK)


@pytest.mark.parametrize(("case", "before"), [("step", True), ("unreadable", False)])
def test_a_champion_that_servers_refuse_gives_way_to_what_served_before_it_or_the_naive_forecast(
    registry, settings, case, before
):
    job = f"refused-{case}-{before}"
    first = put(registry, job, Naive(TASK, seasonal=False)) if before else None
    second = put(registry, job, Naive(Task(1800.0, 3, TASK.levels) if case == "step" else TASK))
    if case == "unreadable":
        written = (settings.var_dir / "mlflow" / "artifacts").rglob("forecaster.json")
        max(written, key=lambda path: path.stat().st_mtime_ns).write_text("{}")
    for version in filter(None, (first, second)):
        registry.set_champion(job, version)
    train_challenger(registry, job, TRAINING, LakeSeries(series(50), 1))
    serves = registry.champion_version(job)
    assert (serves == first) if before else registry.load(job, serves) == Naive(TASK)
    assert registry.alias_version(job, "previous") == second
    train_challenger(registry, job, TRAINING, LakeSeries(series(50), 1))
    assert registry.champion_version(job) == serves


@pytest.mark.parametrize("earlier", [True, False])
def test_what_a_person_let_serve_by_hand_ends_a_hold_also_where_it_is_deleted_later(registry, earlier):
    job = f"by-hand-{earlier}"
    *before, second, third, fourth = (put_naive(registry, job) for _ in range(4 if earlier else 3))
    for version in (*before, second, third):
        registry.set_champion(job, version)
    assert registry.roll_back(job) == (third, second)
    registry._client.set_registered_model_alias(f"{job}-forecaster", "champion", fourth)  # as on MLflow's pages
    registry._client.delete_model_version(f"{job}-forecaster", fourth)
    assert (registry.champion_version(job), registry.taken_back(job)) == (None, None)
    train_challenger(registry, job, TRAINING, LakeSeries(series(50), 1))
    assert (registry.champion_version(job), registry.taken_back(job)) == (second, None)
    assert registry.alias_version(job, "previous") == (before[0] if earlier else None)


def test_a_rollback_in_the_moment_of_a_promotion_stands(registry, settings, monkeypatch):
    first, serves = put_naive(registry, "moment"), put_naive(registry, "moment")
    registry.set_champion("moment", first)
    registry.set_champion("moment", serves)
    run, _ = run_with(registry, "moment", {"challenger": 1.0, "champion": 2.0, "seasonal_naive": 4.0}, champion=serves)
    won, move = forecaster.decide_on_challenger("moment", run, settings), registry._client.set_registered_model_alias

    def move_after_a_rollback(*alias):
        monkeypatch.setattr(registry._client, "set_registered_model_alias", move)
        assert registry.roll_back("moment") == (serves, first)
        move(*alias)

    monkeypatch.setattr(registry._client, "set_registered_model_alias", move_after_a_rollback)
    stands = promote_winner(registry, won)
    assert won["promoted"] and not stands["promoted"] and f"but {first} serves by now" in stands["reason"]
    assert registry.aliases("moment") == {first: ["champion"], serves: ["previous"]}
    assert registry.taken_back("moment") == serves


def test_the_record_says_what_a_person_said_last(registry, settings):
    registry.set_champion("no", put_naive(registry, "no"))
    run, version = run_with(registry, "no", {"challenger": 1.0, "champion": 2.0, "seasonal_naive": 4.0})
    won = forecaster.decide_on_challenger("no", run, settings)
    forecaster.reject(won, "Ann", settings)
    said = forecaster.decide_on_challenger("no", run, settings)
    assert not said["promoted"] and said == registry.read_verdict("no")
    assert registry.tags("no", version)["verdict"].startswith("rejected by Ann. By its figures: promoted: loss 1")
    assert forecaster.promote(won, settings) == won == forecaster.decide_on_challenger("no", run, settings)
    assert registry.read_verdict("no") == won and registry.champion_version("no") == version
    with pytest.raises(ServesAlreadyError, match=f"Ann said no to version {version} .*models rollback no` takes"):
        forecaster.reject(won, "Ann", settings)


def test_a_repeated_task_of_an_old_run_changes_nothing_that_was_decided_since(registry, settings, capsys):
    """As somebody clears it in Airflow: its version has served, and been succeeded or taken back."""
    losses = {"challenger": 1.0, "champion": 2.0, "seasonal_naive": 4.0}
    first = put_naive(registry, "again")
    registry.set_champion("again", first)
    old, second = run_with(registry, "again", losses)
    won = forecaster.promote(forecaster.decide_on_challenger("again", old, settings), settings)
    newer, third = run_with(registry, "again", losses, champion=second)
    later = forecaster.promote(forecaster.decide_on_challenger("again", newer, settings), settings)
    assert won["promoted"] and later["promoted"] and registry.champion_version("again") == third

    def unchanged(does):
        said = does(forecaster.decide_on_challenger("again", old, settings))
        assert not said["promoted"] and said["reason"] in capsys.readouterr().out
        assert forecaster.decide_on_challenger("again", old, settings) == won
        assert (registry.tags("again", second)["verdict"], registry.read_verdict("again")) == (won["reason"], later)
        return said["reason"]

    promote = lambda verdict: forecaster.promote(verdict, settings)  # noqa: E731
    why = unchanged(promote)
    assert f"version {second} has served already, and {third} serves by now" in why
    assert f"`tidecast models promote again {second}`" in why
    assert "Ann said no to version 2" in unchanged(lambda verdict: forecaster.reject(verdict, "Ann", settings))
    registry.promote("again", first)  # with what it was compared with once: a person has gone back behind both
    unchanged(promote)
    registry.set_version_tags("again", second, {"live.n": "3"})
    registry._client.delete_model_version_tag("again-forecaster", second, SERVED)  # as of an earlier release
    unchanged(promote)
    assert registry.champion_version("again") == first


def test_a_model_keeps_the_verdict_on_its_newest_run(registry, settings):
    losses = {"challenger": 3.0, "champion": 2.0, "seasonal_naive": 4.0}
    registry.set_champion("late", put_naive(registry, "late"))
    old, version = run_with(registry, "late", losses)
    newer, _ = run_with(registry, "late", losses)
    stands = forecaster.decide_on_challenger("late", newer, settings)
    lost = forecaster.decide_on_challenger("late", old, settings)  # its task failed while MLflow was away
    assert registry.read_verdict("late") == stands and registry.tags("late", version)["verdict"] == lost["reason"]


def test_a_short_history_is_taught_by_another_job(registry, monkeypatch):
    monkeypatch.setattr(challenge, "Candidates", partial(Candidates, plan=TRANSFER))
    short = LakeSeries(Series(40 * 86_400.0, STEP, series(240).values * 0.1), 1, others={"big": series(21 * 24)})
    training = TRAINING.model_copy(update={"models": ("seasonal_naive",)})  # a first run tries the others
    run = train_challenger(registry, "pupil", training, short, ["the load changed by +30%"])
    metrics, _, tags = registry.figures(run)
    assert tags["because"] == "the load changed by +30%"
    gate = {f"adapt.big.{model}" for model in ("adapted", "source_only", "target_only", "last_value")}
    assert {*gate, "adapt.big.shape", "adapt.big.transfer", "trial.adapted.rmse"} <= set(metrics)
    version = registry.versions("pupil")[-1]
    assert tags["adapt.source"] == ("big" if tags["chosen"] == "adapted" else "none") == version.tags["adapt.source"]
    assert tags["adapt.why"].startswith("big (shape ") and "let in" in tags["adapt.why"] == version.tags["adapt.why"]
    assert tags["adapt.why"] in version.description


def test_too_few_steps_leave_the_naive_forecast_and_a_failed_training_changes_nothing(registry, settings):
    run = train_challenger(registry, "short", TRAINING, LakeSeries(series(30), 1))
    assert [v.tags["kind"] for v in registry.versions("short")] == ["seasonal_naive"]
    verdict = forecaster.decide_on_challenger("short", run, settings)
    assert verdict["version"] is None and "30 steps" in verdict["reason"] and "minimum_steps=120" in verdict["reason"]
    assert registry.champion_version("short") == "1"

    run = train_challenger(registry, "short", TRAINING, LakeSeries(Series(0.0, STEP, series(400).values - 500), 1))
    assert "not negative" in registry.figures(run)[2]["outcome"]
    assert not forecaster.decide_on_challenger("short", run, settings)["promoted"]
    assert registry.champion_version("short") == "1" and len(registry.versions("short")) == 1


def test_a_champion_for_another_task_is_judged_by_the_naive_forecast_alone(registry, settings):
    """What a run without a comparison writes is in test_challenge."""
    registry.set_champion("other", put(registry, "other", Naive(Task(STEP, 5, (0.5,)))))
    run, _ = run_with(registry, "other", {"challenger": 1.0, "seasonal_naive": 4.0})
    judged = forecaster.decide_on_challenger("other", run, settings)
    assert judged["promoted"] and judged["champion"] == "1"


def test_a_form_replaces_settings_and_refuses_what_is_wrong():
    assert with_form_values(TRAINING, "training", {"epochs": 3}).epochs == 3
    with pytest.raises(SettingsError, match=r"training\.epoch=3"):
        with_form_values(TRAINING, "training", {"epoch": 3})
    with pytest.raises(SettingsError, match=r"training\.hidden='many'"):
        with_form_values(TRAINING, "training", {"hidden": "many"})


def test_an_empty_lake_is_not_enough(settings):
    assert forecaster.jobs_with_training_data(["word_count"], settings=settings) == []


def test_a_blend_with_a_network_is_registered_and_forecasts_again_what_it_did(registry):
    training = TRAINING.model_copy(update={"models": ("networked_blend",)})
    train_challenger(registry, "long", training, LakeSeries(series(1280), 5))
    version = registry.alias_version("long", "challenger")
    kept, again = (registry.load("long", version) for _ in range(2))
    assert kept.kind == "networked_blend"
    tracks = [forecaster.begin(series(1280)) for forecaster in (kept, again)]
    resumed, _ = again.resume(tracks[0].state())
    for track in (*tracks, resumed):
        for value in (50.0, 60.0, 70.0):
            track.step(value)
    assert tracks[0].basis() == "networked_blend" and np.isfinite(tracks[0].quantiles).all()
    np.testing.assert_array_equal(tracks[0].quantiles, tracks[1].quantiles)
    np.testing.assert_array_equal(tracks[0].quantiles, resumed.quantiles)
