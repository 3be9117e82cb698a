"""A placement network from a running job to the champion of a real MLflow store, and what it proposes."""

import time
from dataclasses import replace

import numpy as np
import pytest

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.learned import judged
from models.placement.learned.online import StepOutcome
from models.placement.learned.past import twin_past
from models.placement.learned.queries import QueryEvaluator, QuerySpace
from models.placement.learned.training import OURS
from models.placement.performance.model import train_performance
from models.placement.performance.windows import parts_in_time, parts_to_tune
from models.placement.plan.measured import Block, Measure, Placement
from models.placement.plan.observed import ObservedBlock
from models.placement.rates import rates_of
from pipelines.placement import replan
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import MeasuredMinute
from pipelines.registry import RegistryError
from pipelines.registry.placements import PerformanceRegistry, PlacementRegistry
from pipelines.registry.runs import TrackedRun
from pipelines.train.placement import performance, proposed, run
from pipelines.train.placement.performance import learn_performance, measured_samples
from pipelines.train.placement.run import has_network, spaces_of, train_network
from tests.fakes.clock import clock_with

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("elsewhere")]

FILE = ROOT / "configs" / "topologies" / "adverts.yaml"
ADVERTS = load_topology("adverts", FILE.parent)
TWO = Placement((
    Block(("parse", "views", "project"), "east", 1, 1.0, 1.0), Block(("join", "count"), "east", 3, 1.0, 1.5),
), 4.0, 2.5, True)  # fmt: skip


@pytest.fixture(scope="module")
def registry(settings):
    return PlacementRegistry(settings)


@pytest.fixture
def few(monkeypatch):
    """Loads at which a network is trained and judged, and starts by which it is."""
    monkeypatch.setattr(run, "LOADS", (1.0, 2.0))
    monkeypatch.setattr(judged, "STARTS", 6)


SHORT = replace(OURS, transitions=320, trials=2, learner=replace(OURS.learner, warm=160))


@pytest.fixture
def short(few, monkeypatch):
    """So little a training learns next to nothing, and all that belongs to it is done."""
    monkeypatch.setattr(run, "OURS", SHORT)


@pytest.mark.usefixtures("few")
def test_a_network_is_registered_judged_and_serves_until_a_better_one_comes(registry, monkeypatch):
    monkeypatch.setattr(run, "OURS", replace(OURS, transitions=1_600))  # of so many it learns enough to be let in
    assert not has_network(registry, ADVERTS, TWO)
    first = train_network(registry, ADVERTS, TWO)
    metrics, parameters, tags = registry.figures(first["run"])
    assert {"network", "greedy", "random", "seconds", "score"} <= {*metrics} and parameters["clusters"]
    assert tags["outcome"] == first["reason"] and registry.read_verdict("adverts") == first
    assert registry.aliases("adverts")["1"][-1] == "challenger"
    assert first["promoted"] and has_network(registry, ADVERTS, TWO)
    monkeypatch.setattr(run, "OURS", SHORT)
    again = train_network(registry, ADVERTS, TWO)
    assert "the champion to" in again["reason"] and again["version"] == "2"
    (first_version, _) = registry.versions("adverts")
    assert "it is of no use for others" in first_version.description
    assert f"in the run {first['run']}" in first_version.description
    # Of other queries the champion is of no use, and the next one is not held against it.
    other = Placement((Block(tuple(ADVERTS.operators), "east", 3, 1.5, 1.5),), 3.0, 1.5, True)
    assert not has_network(registry, ADVERTS, other)
    with pytest.raises(RegistryError, match=r"adverts-placement version .* was trained for"):
        registry.load("adverts", spaces_of(ADVERTS, other)[0])
    assert "the champion to" not in train_network(registry, ADVERTS, other)["reason"]


@pytest.mark.usefixtures("short")
def test_what_a_person_lets_serve_while_a_network_is_judged_serves_on(registry, monkeypatch):
    topology = ADVERTS.model_copy(update={"name": "chosen"})
    monkeypatch.setattr(run, "decide", lambda *_: (False, "rejected: it comes to less than greedy search"))
    versions = [train_network(registry, topology, TWO)["version"] for _ in range(2)]
    registry.set_champion("chosen", versions[1])
    judge = run.judge_networks

    def judge_slowly(*asked):
        registry.set_champion("chosen", versions[0])  # as on MLflow's pages
        return judge(*asked)

    monkeypatch.setattr(run, "judge_networks", judge_slowly)
    monkeypatch.setattr(run, "decide", lambda *_: (True, "promoted"))
    made = train_network(registry, topology, TWO)
    assert (made["version"], made["promoted"], registry.champion_version("chosen")) == ("3", False, versions[0])
    assert made["reason"] == "rejected: compared with version 2, but 1 serves by now."
    assert registry.read_verdict("chosen") == made
    assert registry.figures(made["run"])[2]["outcome"] == made["reason"]
    # As if it had been trained on what a performance model says: it is no reason to train no other one there.
    registry.set_version_tags("chosen", "3", {"env": "lstm"})
    assert not has_network(registry, topology, TWO, "lstm")
    registry.set_version_tags("chosen", "2", {"env": "lstm"})
    assert has_network(registry, topology, TWO, "lstm"), "one that lost"


