import numpy as np
import pytest

from models.forecast.core.scores import rmse
from pipelines.bench.table2.arima import Order, choose_order, forecast_rolling


def autoregressive(points=500, seed=3):
    rng, values = np.random.default_rng(seed), np.zeros(points)
    for at in range(2, points):
        values[at] = 1.5 * values[at - 1] - 0.8 * values[at - 2] + rng.normal()
    return 100 + values


def test_it_finds_an_autoregression_and_forecasts_it_nearly_as_well_as_can_be():
    loads = autoregressive()
    order, parameters = choose_order(loads[:400])
    assert order.d == 0 and order.constant and order.p <= 3 and order.q <= 3
    forecast = forecast_rolling(order, parameters, loads, 400, 30)
    assert len(forecast) == 100
    assert rmse(loads[400:], forecast) < 1.1  # the noise has a deviation of 1
    assert rmse(loads[400:], forecast) < 0.75 * rmse(loads[400:], loads[399:-1])


@pytest.mark.parametrize("order", [Order(2, 0, 1, True), Order(1, 1, 1, False), Order(0, 1, 2, True)])
def test_every_rolled_forecast_is_what_the_model_says_after_the_loads_before_it(order):
    from statsforecast.models import ARIMA

    loads = autoregressive(200) + (0.05 * np.arange(200) if order.d else 0)
    kinds = {"include_mean": order.constant and not order.d, "include_drift": order.constant and bool(order.d)}

    def fitted(until):
        return ARIMA(order=(order.p, order.d, order.q), **kinds).fit(loads[:until])

    first = {name: float(value) for name, value in fitted(160).model_["coef"].items()}
    rolled = forecast_rolling(order, first, loads, 160, 25)
    for at in (160, 171, 184, 185, 199):
        model = fitted(160 if at < 185 else 185)
        said = model.forward(loads[:at], h=1)["mean"][0] if at not in (160, 185) else model.predict(1)["mean"][0]
        assert rolled[at - 160] == pytest.approx(said, rel=1e-5)


def test_no_forecast_looks_at_what_comes():
    loads = autoregressive(200)
    order, parameters = choose_order(loads[:150])
    changed = loads.copy()
    changed[180:] += 50
    np.testing.assert_allclose(
        forecast_rolling(order, parameters, loads, 150, 20)[:30],
        forecast_rolling(order, parameters, changed, 150, 20)[:30],
    )


def test_an_order_reads_as_people_write_it():
    assert [str(Order(2, 0, 1, True)), str(Order(0, 1, 3, True)), str(Order(0, 1, 3, False))] == [
        "(2,0,1) with mean",
        "(0,1,3) with drift",
        "(0,1,3)",
    ]
