"""When a challenger is made, and with whom it is compared, with a registry in memory."""

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from configs.sections import Training
from models.forecast.baselines.naive import Naive
from models.forecast.core.bootstrap import few_steps_bound
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.selection.backtest import roll
from models.forecast.selection.catalogue import CATALOGUE
from models.forecast.selection.gate import decide_promotion
from pipelines.lake.load import LakeSeries
from pipelines.registry import AgentRegistry, RegistryError
from pipelines.registry.artifacts import UnreadableError, read_forecaster
from pipelines.registry.store import ModelStore
from pipelines.train.forecaster.challenge import loss_ratio_bounds, train_challenger
from pipelines.train.forecaster.served import let_one_serve, reinstate
from pipelines.train.promotion import load_champion
from tests.fakes.forecasters import STEP, TASK, series

TRAINING = Training(
    step_s=STEP, horizon=3, levels=(0.1, 0.5, 0.9), models=("seasonal_naive",), holdout_steps=48, minimum_steps=96
)


class Run:
    """Keeps a run's tags and metrics, and forgets the rest."""

    id = "run"

    def __init__(self):
        self.told, self.measured = {}, {}

    def tags(self, values):
        self.told |= values

    def parameters(self, values):
        """Not looked at."""

    def metrics(self, values):
        self.measured |= values

    def figure(self, figure, path):
        """Not looked at."""

    def text(self, text, path):
        """Not looked at."""


class Registry:
    """Version 1 serves; what is raised where it is loaded, if anything, is given."""

    what = "forecaster"

    def __init__(self, error=None, tags=()):
        self._error, self._tags, self.started, self.registered = error, dict(tags), Run(), []

    @contextmanager
    def training(self, job, name):
        yield self.started

    def champion_version(self, job):
        return "1"

    def load(self, job, version=None):
        if self._error is not None:
            raise self._error
        return Naive(TASK)

    def tags(self, job, version):
        return self._tags

    def register(self, run, job, forecaster, card, tags, alias=None):
        self.registered.append(alias)
        self.told = tags
        return "2"

    def write_rehearsal(self, run, job, version, rehearsal):
        """Not looked at."""


def outcome(registry, load=None):
    train_challenger(registry, "orders", TRAINING, LakeSeries(load or series(200), 1))
    return registry.started.told["outcome"]


def with_gap(known):
    """200 hours of load, of the newest 48 of which so many are known."""
    whole = series(200)
    return Series(whole.start, whole.step_s, np.where(np.arange(200) < 152 + known, whole.values, np.nan))


def test_nobody_is_challenged_on_a_few_known_steps():
    registry = Registry()
    assert outcome(registry, with_gap(23)) == (
        "no challenger: 23 of the newest 48 steps (training.holdout_steps) are known, "
        "at least 24 are needed to compare on"
    )
    assert registry.registered == []
    assert outcome(registry, with_gap(24)).startswith("challenger version 2")


def test_nobody_is_challenged_while_no_record_comes():
    registry, whole, at = Registry(), series(200), np.arange(200)
    assert outcome(registry, Series(whole.start, STEP, np.where(at < 152, whole.values, 0.0))) == (
        "no challenger: no record came in the newest 48 steps, on which all are compared"
    )
    assert registry.registered == []
    one = Series(whole.start, STEP, np.where((at < 152) | (at == 170), whole.values, 0.0))
    assert outcome(registry, one).startswith("challenger version 2")


@pytest.mark.parametrize(
    ("asked", "steps", "learned_from"), [(96, 200, 152), (96, 300, 240), (96, 800, 704), (48, 800, 752), (24, 200, 176)]
)
def test_of_a_short_history_a_fifth_is_held_out_but_not_too_few(asked, steps, learned_from):
    training = TRAINING.model_copy(update={"holdout_steps": asked})
    registry = Registry()
    train_challenger(registry, "orders", training, LakeSeries(series(steps), 1))
    assert f"learned from {learned_from} steps" in registry.started.told["outcome"]


def test_a_champion_that_is_the_naive_forecast_is_one_rival_and_not_two():
    task, (older, held) = Task(STEP, 3, (0.1, 0.5, 0.9)), series(400).split(96)
    made = {
        "challenger": roll(CATALOGUE["blend"](task, older), older, held),
        "champion": roll(Naive(task), older, held), "seasonal_naive": roll(Naive(task), older, held),
    }  # fmt: skip
    once = loss_ratio_bounds(made)
    assert once["gate.champion"] == once["gate.seasonal_naive"]
    assert (
        once["gate.champion"]
        == loss_ratio_bounds({k: v for k, v in made.items() if k != "champion"})["gate.seasonal_naive"]
    )
    another = {**made, "champion": roll(Naive(task, seasonal=False), older, held)}
    assert loss_ratio_bounds(another)["gate.seasonal_naive"] > once["gate.seasonal_naive"]


