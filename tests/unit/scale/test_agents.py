import json
import shutil

import pytest

from configs.contract import Contract, read_contracts
from configs.settings import ROOT
from models.policy.live.evaluation import evaluate
from models.policy.live.memory import fresh, with_interval
from models.policy.received.rehearsal import Rehearsal, describe, promised
from pipelines.registry import Champion, Registry
from pipelines.registry.forecasters import PEAKS_FILE
from pipelines.scale.artifact_sync import POINTERS, ArtifactSource, ArtifactSync, SyncedArtifacts
from pipelines.scale.learned import Instant, Learned, agent_source, read_fitting_rehearsal, rehearsal_source
from pipelines.whole_file import write_json
from tests.fakes.agents import Versions, read

CONTRACT = Contract(job="orders")
AT = Instant(100.0, 100.0, 1.0)


@pytest.fixture
def registry():
    return Versions("orders")


@pytest.fixture
def sync(registry, tmp_path):
    return ArtifactSync(registry.source(), lambda: {"orders": CONTRACT}, tmp_path / "agents", every_s=2.0)


@pytest.fixture
def agents(tmp_path):
    return SyncedArtifacts(tmp_path / "agents", read)


def test_without_an_agent_another_policy_decides_and_says_so(sync, agents):
    assert sync.sync(0.0) == []
    policy, version, why = Learned(agents).decider("dqn", CONTRACT, AT)
    assert (policy.name, version) == ("mpc", None) and "no agent yet" in why


def test_without_a_timetable_another_policy_decides_and_names_the_key():
    policy, version, why = Learned().decider("schedule", CONTRACT, AT)
    assert (policy.name, version) == ("mpc", None) and "planning.timetable_rps of orders.yaml" in why


def test_the_alias_is_looked_at_now_and_then(registry, sync, agents):
    registry.versions["1"] = "2"
    assert sync.sync(0.0) == ["orders: agent is version 1"]
    registry.versions["2"] = "3"
    assert sync.sync(1.9) == []
    assert Learned(agents).decider("dqn", CONTRACT, AT).policy.executors == 2
    assert sync.sync(2.0) == ["orders: agent is version 2"]
    policy, version, why = Learned(agents).decider("dqn", CONTRACT, AT)
    assert (policy.executors, version, why) == (3, "2", "")


def test_an_agent_is_read_for_every_shipped_contract_also_with_tables_in_it(sync, agents, registry):
    registry.versions["1"] = "2"
    sync.sync(0.0)
    contracts, _ = read_contracts(ROOT / "configs" / "contracts")
    for contract in contracts.values():
        policy, version, why = Learned(agents).decider("dqn", contract.model_copy(update={"job": "orders"}), AT)
        assert (policy.executors, version, why) == (2, "1", "")


def test_an_agent_that_cannot_be_read_is_named_once_and_the_present_one_stays(registry, sync, agents):
    registry.versions["1"] = "2"
    sync.sync(0.0)
    registry.versions["2"] = "broken"
    (line,) = sync.sync(2.0)
    assert "version 2" in line and "7 observations" in line and "stays" in line
    assert sync.sync(4.0) == []
    assert Learned(agents).decider("dqn", CONTRACT, AT).version == "1"


def test_a_registry_that_is_away_stops_nothing(registry, sync, agents):
    registry.versions["1"] = "2"
    sync.sync(0.0)
    registry.away = True
    assert "away" in sync.sync(2.0)[0]
    assert sync.sync(4.0) == []
    registry.away = False
    registry.versions["2"] = "3"
    assert sync.sync(6.0) == ["orders: agent is version 2"]
    assert Learned(agents).decider("dqn", CONTRACT, AT).version == "2"


def test_what_could_not_be_fetched_is_fetched_again(registry, sync, agents):
    registry.versions["1"] = "2"
    registry.torn = True
    (line,) = sync.sync(0.0)
    assert "the connection was reset" in line and sync.sync(2.0) == []
    registry.torn = False
    assert sync.sync(4.0) == ["orders: agent is version 1"]
    assert Learned(agents).decider("dqn", CONTRACT, AT).version == "1"