@pytest.mark.usefixtures("short")
def test_the_dag_s_tasks_train_once_and_then_propose(settings, monkeypatch):
    for module in (proposed, replan):
        monkeypatch.setattr(module, "load", lambda: settings)
        monkeypatch.setattr(module, "with_stack_addresses", lambda found: found)
    unmeasured = [ObservedBlock(block, 600.0, None, None, None, 0) for block in TWO.blocks]
    monkeypatch.setattr(replan, "observe_job", lambda *_: (unmeasured, None))
    space = spaces_of(ADVERTS, TWO)[0]
    four = minutes(space, space.counts(TWO), 1.0, many=4)
    monkeypatch.setattr(proposed, "observe_minutes", lambda *_: four)
    form = {"topology": "adverts", "network": "shadow"}
    assert proposed.learn(form) is None  # it does not run
    folder = JobFolder(settings.var_dir / "jobs" / "adverts")
    folder.begin(FILE, TWO)
    assert proposed.learn({**form, "network": "no"}) is None
    monkeypatch.setattr(run, "decide", lambda *_: (True, "promoted"))  # so short a training may win or not
    assert proposed.learn(form)["promoted"] and proposed.learn(form) is None
    said = proposed.propose(form, replan.plan(form))
    assert "The network, as it is expected over the limit: " in said["told"] and said["sentence"] in said["told"]
    # One that learned of a performance model serves while that is trusted; then one that learned in the twin has to.
    learned, model = {**form, "env": "lstm"}, performance_model()
    monkeypatch.setattr(proposed, "_performance", lambda *_: model)
    networks, made = PlacementRegistry(settings), proposed.learn(learned)
    version = networks.versions("adverts")[-1]
    assert made["promoted"] and str(version.version) == made["version"] and version.tags["env"] == "lstm"
    assert networks.figures(made["run"])[1]["env"] == "lstm" and "the performance model of" in version.description
    assert proposed.learn(learned) is None and proposed.learn(form) is None
    assert not has_network(networks, ADVERTS, TWO, "twin")
    monkeypatch.setattr(proposed, "_performance", lambda *_: None)
    assert proposed.learn(learned)["promoted"] and proposed.learn(learned) is None
    assert networks.versions("adverts")[-1].tags["env"] == "twin"
    # One that loses is not trained again the next morning, and the other goes on serving.
    monkeypatch.setattr(proposed, "_performance", lambda *_: model)
    monkeypatch.setattr(run, "decide", lambda *_: (False, "rejected: it comes to less of the best"))
    assert not proposed.learn(learned)["promoted"] and proposed.learn(learned) is None
    assert networks.versions("adverts")[-1].tags["env"] == "lstm"
    monkeypatch.setattr(proposed, "_performance", lambda *_: None)
    assert proposed.learn(learned) is None


def performance_model():
    """One that has learned next to nothing."""
    train, stop, _ = parts_in_time(twin_past(spaces_of(ADVERTS, TWO)[0], np.linspace(0.5, 2.0, 60), seed=0))
    return train_performance(train, stop, slots=4, seed=0, epochs=2)


def minutes(twin, counts, longer, many=60, begin_s=0.0):
    """Measured minutes from a moment on: latency is so many times what the twin says at that load."""
    factors = 0.8 + 0.4 * np.sin(np.arange(many))
    said = [QueryEvaluator(QuerySpace(Measure(ADVERTS, rates_of(ADVERTS, float(one))), twin.blocks)) for one in factors]
    steps = [one.outcome(counts) for one in said]
    return [
        MeasuredMinute(
            at, 600 * float(factor), StepOutcome(longer * step.latency_ms, step.mean_load), begin_s + 60.0 * at
        )
        for at, (factor, step) in enumerate(zip(factors, steps, strict=True))
    ]


