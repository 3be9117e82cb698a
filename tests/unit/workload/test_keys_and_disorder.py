import numpy as np
import pytest
from scipy.special import ndtr

from models.workload.disorder import DisorderShape, draw_delays, draw_retractions
from models.workload.faults import KINDS, FaultShape, draw_faults
from models.workload.keys import HotEpisode, KeyShape, draw_keys, zipf
from models.workload.refusal import WorkloadError
from pipelines.bench.twin.deadline import kolmogorov_distance


def drawn(shape, times, seed=0):
    return draw_keys(shape, times, *(np.random.default_rng([seed, child]) for child in range(3)))


def shares(keys, of):
    return np.bincount(keys, minlength=of) / len(keys)


def test_keys_follow_zipfs_law():
    assert zipf(3, 1.0) == pytest.approx(np.array([6, 3, 2]) / 11)
    assert zipf(4, 0.0) == pytest.approx(np.full(4, 0.25))
    keys = drawn(KeyShape(5, 1.3), np.zeros(100_000))
    assert shares(keys, 5) == pytest.approx(zipf(5, 1.3), abs=0.006)


def test_an_episode_takes_its_share_in_its_time_alone():
    times = np.linspace(0, 100, 200_000)
    shape = KeyShape(100, 1.1, hot=(HotEpisode(40, 20, 0.7, (98, 99)),))
    keys, calm = drawn(shape, times), drawn(KeyShape(100, 1.1), times)
    within = (times >= 40) & (times < 60)
    assert (keys[~within] == calm[~within]).all()
    assert shares(keys[within], 100)[98:] == pytest.approx([0.35, 0.35], abs=0.01)
    assert shares(keys[within], 100)[0] == pytest.approx(0.3 * zipf(100, 1.1)[0], abs=0.01)


def test_ranks_drift_step_by_step_and_only_between_neighbours():
    times = np.repeat(np.arange(50.0), 4000)
    keys = drawn(KeyShape(10, 1.5, drift_s=1.0, drift_swaps=1), times).reshape(50, 4000)
    law = zipf(10, 1.5)
    assert shares(keys[0], 10) == pytest.approx(law, abs=0.03)
    ranked = np.array([np.argsort(-shares(step, 10), kind="stable")[:3] for step in keys])
    moved = (ranked[1:] != ranked[:-1]).any(axis=1)
    assert 3 < moved.sum() < 30, "one of nine pairs changes places in a step, three of them are seen"
    assert shares(keys[-1], 10)[ranked[-1][0]] == pytest.approx(law[0], abs=0.03)
    assert (drawn(KeyShape(10, 1.5, drift_s=1000.0), times) == drawn(KeyShape(10, 1.5), times)).all()


def test_delays_are_log_normal_below_the_cut():
    shape = DisorderShape(disordered=0.3, median_ms=500, sigma=1.2, most_ms=4000)
    delays = draw_delays(shape, 200_000, np.random.default_rng(0))
    late = delays[delays > 0]
    assert len(late) / len(delays) == pytest.approx(0.3, abs=0.005) and 3900 < late.max() <= 4000
    assert kolmogorov_distance(np.sort(ndtr(np.log(late / 500) / 1.2)) / ndtr(np.log(8) / 1.2)) < 0.006
    assert not draw_delays(DisorderShape(), 1000, np.random.default_rng(0)).any()


def test_retractions_come_after_an_exponential_time():
    shape = DisorderShape(retracted=0.2, retract_ms=5000)
    taken, after = draw_retractions(shape, 100_000, np.random.default_rng(0))
    assert taken.mean() == pytest.approx(0.2, abs=0.005) and after.min() >= 1
    assert kolmogorov_distance(np.sort(1 - np.exp(-after[taken] / 5000))) < 0.012


def test_faults_come_at_their_rate_and_a_kill_has_no_length():
    shape = FaultShape(per_hour=60, targets=("a", "b", "c"), duration_s=30)
    faults = draw_faults(shape, 100 * 3600, np.random.default_rng(0))
    assert len(faults) == pytest.approx(6000, rel=0.05)
    times = [fault.at_s for fault in faults]
    assert times == sorted(times) and times[-1] < 100 * 3600
    for kind in KINDS:
        of = [fault for fault in faults if fault.kind == kind]
        assert len(of) == pytest.approx(1500, rel=0.1) and {fault.target for fault in of} == {"a", "b", "c"}
        assert np.mean([fault.duration_s for fault in of]) == pytest.approx(0 if kind == "worker kill" else 30, rel=0.1)
    assert draw_faults(FaultShape(), 1e6, np.random.default_rng(0)) == ()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: KeyShape(keys=0),
        lambda: KeyShape(drift_s=-1),
        lambda: KeyShape(keys=5, hot=(HotEpisode(0, 1, 0.5, (5,)),)),
        lambda: KeyShape(hot=(HotEpisode(0, 1, 0.5, ()),)),
        lambda: DisorderShape(disordered=1.1),
        lambda: DisorderShape(most_ms=0),
        lambda: FaultShape(kinds=("flood",)),
        lambda: FaultShape(targets=()),
    ],
)
def test_shapes_that_are_none_are_refused(wrong):
    with pytest.raises(WorkloadError, match="expected"):
        wrong()