def test_versions_that_no_worker_can_be_reading_are_removed(registry, sync, agents):
    for number, version in enumerate("123"):
        registry.versions[version] = "2"
        sync.sync(2.0 * number)
    assert sorted(path.name for path in (agents.folder / "orders").iterdir()) == ["2", "3"]
    assert Learned(agents).decider("dqn", CONTRACT, AT).version == "3"


def test_an_agent_of_another_age_of_an_earlier_process_decides_nothing(registry, sync, agents):
    registry.versions["1"] = "2"
    sync.sync(0.0)
    (agents.folder / "orders" / "1" / "agent.txt").write_text("broken")
    policy, version, why = Learned(agents._replace(read=read_anew)).decider("dqn", CONTRACT, AT)
    assert (policy.name, version) == ("mpc", None) and "7 observations" in why


def test_files_that_workers_may_be_reading_are_not_downloaded_again(registry, sync, agents):
    registry.versions["1"] = "2"
    sync.sync(0.0)
    again = ArtifactSync(registry.source(), lambda: {"orders": CONTRACT}, agents.folder, every_s=2.0)
    registry.torn = True
    assert again.sync(0.0) == ["orders: agent is version 1"]


def test_files_that_a_disk_has_damaged_are_fetched_again_and_stay_where_that_cannot_be(registry, sync, agents):
    registry.versions["1"] = "2"
    sync.sync(0.0)
    damaged = agents.folder / "orders" / "1" / "agent.txt"
    damaged.write_text("broken")
    again = ArtifactSync(registry.source(), lambda: {"orders": CONTRACT}, agents.folder, every_s=2.0)
    registry.torn = True
    assert "the connection was reset" in again.sync(0.0)[0] and damaged.read_text() == "broken"
    registry.torn = False
    assert again.sync(2.0) == ["orders: agent is version 1"]
    assert Learned(agents._replace(read=read_anew)).decider("dqn", CONTRACT, AT).version == "1"


def read_anew(files, contract):
    """As a worker of a new process does: nothing is remembered of the old one's reading."""
    return read(files, contract)


def test_an_agent_is_read_once_per_version(registry, sync, agents):
    registry.versions["1"] = "2"
    sync.sync(0.0)
    first = Learned(agents).decider("dqn", CONTRACT, AT).policy
    shutil.rmtree(agents.folder / "orders")
    assert Learned(agents).decider("dqn", CONTRACT, AT).policy is first


def test_a_swap_keeps_what_is_known_of_the_job(registry, sync, agents):
    sample = {
        "arrival_rps": 50.0, "lag_records": 5, "executors": 1, "task_ceiling": 8, "wall_time": 100.0, "time": 99.0,
        "span_s": 1.0, "time_scale": 1.0,
    }  # fmt: skip
    memory = with_interval(fresh(CONTRACT), sample)
    for number, (version, executors) in enumerate([("1", 2), ("2", 3)]):
        registry.versions[version] = str(executors)
        sync.sync(10.0 * number)
        memory, seen, made = evaluate(memory, 100.0 + number, CONTRACT, *Learned(agents).decider("dqn", CONTRACT, AT))
        assert (seen.version, made.executors) == (version, executors)
    assert memory.carried == {"asked": 2} and memory.arrivals == (50.0,)


def test_a_policy_that_is_not_learned_needs_no_agents():
    policy, version, why = Learned().decider("reactive", CONTRACT, AT)
    assert (policy.name, version, why) == ("reactive", None, "")


def rehearsed(tmp_path, **hours):
    """Workers that have been given what policies took on the past, in executor-hours a day."""
    known = Rehearsal(None, dict.fromkeys(hours, 0.7), hours, promised(CONTRACT))
    files = tmp_path / "orders" / "3@run"
    files.mkdir(parents=True)
    (files / PEAKS_FILE).write_text(json.dumps(describe(known)))
    write_json(tmp_path / POINTERS / "orders.json", {"version": "3@run"})
    return Learned(rehearsals=SyncedArtifacts(tmp_path, read_fitting_rehearsal))


