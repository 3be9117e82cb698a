"""What a policy knows of its job in the twin is what a live one has measured, by the same code."""

from dataclasses import replace

import numpy as np
import pytest

from configs.contract import Contract, Planning
from models.policy.core.batch_time import BatchTime, learn_from_batch
from models.policy.core.batches import BatchSums, add_batch, close_look
from models.policy.core.capacity import parallelism
from models.twin.experiment.setup import Setup
from models.twin.sim.given import Load, Looks
from models.twin.sim.job import Belief, TwinJob, stack
from models.twin.sim.run import advance, observe, set_targets
from models.twin.sim.state import begin
from pipelines.backtest.on_lake import twin_from_contract

TRUTH = TwinJob(0.1, 0.004, most=4, tasks=64, scaling=0.8, startup_s=(10.0,), noise=0.1, batch_rows=600.0)
GUESS = Belief(0.2, 0.009, 1.0)


def test_a_policy_is_shown_the_contracts_guess_and_not_the_truth() -> None:
    jobs, load = stack([TRUTH], GUESS), Load(np.arange(61.0)[None] * 100, np.zeros(1, np.int64))
    seen = observe(begin(jobs, np.full(1, 2.0), np.zeros(1, np.int64)), jobs, load, Looks(5), 0, None).capacity
    assert (seen.overhead_s[0], seen.per_record_s[0]) == (GUESS.overhead_s, GUESS.per_record_s)
    assert seen.speeds[0, 3] == parallelism(3, 1, 64)  # of a job that is believed to scale linearly


def test_batches_teach_in_the_twin_what_they_teach_a_live_job() -> None:
    """A batch a second: what was counted in one is that batch."""
    rate, every = 180.0, 7
    jobs = stack([TRUTH], GUESS)
    load = Load(np.concatenate([[0.0], np.cumsum(np.full(120, rate))])[None], np.zeros(1, np.int64))
    state = begin(jobs, np.full(1, 2.0), np.full(1, 3))
    model, live, taught = BatchTime.guess(GUESS.overhead_s, GUESS.per_record_s), BatchSums(), 0
    for now in range(0, 119, every):
        seen = observe(state, jobs, load, Looks(every), now, None)
        live, batch_s = close_look(live, int(seen.lag_records[0]))
        mine = [seen.processed_rps[0], seen.busy[0], seen.in_batch[0], seen.batch_s[0]]
        theirs = [np.nan if v is None else v for v in (live.processed_rps, live.busy, live.in_batch, batch_s)]
        np.testing.assert_allclose(mine, theirs, rtol=1e-9)
        np.testing.assert_allclose(seen.capacity.per_record_s[0], model.per_record_s, rtol=1e-9)
        np.testing.assert_allclose(seen.capacity.overhead_s[0], model.overhead_s, rtol=1e-9)
        set_targets(state, jobs, np.full(1, 2.0), now)
        for second in range(now, min(now + every, 119)):
            before = state.x[0].copy()
            advance(state, jobs, load, second, second + 1)
            rows, duration = (state.x[0][name] - before[name] for name in ("processed", "batch_s"))
            if not rows:
                continue
            assert duration < 1
            slots = parallelism(2, 1, 64)
            live = add_batch(live, second + duration, rows, duration, max(duration - model.overhead_s, 0.0), slots)
            model, taught = learn_from_batch(model, rows, slots, duration), taught + 1
    assert taught > 50 and abs(model.per_record_s / GUESS.per_record_s - 1) > 0.3


@pytest.mark.parametrize(("growth", "teaches"), [(1.0, False), (0.3, True)])
def test_batches_beside_a_start_that_takes_their_cores_teach_nothing_as_in_a_live_job(growth: float, teaches: bool):
    """Executors take 30 s to come, of which 20 are planned for: so long nothing is learned, and then again."""
    belief = Belief.of(Planning(overhead_s=0.2, per_record_s=0.009, lead_s=20.0, start_growth=growth))
    jobs = stack([replace(TRUTH, startup_s=(30.0,))], belief)
    load, state = Load(100.0 * np.arange(41.0)[None], np.zeros(1, np.int64)), begin(jobs, np.ones(1), np.ones(1, int))
    learned = []
    for now in range(40):
        if now == 5:
            set_targets(state, jobs, np.full(1, 2.0), now)
        before = state.x["per_record_s"][0]
        advance(state, jobs, load, now, now + 1)
        learned.append(state.x["per_record_s"][0] != before)
    assert any(learned[:5]) and any(learned[6:25]) == teaches and any(learned[26:35])


def test_a_backtest_gives_no_policy_the_truth_and_its_batches_have_noise() -> None:
    setup = Setup()
    planning, job = setup.contract.planning, setup.twin_job
    assert job.noise > 0
    for told, true in ((planning.overhead_s, job.overhead_s), (planning.per_record_s, job.per_record_s)):
        assert abs(told / true - 1) > 0.1
    assert setup.belief == Belief.of(planning)


@pytest.mark.parametrize("lead_s", [8.0, 40.0])
def test_a_job_of_ones_own_is_judged_under_its_own_contract(lead_s: float) -> None:
    own = Contract(
        job="orders", planning=Planning(lead_s=lead_s, hold_s=9.0, cooldown_s=7.0, max_step_up=2, batch_s=1.5)
    )
    fitted = replace(twin_from_contract(own), per_record_s=0.02, most=17)
    setup = Setup(lead_s=20.0, job=fitted, as_is=True, contract_of_job=own)
    assert setup.contract is own and setup.planned_s == (lead_s, 9.0) and setup.looks.batch_s == 1.5
    assert twin_from_contract(own).noise > 0
    assert setup.twin_job.most == own.executors.max and setup.twin_job.per_record_s == 0.02