def trained_before(held_out, load):
    """The tags of a champion that was trained on the same load, of which so many steps were held out."""
    before, training = Registry(), TRAINING.model_copy(update={"holdout_steps": held_out})
    train_challenger(before, "orders", training, LakeSeries(load, 1))
    return before.told


def test_steps_that_the_champion_was_made_of_do_not_count_beside_it(monkeypatch):
    """As after a training whose form had fewer held-out steps: it would be compared with what it has seen."""
    whole = series(400)
    monkeypatch.setitem(CATALOGUE, "seasonal_naive", lambda task, history: Naive(task, seasonal=False))
    registry = Registry(tags=trained_before(24, whole))
    assert outcome(registry, whole).endswith(
        "The champion was made of 24 of the 48 held-out steps: the gate compares with it on the others."
    )
    older, held = whole.split(48)
    mine, theirs = (roll(Naive(TASK, seasonal=way), older, held).losses_by_step() for way in (False, True))
    figures = registry.started.measured
    assert figures["gate.champion"] == few_steps_bound(mine[24:], theirs[24:], 2)
    assert figures["gate.seasonal_naive"] == few_steps_bound(mine, theirs, 2), "it was made of none"


def test_where_the_champion_knew_nearly_all_held_out_steps_it_is_said_and_all_count():
    whole = series(400)
    newer = Registry(tags={"data.learned_to": "2038-01-01T00:00:00+00:00"})
    assert "made of 48 of the 48 held-out steps, and 0 others are known, under 24" in outcome(newer, whole)
    assert outcome(Registry(tags=trained_before(48, whole)), whole).endswith("learned from 352 steps.")


class Boundless(Naive):
    """Repeats the last value but at a load that it holds for the beginning of something without end."""

    def quantiles_of(self, state):
        said = super().quantiles_of(state)
        return np.where(state.values[-1] == np.nanmax(state.values), np.inf, said)


def test_a_loss_without_end_is_none(monkeypatch):
    """MLflow would keep the largest number there is, and the gate leaves steps without a finite loss out."""
    monkeypatch.setitem(CATALOGUE, "seasonal_naive", lambda task, history: Boundless(task))
    registry = Registry()
    assert outcome(registry, peaked()).startswith("challenger version 2")
    figures = registry.started.measured
    assert "challenger.pinball" not in figures and np.isfinite(figures["champion.pinball"])
    assert not decide_promotion(figures.get("challenger.pinball", np.nan), {}).promoted


def peaked():
    """200 hours of load whose peak is in the part that is held out."""
    whole = series(200)
    return Series(whole.start, whole.step_s, np.where(np.arange(200) == 170, 10 * whole.values.max(), whole.values))


def test_an_outage_is_no_reason_to_leave_the_champion_out():
    registry = Registry(RegistryError("MLflow does not answer"))
    with pytest.raises(RegistryError, match="does not answer"):
        outcome(registry)
    assert registry.registered == []


def test_a_champion_of_another_horizon_serves_on_and_is_not_compared():
    registry = Registry()
    registry.load = lambda job, version=None: Naive(Task(STEP, 6, (0.5,)))
    assert outcome(registry).endswith("The champion forecasts 6 steps of 3600 s at (0.5,): not comparable.")
    assert registry.started.told["champion"] == "1" and "champion.pinball" not in registry.started.measured
    assert registry.registered == ["challenger"]


@pytest.mark.parametrize(
    ("version", "step_s", "ago", "stays"),
    [("1", STEP, 1, True), ("1", STEP, 3, True), ("1", STEP, 5, False), ("2", STEP, 1, False), ("1", 60.0, 1, False)],
)
def test_a_champion_that_only_this_training_cannot_read_serves_on_where_its_forecasts_come(version, step_s, ago, stays):
    registry, moved = Registry(UnreadableError("orders-forecaster version 1: its files are gone")), []
    registry.alias_version, registry.versions = lambda job, alias: None, lambda job: []
    registry.made_at = lambda job, version: 100.0
    registry.succeed = lambda *asked: moved.append(asked) or True
    load = series(50)
    one = {"version": version, "step_s": step_s, "time": load.end - (ago - 0.5) * STEP, "wall_time": 200.0}
    let_one_serve(registry, registry.started, "orders", TASK, LakeSeries(load, 1, pd.DataFrame([one])))
    assert moved == ([] if stays else [("orders", "2", "1")])
    again, moved[:] = LakeSeries(load, 1, pd.DataFrame([{**one, "wall_time": 99.0}])), []
    let_one_serve(registry, registry.started, "orders", TASK, again)
    assert moved == [("orders", "2", "1")], "an earlier model had that number"


