"""What is forecast for a job's first query, sent on to its later ones."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from configs.settings import ROOT, load
from configs.topology import Topology, load_topology
from models.placement.plan.measured import Block, Placement
from pipelines.placement.scaled import forecast_relay
from pipelines.placement.scaled.forecast_relay import DOWNSTREAM, ForecastRelay, LaterQuery, forecast_on, later_queries
from tests.fakes.clock import clock_with
from tidecast.messages import Decision, Forecast, Heartbeat, encode

ADVERTS = load_topology("adverts", ROOT / "configs" / "topologies")
TWO = Placement((
    Block(("parse", "views", "project"), "east", 1, 1.0, 5.0), Block(("join", "count"), "west", 3, 1.0, 1.0),
), 3.0, 2.0, True)  # fmt: skip


def forecast(job, kind="blend", first=100.0):
    rows = [[first, 1.2 * first], [2 * first, 2.4 * first]]
    return Forecast(job, 1e9, 1e9, 1.0, 10.0, [0.5, 0.9], rows, "m", "3", "champion", kind, 60, 7, 80.0)


def beat(job, by="serving"):
    return Heartbeat(job, by, 1e9, 1e9, 1.0, "7")


class Record:
    """As a `Follower` gives them."""

    def __init__(self, message):
        self.topic = {Forecast: "forecasts", Decision: "decisions"}.get(type(message), "heartbeats")
        self.key, self.value, self.headers = message.job, encode(message), {}


class Broker:
    """Stands for follower and publisher."""

    def __init__(self):
        self.coming, self.sent = [], []

    def poll(self, wait_s):
        found, self.coming = [one if hasattr(one, "topic") else Record(one) for one in self.coming], []
        return found

    def send(self, topic, key, message):
        self.sent.append((topic, key, message))


@pytest.fixture
def broker(monkeypatch):
    made = Broker()
    monkeypatch.setattr(forecast_relay, "Follower", lambda *args, **how: made)
    monkeypatch.setattr(forecast_relay, "Publisher", lambda *args, **how: made)
    return made


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(forecast_relay, "time", clock_with(monotonic=lambda: made.now))
    return made


def test_a_forecast_on_is_of_fewer_records_and_later():
    query = LaterQuery("adverts.join", 300.0, {"adverts.parse": (600.0, 300.0)}, 5.0, 1)
    found = forecast_on({"adverts.parse": forecast("adverts.parse")}, query)
    assert found.quantiles == [[45.0, 50.0], [75.0, 90.0]] and found.last_rps == 40.0
    assert (found.job, found.kind, found.epoch, found.model) == ("adverts.join", DOWNSTREAM, 7, "m")
    found.check()


def test_what_the_first_query_is_told_is_sent_on_to_the_later_ones(broker):
    relay = ForecastRelay(load(), ADVERTS, lambda: TWO)
    bad = Record(beat("x"))
    bad.value = b"{"
    first = "adverts.parse"
    broker.coming = [bad, forecast("other"), forecast(first), beat(first), beat(first, "autoscaler")]
    relay.step()
    (topic, key, made), (also, _, alive) = broker.sent
    assert (topic, key, also) == ("forecasts", "adverts.join", "heartbeats") and alive.job == "adverts.join"
    assert made.quantiles[0] == pytest.approx([0.33 * 90, 0.33 * 100])
    broker.coming = [made, forecast(first)]  # what it has sent comes back, and is no model's of the later query
    relay.step()
    assert [key for _, key, _ in broker.sent[2:]] == ["adverts.join"]


TWO_SOURCES = Topology.model_validate({
    "name": "shop", "broker": "main",
    "sources": {"clicks": {"rps": 600.0}, "orders": {"rps": 100.0}, "prices": {"rps": 50.0}},
    "operators": {
        "clean": {"of": ["clicks"], "work_ms": 1, "selectivity": 0.5}, "check": {"of": ["orders"], "work_ms": 1},
        "match": {"of": ["clean", "check"], "work_ms": 1, "selectivity": 0.1},
        "price": {"of": ["match", "prices"], "work_ms": 1}, "report": {"of": ["price"], "work_ms": 1},
    },
    "clusters": {"main": {"cores": 9}},
})  # fmt: skip
APART = Placement(tuple(Block((name,), "main", 1, 1.0, 0.0) for name in TWO_SOURCES.operators), 5.0, 0.0, True)


def test_what_reaches_a_query_through_several_is_the_sum_of_their_forecasts(broker, clock):
    relay = ForecastRelay(load(), TWO_SOURCES, lambda: APART)

    def told(*said):
        broker.sent, broker.coming = [], list(said)
        relay.step()
        return {key: made.quantiles for _, key, made in broker.sent}

    alone = told(forecast("shop.clean"))  # nobody forecasts the orders: they keep their stated share, 100 of 400
    assert [row[0] for row in alone["shop.match"]] == pytest.approx([100 * 400 / 600, 200 * 400 / 600])
    assert told(forecast("shop.check", first=40.0)) == {}  # goes on with the next one of the first query
    both = told(forecast("shop.clean"))
    assert [row[0] for row in both["shop.match"]] == pytest.approx([0.5 * 100 + 40, 0.5 * 200 + 80])
    assert both.keys() == {"shop.match", "shop.report"}  # whoever reads a source too needs a model of its own
    assert both["shop.report"][0][0] == pytest.approx((0.1 * (0.5 * 100 + 40)) * 90 / 40)  # with the stated prices
    hours = replace(forecast("shop.check"), step_s=3600.0)
    assert told(hours, forecast("shop.clean"))["shop.match"] == alone["shop.match"]  # of other steps: not to be summed
    clock.now += 600_000.0
    assert told(forecast("shop.check"))["shop.match"][0][0] == pytest.approx(100 * 400 / 100)


def test_the_rates_that_the_autoscaler_has_seen_take_the_place_of_the_stated_ones(broker, clock):
    """Stated are 400 for 600 and 100; 300 come for 600 and 300."""
    relay = ForecastRelay(load(), TWO_SOURCES, lambda: APART)

    def told(wall_s, **rates):
        decided = [replace(decision(job=f"shop.{job}", arrival_rps=rps), wall_time=wall_s)
                   for job, rps in rates.items()]  # fmt: skip
        broker.sent, broker.coming = [], [*decided, forecast("shop.check", first=40.0), forecast("shop.clean")]
        relay.step()
        return [made.quantiles[0][0] for _, key, made in broker.sent if key == "shop.match"][-1]

    assert told(1e9, clean=600.0, check=300.0) == pytest.approx(90.0)  # nobody has seen the later one
    assert told(1e9 + 60, match=300.0) == pytest.approx(90.0)  # nor at the same time
    series = [told(1e9 + 60 + 10 * number, clean=600.0, check=300.0, match=300.0) for number in range(1, 400)]
    assert 45.0 < series[0] < 90.0 and series == sorted(series, reverse=True)
    assert series[-1] == pytest.approx(45.0, rel=1e-3)


def test_a_decision_without_metrics_is_no_rate_and_a_rate_of_nothing_is_one(broker, clock):
    relay = ForecastRelay(load(), TWO_SOURCES, lambda: APART)

    def told(wall_s, **inputs):
        rates = {"clean": {"arrival_rps": 600.0}, "check": {"arrival_rps": 100.0}, "match": inputs}
        decided = [replace(decision(job=f"shop.{job}", **said), wall_time=wall_s) for job, said in rates.items()]
        broker.sent, broker.coming = [], [*decided, forecast("shop.check", first=40.0), forecast("shop.clean")]
        relay.step()
        return [made.quantiles[0][0] for _, key, made in broker.sent if key == "shop.match"][-1]

    assert told(1e9) == told(1e9 + 10, arrival_rps=None) == told(1e9 + 20) == pytest.approx(90.0)
    assert told(1e9 + 30, arrival_rps=400.0) == pytest.approx(90.0)  # as stated
    assert told(1e9 + 40) == pytest.approx(90.0)  # what was seen before it fell silent is none of now
    assert told(1e9 + 50, arrival_rps=0.0) < 90.0


def test_rates_that_say_nothing_of_later_queries_send_nothing_on(broker):
    silent = ADVERTS.model_copy(update={"sources": {"events": ADVERTS.sources["events"].model_copy(update={"rps": 0})}})
    assert later_queries(silent, TWO) == []
    relay = ForecastRelay(load(), silent, lambda: TWO)
    broker.coming = [forecast("adverts.parse")]
    relay.step()
    assert broker.sent == []


def test_a_query_that_has_a_model_of_its_own_is_told_nothing(broker, clock):
    relay = ForecastRelay(load(), ADVERTS, lambda: TWO)
    broker.coming = [forecast("adverts.join"), forecast("adverts.parse")]
    relay.step()
    assert broker.sent == []
    clock.now += 119.0
    broker.coming = [forecast("adverts.parse")]
    relay.step()
    assert broker.sent == []
    clock.now += 2.0
    broker.coming = [forecast("adverts.parse")]
    relay.step()
    assert [key for _, key, _ in broker.sent] == ["adverts.join"]


def test_a_model_of_its_own_that_forecasts_by_half_hours_is_not_taken_for_gone(broker, clock):
    relay = ForecastRelay(load(), ADVERTS, lambda: TWO)
    broker.coming = [replace(forecast("adverts.join"), step_s=1800.0)]
    relay.step()
    clock.now += 1800.0
    broker.coming = [forecast("adverts.parse")]
    relay.step()
    assert broker.sent == []


def decision(mode="act", job="adverts.parse", **inputs):
    told = {"overhead_s": 0.5, "per_record_s": 0.02, "scatter": 1e-6, "processed_rps": 80.0} | inputs
    return Decision("1", job, 1e9, 1e9, 1.0, mode, "mpc", 2, "", ["up"], told, {})


def test_no_more_is_forecast_for_a_later_query_than_the_first_one_can_send_on(broker, tmp_path):
    """Two slots of 50 records/s, of which views are a third."""
    (tmp_path / "adverts.parse.yaml").write_text("job: adverts.parse\nexecutors: {min: 1, max: 2}\n")
    settings = load(contracts=tmp_path)
    relay = ForecastRelay(settings, ADVERTS, lambda: TWO)

    def told(*said):
        broker.coming = [*said, forecast("adverts.parse")]
        relay.step()
        return broker.sent[-1][2].quantiles

    free = told()
    assert free[1] == pytest.approx([0.33 * 150, 0.33 * 180])
    capped = told(decision())
    assert capped[0] == free[0] and capped[1] == pytest.approx([33.0, 33.0], rel=0.01)
    assert told() == capped  # a decision holds until another one is told
    present = told(decision(per_record_s=0.2))  # what reaches it now does, whatever was learned
    assert present[1] == pytest.approx([0.33 * 80] * 2)
    unsure = told(decision(scatter=0.09))
    assert unsure == free
    for unknown in (decision(processed_rps=None), decision("observe")):
        assert told(decision()) == capped and told(unknown) == free
    assert told(decision(), decision(job="adverts.join", per_record_s=1.0)) == capped  # its own capacity is no bound
    (tmp_path / "adverts.parse.yaml").unlink()
    assert told(decision()) == free  # nobody scales it
