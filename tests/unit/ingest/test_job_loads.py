"""What the lake's log says of every job at once, and a job with a wrong time beside others."""

import json
import logging
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from configs.settings import load
from models.forecast.core.series import MAX_STEPS, SeriesError
from pipelines.lake import tables as lake
from pipelines.lake.folder import lake_folder
from pipelines.lake.steps import loads_of_sums, sum_records
from pipelines.train.forecaster.run import jobs_with_training_data


def write_commits(root, *spans):
    """A log of the table `metrics` as Delta keeps it, with a commit per mapping of spans, each of another partition."""
    log = root / "metrics" / "_delta_log"
    log.mkdir(parents=True)
    for at, of_jobs in enumerate(spans):
        origin = lake.Origin("metrics", "id", f"2014-10-22T{at:02}", {0: at}, {0: at + 1}, 0.0, 1, 0, of_jobs)
        told = {"commitInfo": {"userMetadata": json.dumps({"origin": asdict(origin)})}}
        (log / f"{at:020}.json").write_text(json.dumps(told))


def test_the_log_is_read_once_for_all_jobs(tmp_path, monkeypatch):
    settings = load(var=tmp_path)
    root = lake_folder(settings)
    write_commits(root, {"orders": 1200.0, "rides": 900.0}, {"orders": 600.0})
    assert lake.job_spans_s(root) == {"orders": 1800.0, "rides": 900.0}
    assert (lake.job_span_s(root, "orders"), lake.job_span_s(root, "nobody")) == (1800.0, 0.0)
    reads, plain = [], lake.commit_origins
    monkeypatch.setattr(lake, "commit_origins", lambda root, table: reads.append(table) or plain(root, table))
    assert jobs_with_training_data(["rides", "orders", "nobody"], settings=settings) == ["orders"]
    assert reads == ["metrics"]


def test_a_job_whose_times_make_no_series_leaves_the_others_theirs(caplog):
    sums = pd.DataFrame(
        [("orders", 0, 1.0, 10.0, 2.0), ("orders", 1, 1.0, 20.0, 2.0),
         ("rides", 0, 1.0, 1.0, 1.0), ("rides", MAX_STEPS + 9, 1.0, 1.0, MAX_STEPS + 10.0)],
        columns=["job", "step", "weight", "total", "until"],
    )  # fmt: skip
    with pytest.raises(SeriesError, match="rides: the times span 1000010 steps"):
        loads_of_sums(sums, 1.0)
    with caplog.at_level(logging.WARNING):
        found = loads_of_sums(sums, 1.0, leave_out=True)
    assert {job: load.values.tolist() for job, load in found.items()} == {"orders": [10.0, 20.0]}
    assert "rides is left out: the times span 1000010 steps of 1 s" in caplog.text


@pytest.mark.parametrize(("stray", "day"), [
    (0.0, "1970-01-01"), (4_000_000_020.0, "2096-10-02"), (1_415_340_000.0, "2014-11-07"),
    (1_413_000_000.0, "2014-10-11"),
])  # fmt: skip
def test_one_interval_of_another_decade_or_week_spoils_no_load(caplog, stray, day):
    """As the lake's files are read: in batches, of which one holds the wrong time among others."""
    begin = 1_413_950_400.0  # 2014-10-22 04:00
    times = begin + 60.0 * np.arange(3000)
    frame = pd.DataFrame({"job": "orders", "time": times, "span_s": 60.0, "arrival_rps": 7.0})
    wrong = frame[1000:1001].assign(time=stray, arrival_rps=1e6)
    frames = [frame[:1000], pd.concat([frame[1000:2000], wrong]), frame[2000:].assign(span_s=[60.0] * 999 + [40.0])]
    with caplog.at_level(logging.WARNING):
        load = loads_of_sums(sum_records(frames, 60.0), 60.0)["orders"]
    assert (load.start, load.values.tolist()) == (begin, [7.0] * 2999)  # the last step is not over
    assert f"orders: 1 of 3001 steps are left out, {day} to {day} (UTC)" in caplog.text


def test_one_absurd_rate_leaves_the_others_theirs_and_is_said(caplog):
    times = 1_413_950_400.0 + 60.0 * np.arange(3000)
    rates = 100.0 + np.arange(3000) % 7
    frame = pd.DataFrame({"job": "orders", "time": times, "span_s": 60.0, "arrival_rps": rates})
    wrong = frame.assign(arrival_rps=np.where(np.arange(3000) == 1000, 1e15, rates))
    right, load = (loads_of_sums(sum_records([one], 60.0), 60.0)["orders"].values for one in (frame, wrong))
    assert np.isnan(load[1000]) and (np.delete(load, 1000) == np.delete(right, 1000)).all()
    assert "orders: 1 of 3000 steps count as missing, the first of 1e+15 records/s on 2014-10-22 (UTC)" in caplog.text
