"""A helper beside a job's queries: what it raises is said once and ends nothing."""

import pytest

from configs.errors import SettingsError
from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.plan.choose import choose_placement
from pipelines.kafka.connection import BrokerError
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.scaled import forecast_relay, offloading, reopened
from pipelines.placement.scaled.forecast_relay import ForecastRelay
from pipelines.placement.scaled.offloading import Offloading
from pipelines.placement.scaled.reopened import AGAIN_S, ReopenedHelper
from tests.fakes.clock import clock_with

FILE = ROOT / "configs" / "topologies" / "adverts.yaml"


class Failing:
    """Fails while it is told to."""

    def __init__(self):
        self.fails, self.steps, self.closed = None, 0, 0

    def step(self):
        self.steps += 1
        if self.fails:
            raise self.fails

    def close(self):
        self.closed += 1
        raise OSError("it is away")


def test_a_helper_that_fails_is_closed_and_opened_anew_later(monkeypatch):
    now, said, opened, own = [100.0], [], [], Failing()
    monkeypatch.setattr(reopened, "time", clock_with(monotonic=lambda: now[0]))
    helper = ReopenedHelper("off-loading", lambda: opened.append(1) or own, said.append)
    helper.step()
    helper.step()
    assert (len(opened), own.steps, said) == (1, 2, [])
    own.fails = ZeroDivisionError("no rate")
    helper.step()
    helper.step()  # too soon
    assert (own.steps, own.closed) == (3, 1) and "off-loading" in said[0] and "no rate" in said[0]
    now[0] += AGAIN_S
    helper.step()
    assert (len(opened), len(said)) == (2, 1)  # the same is said once
    own.fails = None
    now[0] += AGAIN_S
    helper.step()
    helper.close()
    helper.close()
    assert (len(opened), own.closed) == (3, 3)


def test_what_cannot_be_opened_ends_nothing():
    said = []

    def opened():
        raise ConnectionError("no broker")

    ReopenedHelper("forecasts", opened, said.append).step()
    assert "ConnectionError: no broker" in said[0]


class Clients:
    """Stands for followers and publishers, of which one does not open, or does not seek."""

    def __init__(self, monkeypatch, fails):
        self.asked, self.open, self.fails = 0, 0, fails
        for module, name in ((offloading, "Follower"), (forecast_relay, "Follower"), (forecast_relay, "Publisher")):
            monkeypatch.setattr(module, name, self.made)

    def made(self, *args, **how):
        self.asked += 1
        if self.asked == self.fails:
            raise BrokerError("the broker went away")
        self.open += 1
        return self

    def seek_to_time(self, wall_time):
        if self.fails == "seek":
            raise BrokerError("the broker went away")

    def close(self):
        self.open -= 1
        if self.fails == "close":
            raise BrokerError("the broker went away")


@pytest.fixture
def opened(tmp_path):
    """What opens each helper, by name."""
    topology = load_topology(FILE.stem, FILE.parent)
    placement, folder, settings = choose_placement(topology, 1.0).placement, JobFolder(tmp_path / "job"), load()
    folder.begin(FILE, placement)
    return {
        "off-loading": lambda settings=settings: Offloading(settings, folder),
        "forecasts": lambda settings=settings: ForecastRelay(settings, topology, folder.wanted),
    }


@pytest.mark.parametrize(("name", "fails"), [("off-loading", "seek"), ("off-loading", 2), ("forecasts", 2)])
def test_a_helper_that_cannot_be_opened_leaves_no_connection(opened, monkeypatch, name, fails):
    clients = Clients(monkeypatch, fails)
    with pytest.raises(BrokerError):
        opened[name]()
    assert (clients.asked > 0, clients.open) == (True, 0)


@pytest.mark.parametrize("name", ["off-loading", "forecasts"])
def test_a_helper_whose_keys_are_wrong_connects_to_nothing(opened, monkeypatch, name, tmp_path):
    clients = Clients(monkeypatch, None)
    with pytest.raises(SettingsError, match="signing_keys"):
        opened[name](load(kafka={"signing_keys": tmp_path / "none.yaml"}))
    assert clients.open == 0


@pytest.mark.parametrize("name", ["off-loading", "forecasts"])
def test_of_a_helper_all_is_closed_also_where_one_cannot_be(opened, monkeypatch, name):
    clients = Clients(monkeypatch, "close")
    helper = opened[name]()
    assert clients.open == 2
    with pytest.raises(BrokerError):
        helper.close()
    assert clients.open == 0
