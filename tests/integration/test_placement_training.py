"""A placement network from a running job to the champion of a real MLflow store, and what it proposes."""

import pytest

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.plan.measured import Block, Placement
from models.placement.plan.observed import ObservedBlock
from pipelines.placement import replan
from pipelines.placement.job_folder import JobFolder
from pipelines.registry import RegistryError
from pipelines.registry.placements import PlacementRegistry
from pipelines.train.placement import proposed, run
from pipelines.train.placement.run import has_network, spaces_of, train_network

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
def short(monkeypatch):
    monkeypatch.setattr(run, "TRANSITIONS", 6_000)


@pytest.mark.usefixtures("short")
def test_a_network_is_registered_judged_and_serves_until_a_better_one_comes(registry):
    assert not has_network(registry, ADVERTS, TWO)
    first = train_network(registry, ADVERTS, TWO)
    metrics, parameters, tags = registry.figures(first["run"])
    assert {"network", "greedy", "random", "seconds", "score"} <= {*metrics} and parameters["clusters"]
    assert tags["outcome"] == first["reason"] and registry.read_verdict("adverts") == first
    assert registry.aliases("adverts")["1"][-1] == "challenger"
    assert first["promoted"] and has_network(registry, ADVERTS, TWO)
    again = train_network(registry, ADVERTS, TWO)
    assert "the champion to" in again["reason"] and again["version"] == "2"
    (first_version, _) = registry.versions("adverts")
    assert "It is of no use for others" in first_version.description
    # Of other queries the champion is of no use, and the next one is not held against it.
    other = Placement((Block(tuple(ADVERTS.operators), "east", 3, 1.5, 1.5),), 3.0, 1.5, True)
    assert not has_network(registry, ADVERTS, other)
    with pytest.raises(RegistryError, match=r"adverts-placement version .* was trained for"):
        registry.load("adverts", spaces_of(ADVERTS, other)[0])
    assert "the champion to" not in train_network(registry, ADVERTS, other)["reason"]


@pytest.mark.usefixtures("short")
def test_the_dag_s_tasks_train_once_and_then_propose(settings, monkeypatch):
    for module in (proposed, replan):
        monkeypatch.setattr(module, "load", lambda: settings)
        monkeypatch.setattr(module, "with_stack_addresses", lambda found: found)
    unmeasured = [ObservedBlock(block, 600.0, None, None, None, 0) for block in TWO.blocks]
    monkeypatch.setattr(replan, "observe_job", lambda *_: (unmeasured, None))
    monkeypatch.setattr(proposed, "observe_minutes", lambda *_: [])
    form = {"topology": "adverts", "network": "shadow"}
    assert proposed.learn(form) is None  # it does not run
    folder = JobFolder(settings.var_dir / "jobs" / "adverts")
    folder.begin(FILE, TWO)
    assert proposed.learn({**form, "network": "no"}) is None
    assert proposed.learn(form)["promoted"] and proposed.learn(form) is None
    said = proposed.propose(form, replan.plan(form))
    assert "The network, as " in said["told"] and said["sentence"] in said["told"]