def test_steering_begins_where_the_past_says(tmp_path):
    policy, _, why = rehearsed(tmp_path, mpc=9.0, reactive=10.0).decider("mpc", CONTRACT, AT)
    assert policy.name == "mpc" and why == "" and policy.knob_at(policy.fresh(1)["rung"])[0] == pytest.approx(0.7)
    other = CONTRACT.model_copy(update={"error_budget": 0.2})  # found for another promise
    policy, _, _ = Learned(rehearsals=SyncedArtifacts(tmp_path, read_fitting_rehearsal)).decider("mpc", other, AT)
    assert policy.knob_at(policy.fresh(1)["rung"])[0] != pytest.approx(0.7)


def test_where_hearing_a_forecast_saved_nothing_the_reactive_plan_is_made_and_says_so(tmp_path):
    known = rehearsed(tmp_path, mpc=10.5, forecast=9.5, reactive=10.0)
    policy, _, why = known.decider("mpc", CONTRACT, AT)
    assert (policy.name, why) == (
        "reactive",
        "by the twin mpc took 5.0% more executor-hours on the past; reactive decides",
    )
    assert known.decider("forecast", CONTRACT, AT).policy.name == "forecast"
    assert known.decider("reactive", CONTRACT, AT)[2] == ""


class Shelf:
    """A registry of agents of several jobs, all of version 1; one of `torn` cannot be fetched."""

    def __init__(self, *jobs):
        self.jobs, self.torn, self.asked = jobs, {}, 0

    def champions(self):
        self.asked += 1
        return dict.fromkeys(self.jobs, "1")

    def version_of(self, job, champion):
        return champion

    def fetch(self, job, version, files):
        if job in self.torn:
            raise self.torn[job]
        files.mkdir(parents=True)
        (files / "agent.txt").write_text("2")


def synced(shelf, folder, jobs=None):
    contracts = {job: Contract(job=job) for job in jobs or shelf.jobs}
    source = ArtifactSource("agent", shelf.champions, shelf.version_of, shelf.fetch, read)
    return ArtifactSync(source, lambda: contracts, folder, every_s=0.0)


def newest(folder, job):
    found = SyncedArtifacts(folder, read).newest(Contract(job=job))
    return None if found is None else found[0]


def test_the_registry_is_asked_once_for_all_jobs(tmp_path):
    shelf = Shelf("orders", "rides", "clicks")
    sync = synced(shelf, tmp_path, ["orders", "rides", "without"])
    assert sync.sync(0.0) == ["orders: agent is version 1", "rides: agent is version 1"]
    assert sync.sync(1.0) == [] and shelf.asked == 2


@pytest.mark.parametrize("error", [RuntimeError("torn"), KeyError("torn"), OSError("torn")])
def test_a_job_whose_agent_makes_trouble_holds_up_no_other(tmp_path, error):
    shelf = Shelf("a-first", "orders")
    shelf.torn["a-first"] = error
    sync = synced(shelf, tmp_path)
    problem, done = sync.sync(0.0)
    assert problem.startswith("a-first: ") and "torn" in problem and problem.endswith("the present agent stays")
    assert done == "orders: agent is version 1" and sync.sync(1.0) == []
    shelf.torn.clear()
    assert sync.sync(2.0) == ["a-first: agent is version 1"] and newest(tmp_path, "a-first") == "1"


