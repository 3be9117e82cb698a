"""Estimates of capacity are judged on what a run recorded; runs that cannot be read are told."""

import json
import math

import numpy as np
import pytest

from configs.contract import Contract
from pipelines.bench.capacity import AHEAD, ESTIMATES, WARM_UP, judge_run, measure_capacity, read_steps
from pipelines.report.recorded.lines import RunError
from tidecast.messages import Decision, MetricSample, Outcome, encode

BATCHES = 120


def recorded(folder, seed=1, noise=0.15, growth=0.0, room=True):
    """A run whose batches take 1 s and 20 ms a record on a slot, of which there are two, then three, asked for before.

    Args:
        folder: of the run.
        seed, noise: of the batches' times.
        growth: of starts, by the contract.
        room: whether the cluster had room for the third executor at first.
    """
    chance, now = np.random.default_rng(seed), 1e9
    told = [MetricSample("a", "interval", 0.0, now, arrival_rps=0.0)]  # before anything is known of executors
    decided, outcomes = [Decision("d0", "a", 0.0, now, 1.0, "act", "mpc", 2, "", ["hold"], {}, {})], []
    for at in range(BATCHES):
        if at == 55:
            decided.append(Decision("d1", "a", 0.0, now, 1.0, "act", "mpc", 3, "", ["up"], {}, {}))
            if not room:
                observed = {"no_room": True}
                outcomes.append(Outcome("d1", "a", 0.0, now + 0.1, 1.0, "ineffective", "", 2, 2, 3, observed=observed))
        executors = 2 if at < 60 else 3
        told.append(MetricSample("a", "interval", 0.0, now, arrival_rps=50.0, executors=executors, lag_records=0,
                                 task_ceiling=12, mode="act"))  # fmt: skip
        records = int(100 + 80 * math.sin(at / 7))
        slots = 12 / math.ceil(12 / executors)
        took = (1.0 + 0.02 * records / slots) * math.exp(noise * chance.standard_normal())
        now += took
        told.append(MetricSample("a", "batch", 0.0, now, batch_rows=records, batch_s=took, executors=executors))
    folder.mkdir(exist_ok=True)
    planning = {"overhead_s": 1.5, "per_record_s": 0.03, "lead_s": 60.0, "start_growth": growth}
    contract = Contract(job="a", latency_target_s=10, planning=planning)
    (folder / "run.json").write_text(json.dumps({"job": "a", "contract": contract.model_dump(mode="json")}))
    for topic, said in (("metrics", told), ("decisions", decided), ("outcomes", outcomes)):
        (folder / f"{topic}.jsonl").write_bytes(b"".join(encode(one) + b"\n" for one in said))
    return folder


def test_steps_are_what_live_scaling_saw(tmp_path):
    contract, steps = read_steps(recorded(tmp_path / "r"))
    assert contract.job == "a" and len(steps) == BATCHES
    assert [steps[at].executors for at in (0, 59, 60)] == [2, 2, 3] and steps[60].slots == 3
    assert [at for at, step in enumerate(steps) if not step.warm] == [60, 61]
    assert steps[-1].known.per_record_s == pytest.approx(0.02, rel=0.3) and 0.1 < math.sqrt(steps[-1].scatter) < 0.25


@pytest.mark.parametrize(("growth", "room", "cold"), [
    (0.0, True, [60, 61]),
    (1.0, True, [*range(55, 62)]),
    (1.0, False, [60, 61]),  # nothing started meanwhile
])  # fmt: skip
def test_batches_beside_a_start_teach_nothing_as_live(tmp_path, growth, room, cold):
    _, steps = read_steps(recorded(tmp_path / "r", growth=growth, room=room))
    assert [at for at, step in enumerate(steps) if not step.warm] == cold


def test_every_batch_is_judged_that_has_enough_after_it(tmp_path):
    rows = judge_run(recorded(tmp_path / "r"))
    assert len(rows) == len(ESTIMATES) * (BATCHES - AHEAD - WARM_UP)
    assert sum(row["changed"] for row in rows) == len(ESTIMATES) * AHEAD
    ours = [row["error"] for row in rows if row["estimate"] == "batch_time"]
    assert 0.08 < np.mean(ours) < 0.25  # noise of 15 % is 12 % off in the mean, and it had to learn


def test_a_run_without_noise_is_predicted_by_all(tmp_path):
    rows = judge_run(recorded(tmp_path / "r", noise=0.0))
    late = [row["error"] for row in rows[-len(ESTIMATES) * 20 :]]
    assert max(late) < 0.05


def test_runs_are_summed_and_a_broken_one_is_told(tmp_path):
    told = []
    runs = [recorded(tmp_path / f"r{seed}", seed) for seed in (1, 2)]
    found = measure_capacity([*runs, tmp_path / "none"], told.append)
    assert found["runs"] == 2 and set(found["by_run"]) == {"r1", "r2"} and "none: passed over" in told[0]
    one = found["batch_time"]
    assert one["n"] == 2 * (BATCHES - AHEAD - WARM_UP) and one["after_change"]["n"] == 2 * AHEAD
    assert one["low_miss"] == pytest.approx(one["above_low"] - 0.95)
    assert found["gain_low"] <= found["gain"] <= found["gain_high"]
    assert 0.5 < found["crossed"]["above_low"] <= 1 and 0.5 < found["crossed"]["below_high"] <= 1


def test_nothing_to_judge_is_refused(tmp_path):
    with pytest.raises(RunError, match="no run of 1 has 30 batches"):
        measure_capacity([tmp_path])