@pytest.mark.parametrize(
    ("task", "serves"),
    [
        (TASK, "1"), (Task(1800.0, 3, TASK.levels), None), (Task(STEP, 6, TASK.levels), None),
        (Task(STEP, 3, (0.5, 0.9)), None),
    ],
)  # fmt: skip
def test_where_the_champion_is_deleted_what_served_before_serves_again_only_for_the_same_task(task, serves):
    registry, moved = Registry(), []
    registry.champion_version, registry.alias_version = lambda job: None, lambda job, alias: "1"
    registry.versions = lambda job: [SimpleNamespace(version="1", tags={})]
    registry.load = lambda job, version=None: Naive(task)
    registry.succeed = lambda *asked: moved.append(asked) or True
    assert reinstate(registry, "orders", TASK) == serves
    assert moved == ([("orders", "1", None)] if serves else [])


def test_what_this_training_cannot_read_and_serves_gives_way_to_none_that_was_not_compared_with_it():
    registry, load = Registry(UnreadableError("orders-forecaster version 1: its kind 'newer' is unknown")), series(200)
    registry.made_at = lambda job, version: 100.0
    said = {"model": "m", "kind": "newer", "levels": TASK.levels, "quantiles": [(90.0, 100.0, 110.0)] * 3}
    one = {"version": "1", "step_s": STEP, "time": load.end, "wall_time": 200.0, **said}
    train_challenger(registry, "orders", TRAINING, LakeSeries(load, 1, pd.DataFrame([one])))
    assert registry.started.told["outcome"] == (
        "no challenger: version 1 serves on, as its forecasts come. "
        "The champion cannot be loaded: orders-forecaster version 1: its kind 'newer' is unknown"
    )
    assert registry.registered == [] and "challenger" not in registry.started.told


def test_without_a_champion_there_is_nothing_to_load():
    assert load_champion(SimpleNamespace(champion_version=lambda job: None), "orders") == (None, None, "")


class Files(AgentRegistry):
    """Agents whose files lie in a folder."""

    def __init__(self, folder):
        self._folder = folder

    def download(self, job, version, into):
        return self._folder, f"{job}-agent version {version}"


def test_an_agent_or_a_forecaster_that_is_none_of_this_code_is_unreadable(tmp_path):
    for text, what in ((None, "has no agent.json"), ("{", "is no JSON"), ("[1]", "orders-agent version 4")):
        if text is not None:
            (tmp_path / "agent.json").write_text(text)
        with pytest.raises(UnreadableError, match=what):
            Files(tmp_path).load("orders", "4")
    with pytest.raises(UnreadableError, match="not registered by Tidecast"):
        read_forecaster(tmp_path, "orders-forecaster version 4")
    (tmp_path / "forecaster.json").write_text("{}")
    with pytest.raises(UnreadableError, match=r"MLmodel.*Retrain"):
        read_forecaster(tmp_path, "orders-forecaster version 4")


class Versions(ModelStore):
    """Versions whose files are where it is told."""

    what, made_by = "forecaster", "retrain_forecaster"

    def __init__(self, source):
        self._source, self._uri, self._deployment = source, "sqlite:///nowhere.db", "ours"

    def _version(self, job, version):
        if self._source is None:
            raise RegistryError("MLflow does not answer")
        return SimpleNamespace(source=str(self._source))


def test_files_that_are_gone_are_told_from_an_outage(tmp_path):
    into = tmp_path / "copy"
    with pytest.raises(UnreadableError, match=r"orders-forecaster version 3 at .*: its files are gone"):
        Versions(tmp_path / "gone").download("orders", "3", into)
    with pytest.raises(RegistryError) as found:
        Versions(None).download("orders", "3", into)
    assert not isinstance(found.value, UnreadableError)


class Client:
    """Keeps the description of a version, as MLflow's client is told it, of a model that is made no second time."""

    said = ""

    def get_registered_model(self, name):
        return SimpleNamespace(tags={"trained_by": "ours"})

    def set_registered_model_tag(self, name, key, value):
        """Not looked at."""

    def create_model_version(self, name, source, run_id, model_id, description, tags):
        self.said = description
        return SimpleNamespace(version=3)


@pytest.mark.parametrize("length", [5_000, 5_001, 20_000])
def test_a_card_is_cut_where_mlflows_column_ends(length, tmp_path):
    versions, card = Versions(None), "x" * length
    versions._var, versions._client = tmp_path, (client := Client())
    assert versions.register_version(Run(), "orders", "m-1", card, {}) == "3"
    assert len(client.said) == 5_000 and (client.said == card) is (length == 5_000)
