"""What an ingest reports of drifts, with a lake that only holds frames."""

import json
import logging
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from configs.bounds import DAY_S
from configs.settings import Settings
from models.adapt.drift import KEPT_DAYS
from models.forecast.core.series import Series
from pipelines.airflow.drifts import valid_drifts
from pipelines.ingest.drift import find_drift_events, log_forecast_errors, newest_drift
from tests.fakes.drifts import DRIFTED

STEP_S, DAY = 1800.0, 48


def load(factor=1.0, days=21, at=16 * DAY):
    steps = np.arange(days * DAY)
    values = 100 * (1.5 + np.sin(2 * np.pi * steps / DAY)) * np.where(steps < at, 1.0, factor)
    return Series(0.0, STEP_S, values)


class FramedLake:
    """Holds one load for every job, and no forecasts."""

    def __init__(self, loads, root=Path("/nowhere")):
        self._loads, self.root = loads, root

    def read_loads(self, jobs, step_s, newest_s, leave_out):
        assert leave_out and newest_s >= KEPT_DAYS * DAY_S + step_s  # one wrong job stops no ingest
        return {job: self._loads[job] for job in jobs}, 3


def test_a_break_is_told_once():
    event = newest_drift("orders", load(1.6), reported=[])
    assert event["job"] == "orders" and event["factor"] == pytest.approx(1.6, rel=0.05)
    assert event["text"].startswith("orders: the load changed by +") and "since about 1970-01-17" in event["text"]
    reported = [json.loads(json.dumps(event))]
    assert newest_drift("orders", load(1.6), reported) is None
    assert newest_drift("orders", load(1.6, days=22), reported) is None
    assert newest_drift("payments", load(1.6), reported) is not None
    assert newest_drift("orders", load(), reported=[]) is None


def test_every_job_of_the_lake_is_looked_at_with_its_own_memory():
    lake = FramedLake({"calm": load(), "known": load(1.6), "new": load(0.5)})
    reported = [newest_drift("known", load(1.6), [])]
    found, wrong = find_drift_events(lake, Settings(), ["calm", "known", "new"], reported)
    assert [event["job"] for event in found] == ["new"] and wrong == {}
    assert found[0]["factor"] == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    "wrong",
    [{}, None, "higher", {"job": "known"}, {**DRIFTED, "job": 7}, {**DRIFTED, "job": ""}, {**DRIFTED, "text": None},
     {**DRIFTED, "found": "soon"}, {**DRIFTED, "after": math.nan}, {**DRIFTED, "time": 10**400},
     {**DRIFTED, "before": True}, {**DRIFTED, "factor": 0}, {**DRIFTED, "found": 1.7e12}, {**DRIFTED, "time": 1.7e12},
     {**DRIFTED, "before": 3000, "after": 5000, "factor": 1.67}, {**DRIFTED, "before": -(10**308), "after": 10**308}],
)  # fmt: skip
def test_an_event_made_by_hand_is_left_out_and_the_others_count(caplog, wrong):
    known = newest_drift("known", load(1.6), [])
    with caplog.at_level(logging.WARNING):
        assert valid_drifts([wrong, known, DRIFTED]) == [known, DRIFTED]
    assert "is none that ingest_metrics made and is left out" in caplog.text
    found, _ = find_drift_events(
        FramedLake({"known": load(1.6), "new": load(0.5)}), Settings(), ["known", "new"], [wrong, known]
    )
    assert [event["job"] for event in found] == ["new"]


def test_what_an_ingest_reports_is_taken_as_its_own_whatever_the_change(caplog):
    events = [newest_drift("orders", load(factor), []) for factor in (0.01, 0.5, 1.3, 40)]
    assert valid_drifts(json.loads(json.dumps(events))) == events and not caplog.messages


def test_a_drift_that_a_person_dates_into_the_future_keeps_nobody_from_looking():
    ahead = {**DRIFTED, "found": load().end + 30 * DAY_S}
    assert newest_drift("orders", load(1.6), [ahead])["factor"] == pytest.approx(1.6, rel=0.05)


def test_a_job_that_cannot_be_looked_at_is_named_and_keeps_no_other_from_it(tmp_path):
    (tmp_path / "forecasts" / "_delta_log").mkdir(parents=True)
    (tmp_path / "forecasts" / "_delta_log" / f"{0:020d}.json").touch()
    lake = FramedLake({"broken": load(1.6), "new": load(0.5)}, tmp_path)

    def served(job, since):
        if job == "broken":
            raise OSError("part-0.parquet cannot be read")

    lake.read_served_forecasts = served
    found, wrong = find_drift_events(lake, Settings(), ["broken", "new"], [])
    assert [event["job"] for event in found] == ["new"]
    assert wrong == {"broken": "OSError: part-0.parquet cannot be read"}


def test_errors_are_those_of_the_furthest_step_of_the_first_forecast_of_a_time():
    series = Series(0.0, STEP_S, np.array([10.0, 20, 30, 0, 50]))
    rows = [  # time, wall time, step, levels, quantiles: two steps ahead
        (0.0, 1.0, STEP_S, [0.1, 0.5], [[1.0, 10.0], [2.0, 10.0]]),
        (0.0, 2.0, STEP_S, [0.1, 0.5], [[1.0, 10.0], [2.0, 99.0]]),
        (2 * STEP_S, 3.0, STEP_S, [0.1, 0.5], [[1.0, 9.0], [2.0, 9.0]]),
        (3 * STEP_S, 4.0, 60.0, [0.1, 0.5], [[1.0, 9.0], [2.0, 9.0]]),
        (9 * STEP_S, 5.0, STEP_S, [0.1, 0.5], [[1.0, 9.0], [2.0, 9.0]]),
    ]
    frame = pd.DataFrame(rows, columns=["time", "wall_time", "step_s", "levels", "quantiles"])
    errors = log_forecast_errors(series, frame)
    np.testing.assert_allclose(errors.values, [np.nan, np.log(2), np.nan, np.nan, np.nan])
    assert log_forecast_errors(series, frame[:0]) is None
    assert log_forecast_errors(series, None) is None
