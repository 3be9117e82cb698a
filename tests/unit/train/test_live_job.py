"""How a job runs, as training is told: its contract, and the lead time that its outcomes have taught."""

import numpy as np
import pytest

from configs.settings import load
from models.forecast.core.series import Series
from pipelines.lake.load import LakeSeries
from pipelines.train.forecaster.rehearsal import read_live_job
from tests.unit.policy.test_learned_lead import CONFIRMED, outcome


def lake(outcomes=()):
    return LakeSeries(Series(0.0, 300.0, np.empty(0)), 1, outcomes=outcomes)


def test_peaks_are_learned_for_the_lead_time_that_is_planned_for(monkeypatch, tmp_path):
    (tmp_path / "orders.yaml").write_text("job: orders\nplanning: {lead_s: 10.0, hold_s: 7.0}")
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path))
    settings = load()
    before = read_live_job(settings, "orders", lake()).setup.contract
    assert 10 < before.planning.lead_s < 20 and before.planning.hold_s == 7
    slow = [outcome(f"d{i}", wall_time=100.0, **{**CONFIRMED, "useful_at": 60.0}) for i in range(8)]
    assert read_live_job(settings, "orders", lake(slow)).setup.contract.planning.lead_s == pytest.approx(65, rel=0.2)
    assert read_live_job(settings, "unknown", lake()) is None
