"""From training to the worker that decides: the peaks of a job that runs at its load's own speed."""

import json

import numpy as np
import pytest

from configs.contract import Contract, Executors, Planning
from configs.sections import Training
from models.forecast.core.series import Series
from models.policy.live.held_forecast import with_forecast
from models.policy.live.memory import fresh, with_interval
from models.policy.received.peaks import LEVELS
from models.twin.experiment.setup import Setup
from models.twin.sim.job import TwinJob
from pipelines.lake.load import LakeSeries
from pipelines.registry import RegistryError
from pipelines.scale import learned
from pipelines.scale.artifact_sync import ArtifactSync, SyncedArtifacts
from pipelines.scale.learned import Learned
from pipelines.scale.processor import Scaler
from pipelines.train.forecaster.challenge import train_challenger
from pipelines.train.forecaster.rehearsal import LiveJob
from tidecast.messages import encode

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("elsewhere")]

STEP_S = 300.0
TRAINING = Training(step_s=STEP_S, models=["blend"])
PLANNING = Planning(lead_s=60, hold_s=30)
CONTRACT = Contract(job="orders", executors=Executors(min=1, max=40), planning=PLANNING)
NOW = 1_700_000_000.0
TWIN = TwinJob(overhead_s=0.6, per_record_s=0.0055, most=40, startup_s=(60.0,), tasks=4000)
LIVE = LiveJob(Setup(lead_s=60.0, job=TWIN, as_is=True, contract_of_job=CONTRACT), measured=False)


def source(burst_rps=250.0):
    """Two days of a load with a daily wave, noise, and a burst every two hours, until now."""
    chance, many = np.random.default_rng(4), 2 * 288
    wave = 600 + 300 * np.sin(2 * np.pi * np.arange(many) / 288)
    burst = np.where(np.arange(many) % 24 < 2, burst_rps, 0.0)
    load = np.maximum(wave + burst + 30 * chance.standard_normal(many), 0.0)
    return LakeSeries(Series(NOW - many * STEP_S, STEP_S, load), 1)


@pytest.fixture(scope="module")
def version(registry):
    """A challenger that has become champion, with what was learned of the load's peaks."""
    train_challenger(registry, "orders", TRAINING, source(), live=LIVE)
    found = registry.alias_version("orders", "challenger")
    assert found is not None
    return found


@pytest.fixture
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("synced")


def synced(settings, folder, contract=CONTRACT):
    sync = ArtifactSync(learned.rehearsal_source(settings), lambda: {contract.job: contract}, folder, every_s=0.0)
    return sync, SyncedArtifacts(folder, learned.read_fitting_rehearsal)


def memory(version):
    """Of a job that has been seen for a minute, and a forecast of a version."""
    known = fresh(CONTRACT)
    for second in range(60):
        known = with_interval(known, {
            "arrival_rps": 600.0, "lag_records": 0, "executors": 10, "task_ceiling": 4000, "span_s": 1.0,
            "wall_time": NOW + second, "time": NOW + second - 1, "time_scale": 1.0,
        })  # fmt: skip
    quantiles = [[600.0 + 20 * q for q in range(7)]] * 12
    return with_forecast(known, {
        "wall_time": NOW + 59, "time": NOW, "step_s": STEP_S, "levels": list(TRAINING.levels), "quantiles": quantiles,
        "epoch": 1, "model": "orders-forecaster", "version": version, "kind": "blend", "last_rps": 600.0,
    })  # fmt: skip


def test_training_says_in_the_card_what_it_learned_of_peaks(registry, version):
    (card,) = (v.description for v in registry.versions("orders") if str(v.version) == version)
    assert "Peaks: learned for 60 s until an executor works and 30 s after" in card


def test_the_champion_of_the_run_has_peaks_too_and_a_new_one_brings_its_own(settings, registry, version, folder):
    assert registry.champion_version("orders") == "1"  # the naive one, which may serve on
    sync, known = synced(settings, folder)
    (said,) = sync.sync(0.0)
    assert said.startswith("orders: rehearsal is version 1@")
    scaler = Scaler("orders", CONTRACT, "mpc", "act", Learned(rehearsals=known))
    assert decided(scaler, "1")["levels"] == list(LEVELS)
    registry.set_champion("orders", version)
    (said,) = sync.sync(1.0)
    assert said.startswith(f"orders: rehearsal is version {version}@")
    assert decided(scaler, version)["levels"] == list(LEVELS)
    assert decided(scaler, "1")["levels"] == list(TRAINING.levels)  # forecast by the version before


def decided(scaler, version):
    """What was heard for a decision."""
    _, decision = scaler.decide(memory(version), NOW + 59.5)
    assert decision is not None
    return json.loads(encode(decision))["inputs"]["ahead"]


def test_a_champion_that_stays_hears_what_its_load_has_become(settings, registry, version, folder):
    registry.set_champion("orders", version)
    sync, known = synced(settings, folder)
    sync.sync(0.0)
    before = known.newest(CONTRACT)[1].peaks
    train_challenger(registry, "orders", TRAINING, source(400.0), live=LIVE)  # a blend again: no better
    (said,) = sync.sync(1.0)
    assert said.startswith(f"orders: rehearsal is version {version}@")
    assert not np.array_equal(known.newest(CONTRACT)[1].peaks.soon.scores, before.soon.scores)


def test_a_contract_of_other_times_is_told_to_retrain_and_nothing_dies(settings, registry, version, folder):
    registry.set_champion("orders", version)
    synced(settings, folder)[0].sync(0.0)
    other = CONTRACT.model_copy(update={"planning": PLANNING.model_copy(update={"hold_s": 10.0})})
    sync, known = synced(settings, folder, other)  # after a restart, on the same folder
    (said,) = sync.sync(0.0)
    assert "learned for 30 s of hold" in said and "10 s: retrain" in said
    scaler = Scaler("orders", other, "mpc", "act", Learned(rehearsals=known))
    assert decided(scaler, version)["levels"] == list(TRAINING.levels)


def test_a_run_without_peaks_has_no_file(registry, version, folder):
    with pytest.raises(RegistryError, match=r"run [0-9a-f]+ .* has no version_99/peaks\.json"):
        registry.download_rehearsal(f"99@{registry.versions('orders')[0].run_id}", folder)