def test_the_files_are_those_beside_the_pointer_wherever_a_backup_of_them_was_restored(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    synced(Shelf("orders"), old).sync(0.0)
    shutil.move(old, new)
    assert newest(new, "orders") == "1"


@pytest.mark.parametrize("damage", ["", "{", "[]", "3", "{}", '{"files": "/there/orders/1"}', None])
def test_a_damaged_pointer_is_none_and_the_next_start_writes_it_anew(tmp_path, damage):
    shelf = Shelf("orders")
    synced(shelf, tmp_path).sync(0.0)
    pointer = tmp_path / POINTERS / "orders.json"
    pointer.unlink() if damage is None else pointer.write_text(damage)
    assert newest(tmp_path, "orders") is None
    assert "no agent yet" in Learned(SyncedArtifacts(tmp_path, read)).decider("dqn", CONTRACT, AT).stand_in
    assert synced(shelf, tmp_path).sync(0.0) == ["orders: agent is version 1"] and newest(tmp_path, "orders") == "1"


def test_a_pointer_that_cannot_be_written_is_trouble_of_its_job_alone(tmp_path):
    shelf = Shelf("a-first", "orders")
    (tmp_path / POINTERS / "a-first.json").mkdir(parents=True)
    sync = synced(shelf, tmp_path)
    problem, done = sync.sync(0.0)
    assert problem.startswith("a-first: ") and done == "orders: agent is version 1" and sync.sync(1.0) == []
    (tmp_path / POINTERS / "a-first.json").rmdir()
    assert sync.sync(2.0) == ["a-first: agent is version 1"]


def test_no_jobs_name_leads_to_anothers_files(tmp_path):
    jobs = "orders", "orders.json", "orders.json.json"
    (tmp_path / "orders.json").write_text('{"version": "1", "files": "orders/1"}')  # as an older release left it
    sync = synced(Shelf(*jobs), tmp_path)
    assert sync.sync(0.0) == [f"{job}: agent is version 1" for job in jobs] and sync.sync(1.0) == []
    assert [newest(tmp_path, job) for job in jobs] == ["1", "1", "1"]


def test_a_rehearsal_is_named_by_its_champion_and_the_run_that_made_it(monkeypatch):
    tags = {"orders": {"peaks": "run"}, "rides": {}}
    opened = []

    class Forecasters:
        rehearsal_of = Registry.rehearsal_of

        def __init__(self, settings):
            opened.append(settings)

        def champions(self):
            return dict.fromkeys(tags, Champion("3"))

        def tags(self, job, version):
            return tags[job]

    monkeypatch.setattr("pipelines.scale.learned.Registry", Forecasters)
    source = rehearsal_source("settings")
    assert opened == [] and source.champions() == {"orders": "3", "rides": "3"}
    assert [source.version_of(job, "3") for job in tags] == ["3@run", None] and opened == ["settings"]


def test_an_agent_of_a_registry_that_was_made_anew_takes_the_place_of_the_one_of_that_number(tmp_path, monkeypatch):
    class Agents:
        champion, agent = Champion("1", 1000), "the first"

        def __init__(self, settings):
            pass

        def champions(self):
            return {CONTRACT.job: self.champion}

        def download(self, job, version, into):
            into.mkdir(parents=True)
            (into / "agent").write_text(f"{self.agent}, {version}")

    monkeypatch.setattr("pipelines.scale.learned.AgentRegistry", Agents)
    source = agent_source("settings")._replace(read=lambda files, contract: (files / "agent").read_text())
    sync = ArtifactSync(source, lambda: {CONTRACT.job: CONTRACT}, tmp_path, every_s=0.0)
    agents = SyncedArtifacts(tmp_path, source.read)
    sync.sync(0.0)
    first = Learned(agents).decider("dqn", CONTRACT, AT)
    monkeypatch.setattr(Agents, "champion", Champion("1", 2000))
    monkeypatch.setattr(Agents, "agent", "the second")
    sync.sync(1.0)
    second = Learned(agents).decider("dqn", CONTRACT, AT)
    assert (first.policy, first.version, second.policy, second.version) == (
        "the first, 1", "1", "the second, 1", "1",
    )  # fmt: skip


def test_of_many_jobs_each_agent_is_read_once(tmp_path):
    jobs, reads = [f"job{i}" for i in range(40)], []
    synced(Shelf(*jobs), tmp_path).sync(0.0)
    workers = SyncedArtifacts(tmp_path, lambda files, contract: reads.append(contract.job))
    for _ in range(3):
        for job in jobs:
            workers.newest(Contract(job=job))
    assert reads == jobs
