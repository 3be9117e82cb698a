"""An agent from a load to the judged challenger on a real MLflow store, and to the policy that the autoscaler asks."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from configs.contract import Contract, Planning
from configs.errors import SettingsError
from configs.policies import LEARNED
from configs.sections import AgentTraining
from configs.settings import load
from models.dqn.agent.actions import MOVES
from models.dqn.agent.policy import Dqn
from models.forecast.core.series import Series
from models.policy.catalogue import CATALOGUE
from models.policy.live.memory import Memory, fresh
from models.twin.experiment.evaluation import SweepResults
from models.twin.experiment.results import TraceResult
from models.twin.sim.job import TwinJob
from pipelines.cli.app import app
from pipelines.lake.load import LakeSeries
from pipelines.registry import AgentRegistry, RegistryError
from pipelines.scale import learned
from pipelines.scale.artifact_sync import ArtifactSync, SyncedArtifacts
from pipelines.scale.learned import Instant, Learned
from pipelines.scale.processor import Scaler
from pipelines.train.agent import challenge
from pipelines.train.agent import run as agent
from pipelines.train.agent.training_set import TrainingSet
from pipelines.train.form import with_form_values
from pipelines.train.twin import twin_setup
from tests.unit.dqn.test_dqn_policy import agent as drawn_agent
from tidecast.messages import ContractText, MetricSample, encode

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("elsewhere")]

TRAINING = AgentTraining(transitions=800, fine_transitions=300, knobs=2, seeds=3)
CONTRACT = Contract(job="orders", error_budget=0.05, planning=Planning(lead_s=225, hold_s=30))
"""Where executors take so long, policies look every 15 s, and fewer decisions are simulated than of a quick job."""
TWIN = TwinJob(overhead_s=0.3, per_record_s=0.01, most=6, startup_s=(20.0,), latency_target_s=CONTRACT.latency_target_s)
AT = Instant(100.0, 100.0, 1.0)


def lesson(steps=25):
    minutes = np.arange(steps)
    load_rps = 150 + 100 * np.sin(2 * np.pi * (minutes - 5) / 30)
    source = LakeSeries(Series(0.0, 60.0, load_rps), 5)
    return TrainingSet(CONTRACT, source, twin_setup(load(), CONTRACT, TWIN), "as the test has it")


@pytest.fixture(scope="module")
def agents(settings):
    return AgentRegistry(settings)


@pytest.fixture(scope="module")
def trained(agents):
    return agent.train_challenger(agents, TRAINING, lesson())


def synced(settings, folder):
    sync = ArtifactSync(learned.agent_source(settings), lambda: {CONTRACT.job: CONTRACT}, folder, every_s=0.0)
    return sync, SyncedArtifacts(folder, learned.read_policy)


def test_a_run_keeps_a_challenger_its_curves_and_the_contest(agents, settings, trained):
    metrics, parameters, tags = agents.figures(trained)
    (version,) = agents.versions("orders")
    assert agents.aliases("orders") == {"1": ["challenger"]}
    assert (version.tags["kind"], version.tags["twin"]) == ("dqn", "as the test has it")
    assert version.tags["data.digest"] == tags["data.digest"] and parameters["error_budget"] == "0.05"
    assert f"in the run {trained}" in version.description and "retrain_agent" in version.description
    assert "Gate:" in version.description and "| dqn |" in version.description and "| mpc |" in version.description
    assert {"hours.forecast", "hours.mpc", "hours.reactive", "gate.violation", "phase0.score", "phase1.score"} <= set(
        metrics
    )
    kept = [path for path in (settings.var_dir / "mlflow" / "artifacts").rglob("*") if path.is_file()]
    assert {"learning.png", "frontier.png", "contest.json", "card.md", "agent.json"} <= {path.name for path in kept}
    assert not any(path.suffix in (".pkl", ".pickle", ".pt", ".pth", ".py") for path in kept)
    (contest,) = (json.loads(path.read_text()) for path in kept if path.name == "contest.json")
    assert {*CATALOGUE, "true_future", "optimum"} <= set(contest["policies"])


def test_what_was_trained_is_judged_by_what_its_run_kept(agents, settings, trained):
    verdict = agent.decide_on_challenger("orders", trained, settings)
    metrics, parameters, _ = agents.figures(trained)
    allowed = 1 - float(parameters["gain"])
    kept = [metrics[f"gate.{name}"] <= allowed for name in ("forecast", "mpc") if f"gate.{name}" in metrics]
    assert kept and verdict["promoted"] is all(kept) and verdict["version"] == "1"
    assert agent.decide_on_challenger("orders", trained, settings) == verdict == agents.read_verdict("orders")


@pytest.mark.parametrize(("ratio", "promoted"), [(0.97, True), (0.985, False), (None, False)])
def test_the_gate_lets_serve_what_is_surely_cheaper_and_nothing_else(agents, settings, trained, ratio, promoted):
    job = f"gate-{ratio}"
    with agents.run(job, "made up") as run:
        version = agents.register(run, job, agents.load("orders", "1"), "", {})
        run.parameters({"gain": 0.03})
        run.metrics({"hours.dqn": 10.0, "hours.mpc": 10.0, "gate.violation": 0.01})
        run.metrics({} if ratio is None else {"gate.mpc": ratio})
        run.tags({"challenger": version, "champion": ""})
    verdict = agent.decide_on_challenger(job, run.id, settings)
    assert verdict["promoted"] is promoted
    assert agent.promote(verdict, settings) == verdict
    assert agents.champion_version(job) == (version if promoted else None)
    assert agent.decide_on_challenger(job, run.id, settings) == verdict == agents.read_verdict(job)


@pytest.mark.parametrize("agents_late", [0.001, (0.001, 0.02, 0.001, 0.001)])
def test_a_rival_that_keeps_to_it_with_most_seeds_but_not_in_the_mean_counts_in_the_verdict_too(
    agents, settings, agents_late
):
    def swept(hours, late):
        costs, shares = (np.broadcast_to(np.array(one, float), (1, 4)) for one in (hours, late))
        return SweepResults(np.array([1.0]), costs, shares, *[np.zeros((1, 4))] * 5)

    results = {"dqn": swept(10.0, agents_late), "mpc": swept(5.0, (0.001, 0.001, 0.001, 0.5))}
    job = f"mpc-beside-{np.mean(agents_late)}"
    with agents.run(job, "made up") as run:
        said = challenge._judge(run, TraceResult(None, results), 0.01, 0.03, {"dqn": 1.0})
        version = agents.register(run, job, drawn_agent(1), "", {})
        run.parameters({"gain": 0.03})
        run.tags({"challenger": version, "champion": ""})
    verdict = agent.decide_on_challenger(job, run.id, settings)
    assert said.startswith("rejected") and (verdict["promoted"], verdict["reason"]) == (False, said)


def test_the_autoscaler_decides_by_the_champion_and_keeps_it_when_the_next_does_not_fit(
    agents, settings, trained, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("agents")
    agents.set_champion("orders", "1")
    sync, known = synced(settings, folder)
    (said,) = sync.sync(0.0)
    assert said.startswith("orders: agent is version 1@")
    (name,) = LEARNED
    here = Learned(known).decider(name, CONTRACT, AT)
    assert isinstance(here.policy, Dqn) and (here.version, here.stand_in) == ("1", "")
    np.testing.assert_array_equal(here.policy.agent.weights["first"][0], agents.load("orders").weights["first"][0])

    with agents.run("orders", "of another age") as run:
        agents.register(run, "orders", agents.load("orders"), "", {})
    newest = max((settings.var_dir / "mlflow").rglob("agent.json"), key=lambda path: path.stat().st_mtime_ns)
    newest.write_text(json.dumps({**json.loads(newest.read_text()), "features": ["load"]}))
    with pytest.raises(RegistryError, match=r"orders-agent version 2: features=\['load'\].*train the agent again"):
        agents.load("orders", "2")
    agents.set_champion("orders", "2")
    (said,) = sync.sync(1.0)
    assert "version 2@" in said and ": features=['load']" in said and "the present agent stays" in said
    assert Learned(known).decider(name, CONTRACT, AT).version == "1"


def test_a_load_that_is_too_short_leaves_the_champion(agents, settings):
    before = agents.aliases("orders")
    run = agent.train_challenger(agents, TRAINING, lesson(3))
    verdict = agent.decide_on_challenger("orders", run, settings)
    assert not verdict["promoted"] and "no longer than the horizon" in verdict["reason"]
    agent.promote(verdict, settings)
    assert agents.aliases("orders") == before


def test_a_training_that_fails_leaves_the_champion(agents, settings, monkeypatch):
    def broken(*_):
        raise MemoryError("no room")

    before = agents.aliases("orders")
    monkeypatch.setattr(challenge, "train_in_two_phases", broken)
    with pytest.raises(MemoryError):
        agent.train_challenger(agents, TRAINING, lesson())
    assert agents.aliases("orders") == before


def test_without_a_champion_another_policy_decides_and_the_registry_says_what_to_run(
    agents, settings, tmp_path_factory
):
    nobody = CONTRACT.model_copy(update={"job": "nobody"})
    folder = tmp_path_factory.mktemp("none")
    assert ArtifactSync(learned.agent_source(settings), lambda: {nobody.job: nobody}, folder, 0.0).sync(0.0) == []
    here = Learned(SyncedArtifacts(folder, learned.read_policy)).decider("dqn", nobody, AT)
    assert here.policy.name == "mpc" and "no agent yet" in here.stand_in
    with pytest.raises(RegistryError, match="Run the DAG retrain_agent once"):
        agents.load("nobody")


def test_a_form_replaces_settings_and_refuses_what_is_wrong():
    assert with_form_values(TRAINING, "agent_training", {"seed": 3}).seed == 3
    with pytest.raises(SettingsError, match=r"agent_training\.knobs=1"):
        with_form_values(TRAINING, "agent_training", {"knobs": 1})


def test_what_is_held_out_is_not_learned_from():
    one = lesson(100)
    (own,) = one.training_loads()
    assert len(own.values) == 60 and own.step_s == 60.0  # of 100: a fifth is judged on, as much before it tuned on
    gone = replace(one, source=LakeSeries(Series(0.0, 60.0, np.append(one.source.series.values[:60], np.zeros(40))), 5))
    np.testing.assert_array_equal(gone.training_loads()[0].values, own.values)


def test_what_an_agent_decided_is_made_again_with_its_version_or_told_which_is_missing(
    agents, settings, monkeypatch, tmp_path_factory
):
    folder = tmp_path_factory.mktemp("dump")
    monkeypatch.setenv("TIDECAST_VAR", str(settings.var_dir))
    with agents.run("rides", "test") as run:
        version = agents.register(run, "rides", drawn_agent(len(MOVES) // 2), "# A card", {})
    agents.set_champion("rides", version)
    contract = Contract(job="rides", planning=Planning(overhead_s=0.5, per_record_s=0.01))
    sync = ArtifactSync(learned.agent_source(settings), lambda: {"rides": contract}, folder / "agents", every_s=0.0)
    sync.sync(0.0)
    decides = Learned(SyncedArtifacts(folder / "agents", learned.read_policy))
    memory, scaler = fresh(contract), Scaler("rides", contract, "dqn", "act", decides)
    logged = []
    for at in range(1, 40):
        told = MetricSample("rides", "interval", 1e6 + at, 1e6 + at, arrival_rps=50.0 + at, executors=2, task_ceiling=8)
        row = {"topic": "metrics", "partition": 0, "offset": at, "value": encode(told)}
        memory, _, _ = scaler.update_memory(memory, [row], 1e6 + at)
        memory, decision = scaler.decide(memory, 1e6 + at)
        memory = Memory.from_json(memory.to_json())
        logged.append(json.loads(encode(decision)))
    assert {(one["policy"], one["inputs"]["version"]) for one in logged} == {("dqn", version)}
    known = ContractText("rides", 1e6, 1e6, 1.0, contract.hash, contract.text)
    (folder / "contracts.jsonl").write_bytes(encode(known))
    other = {**logged[-1], "inputs": {**logged[-1]["inputs"], "version": "9"}}
    dump = folder / "decisions.jsonl"
    dump.write_text("\n".join(map(json.dumps, [*logged, other, other])) + "\n")
    ran = CliRunner().invoke(app, ["contract", "replay", str(dump)])
    assert ran.exit_code == 0 and "39 decisions and 0 rates of replays, each as logged" in ran.output, ran.output
    assert "2 not made again: the agent of rides, version 9, is not to be had: " in ran.output
    assert "rides-agent" in ran.output