def test_a_performance_model_is_trained_in_the_twin_and_tuned_to_what_is_measured(settings, monkeypatch):
    monkeypatch.setattr(performance, "STEPS", 150)
    monkeypatch.setattr(performance, "EPOCHS", 15)
    models, space = PerformanceRegistry(settings), spaces_of(ADVERTS, TWO)[0]
    counts = space.counts(TWO)
    first = learn_performance(models, space, counts, [])
    assert first.trusted and models.champion_version("adverts") == "1"
    metrics, _, tags = models.figures(models.versions("adverts")[0].run_id)
    assert {"model_latency_ms", "last_latency_ms", "linear_latency_ms", "model_load"} <= {*metrics}
    assert tags["outcome"] == "promoted: trained in the twin"
    card = models.versions("adverts")[0].description
    assert f"the model {metrics['model_latency_ms']:.4g} ms" in card and "the one before it" not in card
    # Sixty times as late as the twin says: not to be trusted, and tuned, which is better at once.
    far = learn_performance(models, space, counts, minutes(space, counts, 60.0))
    assert not far.trusted and models.champion_version("adverts") == "2"
    metrics, _, tags = models.figures(models.versions("adverts")[1].run_id)
    assert metrics["model_latency_ms"] < metrics["before_latency_ms"] and "56 minutes" in tags["outcome"]
    assert f"the one before it {metrics['before_latency_ms']:.4g} ms" in models.versions("adverts")[1].description
    monkeypatch.setattr(performance, "time", clock_with(time=lambda: time.time() + 1_800))  # nothing was measured since
    few = learn_performance(models, space, counts, minutes(space, counts, 60.0)[:10])
    assert few.model.stopped.tolist() == far.model.stopped.tolist() and len(models.versions("adverts")) == 2
    assert not few.trusted  # of these minutes it tells what it was tuned to: what was found before holds
    assert learn_performance(models, space, counts, minutes(space, counts, 60.0, 10, time.time() + 60)).trusted


def test_a_model_that_forgets_other_placements_as_it_is_tuned_to_one_is_refused(settings, monkeypatch):
    monkeypatch.setattr(performance, "STEPS", 150)
    monkeypatch.setattr(performance, "EPOCHS", 15)
    models, space = PerformanceRegistry(settings), spaces_of(ADVERTS.model_copy(update={"name": "forgetful"}), TWO)[0]
    counts, asked, made = space.counts(TWO), [], []
    measured = minutes(space, counts, 60.0)
    own, _ = parts_to_tune(measured_samples(counts, measured)[0])
    many = len(own.label)

    def by_heart(model, train, stop, seed):
        """One that has learned of the placement in force alone, and knows nothing else any more; the same each time."""
        asked.append(train)
        made.append(made[0] if made else train_performance(own, stop, slots=4, seed=seed, epochs=60))
        return made[-1]

    monkeypatch.setattr(performance, "fine_tune", by_heart)
    first = learn_performance(models, space, counts, [])
    told = learn_performance(models, space, counts, measured)
    assert models.champion_version("forgetful") == "1" and told.model.stopped.tolist() == first.model.stopped.tolist()
    (train,) = asked
    placements = {tuple(row) for row in train.seen[many:, -1, 1:].tolist()}
    assert len(train.label) == many + round(0.2 * many) and len(placements) > 3
    assert (train.seen[:many] == own.seen).all() and (own.seen[:, :, 1:] == counts.reshape(-1)).all()
    monkeypatch.setattr(performance, "FORGOTTEN", 1e9)
    learn_performance(models, space, counts, measured)
    assert models.champion_version("forgetful") == "2"
    version = models.versions("forgetful")[1]
    times = models.figures(version.run_id)[0]["model_uneven"]
    assert times > 1.1 and f"in the twin, its errors are {times:.2f} times those" in version.description
    # How often it is off there counts on, in whichever twin: that of another day has the rates that are measured then.
    assert float(version.tags["uneven_times"]) == pytest.approx(times)
    more = {name: one.model_copy(update={"rps": 1.5 * one.rps}) for name, one in ADVERTS.sources.items()}
    busier = spaces_of(ADVERTS.model_copy(update={"name": "forgetful", "sources": more}), TWO)[0]
    noted = []
    monkeypatch.setattr(TrackedRun, "metrics", lambda _, values: noted.append(values["model_uneven"]))
    monkeypatch.setattr(performance, "fine_tune", lambda model, *_, seed: model)  # it forgets nothing more
    learn_performance(models, busier, counts, measured)
    assert noted == [pytest.approx(times)]
