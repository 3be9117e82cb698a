import shutil

import numpy as np
import pytest

from configs.contract import Contract
from models.policy.memory import evaluate, fresh, saw_interval
from models.policy.view import chosen
from pipelines.scale.agents import Agents, Clock, Courier, Source, policy_for

CONTRACT = Contract(job="orders")
AT = Clock(100.0, 100.0, 1.0)


class Agent:
    """A learned policy: always so many executors; it carries how often it was asked."""

    name = "dqn"

    def __init__(self, executors, version):
        self.executors, self.version = executors, version

    def fresh(self, runs):
        return {"asked": np.zeros(runs)}

    def decide(self, memory, view):
        return {"asked": memory["asked"] + 1}, chosen(np.full(view.runs, self.executors))


def read(files, contract):
    text = (files / "agent.txt").read_text()
    if text == "broken":
        raise ValueError("agent.txt: 7 observations, the environment has 9")
    return Agent(float(text), files.name)


class Shelf:
    """A registry with one job's agents; the alias points to the newest."""

    def __init__(self):
        self.versions, self.away = {}, False

    def source(self):
        return Source(self.version_of, self.fetch, read)

    def version_of(self, job):
        if self.away:
            raise RuntimeError("the registry is away")
        return max(self.versions, default=None)

    def fetch(self, job, version, files):
        files.mkdir(parents=True, exist_ok=True)
        (files / "agent.txt").write_text(self.versions[version])


@pytest.fixture
def shelf():
    return Shelf()


@pytest.fixture
def courier(shelf, tmp_path):
    return Courier(shelf.source(), [CONTRACT], tmp_path / "agents", every_s=2.0)


@pytest.fixture
def agents(tmp_path):
    return Agents(tmp_path / "agents", read)


def test_without_an_agent_another_policy_decides_and_says_so(courier, agents):
    assert courier.tick(0.0) == []
    policy, why = policy_for("dqn", CONTRACT, AT, agents)
    assert policy.name == "forecast" and "no agent yet" in why


def test_without_a_timetable_another_policy_decides_and_names_the_key():
    policy, why = policy_for("schedule", CONTRACT, AT, None)
    assert policy.name == "forecast" and "planning.timetable_rps of orders.yaml" in why


def test_the_alias_is_looked_at_now_and_then(shelf, courier, agents):
    shelf.versions["1"] = "2"
    assert courier.tick(0.0) == ["orders: agent is version 1"]
    shelf.versions["2"] = "3"
    assert courier.tick(1.9) == []
    assert policy_for("dqn", CONTRACT, AT, agents)[0].executors == 2
    assert courier.tick(2.0) == ["orders: agent is version 2"]
    policy, why = policy_for("dqn", CONTRACT, AT, agents)
    assert (policy.executors, policy.version, why) == (3, "2", "")


def test_an_agent_that_cannot_be_read_is_named_once_and_the_present_one_stays(shelf, courier, agents):
    shelf.versions["1"] = "2"
    courier.tick(0.0)
    shelf.versions["2"] = "broken"
    (said,) = courier.tick(2.0)
    assert "version 2" in said and "7 observations" in said and "stays" in said
    assert courier.tick(4.0) == []
    assert policy_for("dqn", CONTRACT, AT, agents)[0].version == "1"


def test_a_registry_that_is_away_stops_nothing(shelf, courier, agents):
    shelf.versions["1"] = "2"
    courier.tick(0.0)
    shelf.away = True
    assert "away" in courier.tick(2.0)[0]
    assert courier.tick(4.0) == []
    shelf.away = False
    shelf.versions["2"] = "3"
    assert courier.tick(6.0) == ["orders: agent is version 2"]
    assert policy_for("dqn", CONTRACT, AT, agents)[0].version == "2"


def test_an_agent_is_read_once_per_version(shelf, courier, agents):
    shelf.versions["1"] = "2"
    courier.tick(0.0)
    first = policy_for("dqn", CONTRACT, AT, agents)[0]
    shutil.rmtree(agents.folder / "orders")
    assert policy_for("dqn", CONTRACT, AT, agents)[0] is first


def test_a_swap_keeps_what_is_known_of_the_job(shelf, courier, agents):
    sample = {
        "arrival_rps": 50.0, "lag_records": 5, "executors": 1, "task_ceiling": 8, "wall_time": 100.0, "time": 99.0,
        "span_s": 1.0, "time_scale": 1.0,
    }  # fmt: skip
    memory = saw_interval(fresh(CONTRACT), sample)
    for number, (version, executors) in enumerate([("1", 2), ("2", 3)]):
        shelf.versions[version] = str(executors)
        courier.tick(10.0 * number)
        policy, _ = policy_for("dqn", CONTRACT, AT, agents)
        memory, seen, made = evaluate(memory, 100.0 + number, CONTRACT, policy)
        assert (seen.version, made.executors) == (version, executors)
    assert memory.carried == {"asked": 2} and memory.arrivals == (50.0,)


def test_a_policy_that_is_not_learned_needs_no_agents():
    policy, why = policy_for("reactive", CONTRACT, AT, None)
    assert (policy.name, why) == ("reactive", "")
