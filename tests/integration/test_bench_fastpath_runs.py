"""The bench of the fast path in small, over a real store, real processes and real sockets."""

from unittest.mock import Mock

import pytest

from models.forecast.baselines.naive import Naive
from pipelines.bench.fastpath import local as in_process
from pipelines.bench.fastpath.figures import subtract_floor, summarise_runs
from pipelines.bench.fastpath.load import STEP_S
from pipelines.bench.fastpath.local import time_in_process
from pipelines.bench.fastpath.page import render_page
from pipelines.bench.fastpath.socket import time_by_socket
from pipelines.serve.models.model_set import pack_model
from tests.fakes.forecasters import TASK

pytestmark = pytest.mark.integration


def test_in_process_and_over_the_socket_every_sample_has_its_forecast(tmp_path, monkeypatch):
    monkeypatch.setattr(in_process, "gc", Mock())  # to look through the heap of all tests takes a second, each time
    made = pack_model(Naive(type(TASK)(STEP_S, TASK.horizon, TASK.levels)))
    local = summarise_runs(time_in_process(tmp_path / "local", made, 2, 30, 5))
    lists = time_by_socket(tmp_path / "socket", made, 2, 30, 5, 2)
    floor, ours = summarise_runs(lists["floor"]), summarise_runs(lists["socket"])
    added = subtract_floor(ours, floor)  # None where a busy computer had the echo take longer than the forecast
    assert local["count"] == floor["count"] == ours["count"] == 60
    assert [len(run) for run in lists["socket_scheduled"]] == [2, 2]
    found = {
        "host": {"cores": 2, "load_before": 0.0, "load_after": 0.0}, "absent": {"redis_over_fast": "it is not there"},
        "in_process_us": local, "socket_us": ours, "socket_floor_us": floor,
        "socket_added_us": added or {"p50": 90.0, "p99": 400.0},
    }  # fmt: skip
    page = render_page(found)
    assert "Unix socket, time beyond a bare echo" in page and "it is not there" in page
