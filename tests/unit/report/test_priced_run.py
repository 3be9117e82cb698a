from dataclasses import replace

import numpy as np
import pytest

from models.twin.calibration.fit import fit_job
from models.twin.calibration.replayed import replay_recording
from pipelines.report.alternatives import SEEDS, latency_bias, price_run
from pipelines.report.fit_input import read_fit_input
from pipelines.report.measures import measure_run
from pipelines.report.recorded.run import load_run
from tests.fakes import run_dir


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("alternatives")
    run_dir.write(folder)
    return measure_run(load_run(folder))


def fitted(measured):
    run = read_fit_input(measured)
    return fit_job(run.batches, run.startups, run.known, draws=1).job, run


def with_latency(run, latency):
    return replace(run, curves=run.curves._replace(latency_s=latency))


def test_a_twin_that_is_its_job_has_no_bias_and_one_of_half_the_latency_is_told(measured):
    job, run = fitted(measured)
    own = replay_recording(
        job, run.arrived, np.round(run.at_s, 1), run.targets.astype(int), run.executors, np.arange(SEEDS),
        batches=run.done,
    ).latency_s  # fmt: skip
    quantiles = [np.quantile(one[np.isfinite(one)], 0.95) for one in own]
    level = float(np.mean(quantiles))
    flat = np.where(np.isfinite(own[0]), level, np.nan)
    assert latency_bias(job, with_latency(run, flat), 0.05) == pytest.approx(1.0)
    assert latency_bias(job, with_latency(run, 2 * flat), 0.05) == pytest.approx(0.5)
    assert latency_bias(job, with_latency(run, np.full_like(flat, np.nan)), 0.05) == 1.0


def test_others_are_judged_by_the_latency_that_was_measured(measured):
    as_it_was = price_run(measured)
    seconds = measured.seconds.copy()
    seconds["latency_max_s"] *= 20
    slower = price_run(replace(measured, seconds=seconds))
    assert slower["reactive_late_share"] > as_it_was["reactive_late_share"]
    assert slower["smallest_fixed"] is None or slower["smallest_fixed"] > as_it_was["smallest_fixed"]
