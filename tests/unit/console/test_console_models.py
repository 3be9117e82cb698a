"""The page of registered models: what serves, how right it was, what was served last, and drifts."""

import pytest

from models.alerts.knowledge import DriftSeen
from pipelines.bench.team.console.records import NOW, forecast
from pipelines.console.models import model_rows, pages_address
from pipelines.console.read.fold import ReadModel, fold
from pipelines.registry.overview import RegisteredModel, RegisteredVersion

MEASURED = {"kind": "blend", "live.wape": "0.081", "live.n": "480"}
CHAMPION = RegisteredVersion("7", NOW - 7200, ("champion",), MEASURED)
RIVAL = RegisteredVersion("8", NOW - 60, ("challenger",), {"kind": "networked_blend", "verdict": "no better"})
ORDERS = RegisteredModel("orders-forecaster", "orders", "forecaster", 8, (RIVAL, CHAMPION))
OTHER = ORDERS._replace(versions=(CHAMPION._replace(version="9"),))
SERVED = fold(ReadModel(), [forecast("orders", NOW - 30)], NOW)


def row(*registered, model=SERVED, drifts=None, mlflow=""):
    (found,) = model_rows(model, registered, drifts or {}, mlflow, NOW)
    return found


def test_a_champion_with_its_error_its_rival_and_what_it_served_last():
    found = row(ORDERS, mlflow="http://flow:5055")
    assert (found["champion"]["version"], found["champion"]["wape"], found["champion"]["steps"]) == ("7", 0.081, 480)
    assert (found["champion"]["age_s"], found["champion"]["kind"]) == (7200, "blend")
    assert (found["challenger"]["version"], found["challenger"]["verdict"]) == ("8", "no better")
    assert (found["served"], found["trouble"]) == ({"by": "blend 7", "version": "7", "age_s": 30}, "")
    assert found["link"] == "http://flow:5055/#/models/orders-forecaster"


@pytest.mark.parametrize(
    ("registered", "drifts", "trouble"),
    [
        ([ORDERS], {"orders": DriftSeen(NOW - 3600, 1.3)}, "the load, or its forecasts' error, changed by +30%"),
        ([ORDERS], {"orders": DriftSeen(NOW - 90_000, 1.3)}, ""),
        ([ORDERS._replace(versions=(RIVAL,))], {}, "no champion: what serves is not registered"),
        ([OTHER], {}, "version 7 has served last, the champion is 9"),
        ([], {}, "no champion: what serves is not registered"),
    ],
)  # fmt: skip
def test_what_is_worth_a_look(registered, drifts, trouble):
    assert row(*registered, drifts=drifts)["trouble"] == trouble


def test_a_model_that_nobody_asked_yet_and_a_strange_tag():
    strange = CHAMPION._replace(tags={"live.wape": "nan", "live.n": "many"})
    found = row(ORDERS._replace(versions=(strange,)), model=ReadModel())
    assert (found["served"], found["champion"]["wape"], found["champion"]["steps"]) == (None, None, None)
    agent = row(RegisteredModel("orders-agent", "orders", "agent", 1, (CHAMPION,)), model=ReadModel())
    assert (agent["trouble"], agent["drift"]) == ("", None)


def test_what_is_not_registered_is_not_said_before_mlflow_has_answered():
    (found,) = model_rows(SERVED, None, {}, "", NOW)
    assert (found["trouble"], found["served"]["version"]) == ("", "7")


def test_those_worth_a_look_come_first():
    other = RegisteredModel("a-forecaster", "a", "forecaster", 8, (CHAMPION,))
    rows = model_rows(SERVED, [other, ORDERS], {"orders": DriftSeen(NOW, 2.0)}, "", NOW)
    assert [one["job"] for one in rows] == ["orders", "a"]


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        ("http://127.0.0.1:5055/", "http://127.0.0.1:5055"),
        ("https://ann:secret@flow.example/ml", "https://flow.example/ml"),
        ("sqlite:///var/mlflow.db", ""),
        (None, ""),
    ],
)
def test_mlflows_pages_are_where_its_store_is_if_that_is_a_server(uri, address):
    assert pages_address(uri) == address
