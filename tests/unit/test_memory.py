import dataclasses

import pytest

from configs.contract import Contract, Executors, Planning
from models.policy.memory import (
    RESYNC_S,
    Memory,
    evaluate,
    fresh,
    saw_batch,
    saw_forecast,
    saw_interval,
    upper_forecast,
)
from models.policy.replay import replayed

CONTRACT = Contract(
    job="j",
    executors=Executors(min=1, max=4),
    planning=Planning(
        max_step_up=2, lead_s=8, hold_s=6, quantile=0.9, overhead_s=0.4, per_record_s=0.004, forecast_age_s=12
    ),
)


def interval(wall=100.0, arrival=100.0, executors=1, lag=100, time=0.0, scale=720.0):
    return {
        "arrival_rps": arrival, "lag_records": lag, "executors": executors, "task_ceiling": 8,
        "wall_time": wall, "time": time, "span_s": scale, "time_scale": scale,
    }  # fmt: skip


def forecast(wall=100.0, time=0.0, quantiles=((10, 20), (30, 40), (50, 300), (70, 80)), epoch=1, step=1800.0):
    return {
        "wall_time": wall, "time": time, "step_s": step, "levels": [0.5, 0.9],
        "quantiles": [list(q) for q in quantiles], "epoch": epoch, "model": "m", "version": "2", "kind": "network",
    }  # fmt: skip


def test_survives_as_json():
    memory = saw_forecast(saw_interval(fresh(CONTRACT), interval()), forecast())
    memory, _, _ = evaluate(memory, 100.2, CONTRACT, "forecast")
    assert Memory.from_json(memory.to_json()) == memory


def test_the_window_of_a_forecast_is_lead_and_hold_in_job_time():
    # The metric ends at job time 720. lead + hold = 14 s = 10,080 s of job time, so the window is [720, 10,800]:
    # steps 0 to 6, of which four exist; the highest upper quantile is 300.
    memory = saw_forecast(saw_interval(fresh(CONTRACT), interval()), forecast())
    assert upper_forecast(memory, 100.0, CONTRACT)[0] == 300
    # At scale 60 it is 840 s of job time from 60 on: step 0 alone.
    slow = saw_forecast(saw_interval(fresh(CONTRACT), interval(scale=60.0)), forecast())
    assert upper_forecast(slow, 100.0, CONTRACT)[0] == 20


def test_steps_that_are_over_do_not_count():
    memory = saw_forecast(saw_interval(fresh(CONTRACT), interval(time=3 * 1800.0)), forecast())
    assert upper_forecast(memory, 100.0, CONTRACT)[0] == 80
    memory = saw_interval(memory, interval(time=9 * 1800.0))
    value, note = upper_forecast(memory, 100.0, CONTRACT)
    assert value is None and "over" in note


@pytest.mark.parametrize(("age", "usable"), [(11, True), (13, False)])
def test_a_late_forecast_is_none(age, usable):
    memory = saw_forecast(saw_interval(fresh(CONTRACT), interval(wall=100.0 + age)), forecast(wall=100.0))
    value, note = upper_forecast(memory, 100.0 + age, CONTRACT)
    assert (value is not None) is usable
    assert note.startswith("late") is not usable


def test_an_older_serving_epoch_is_ignored():
    memory = saw_forecast(fresh(CONTRACT), forecast(epoch=5))
    assert saw_forecast(memory, forecast(epoch=4, time=9e9)) is memory
    assert saw_forecast(memory, forecast(epoch=6, time=0)).forecast["epoch"] == 6


def test_nothing_is_decided_before_the_job_shows_itself_or_on_old_metrics():
    memory = fresh(CONTRACT)
    assert evaluate(memory, 0.0, CONTRACT, "forecast")[1:] == (None, None)
    memory = saw_interval(memory, interval(wall=100))
    assert evaluate(memory, 100 + CONTRACT.planning.metrics_age_s + 1, CONTRACT, "forecast")[1:] == (None, None)


def test_idle_and_cold_batches_teach_nothing_busy_ones_do():
    memory = saw_interval(fresh(CONTRACT), interval())
    batch = {"batch_rows": 500, "batch_s": 4.4, "executors": 1}  # 8 ms per record instead of 4
    assert saw_batch(memory, {**batch, "batch_s": 0.6}, CONTRACT).model == memory.model
    assert saw_batch(memory, batch, CONTRACT).model.per_record_s > memory.model.per_record_s
    grown = saw_interval(memory, interval(executors=2))
    for _ in range(2):
        grown = saw_batch(grown, {**batch, "executors": 2}, CONTRACT)
        assert grown.model == memory.model
    assert saw_batch(grown, {**batch, "executors": 2}, CONTRACT).model != memory.model


def test_a_target_that_never_came_true_is_given_up():
    memory = saw_interval(fresh(CONTRACT), interval(arrival=700))
    memory, _, made = evaluate(memory, 100.0, CONTRACT, "reactive")
    assert made.executors == 3
    later = 100.0 + RESYNC_S + 1
    memory, seen, _ = evaluate(saw_interval(memory, interval(wall=later, arrival=10)), later, CONTRACT, "reactive")
    assert seen.target == 1


def test_a_log_replays_to_the_same_decisions():
    memory, log = saw_forecast(fresh(CONTRACT), forecast()), []
    for second in range(60):
        wall = 100.0 + second
        memory = saw_interval(
            memory, interval(wall=wall, arrival=20.0 * (second % 37), lag=31 * second, time=720.0 * second)
        )
        memory, seen, made = evaluate(memory, wall + 0.3, CONTRACT, "forecast")
        inputs = {**dataclasses.asdict(seen), "contract": CONTRACT.model_dump(mode="json")}
        log.append((made, {"inputs": inputs, "policy": "forecast"}))
    assert any(made.executors > 1 for made, _ in log)
    for made, decision in log:
        assert replayed(decision) == (made.executors, made.reason, made.codes)
