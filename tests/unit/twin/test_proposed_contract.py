"""A contract from what was observed: the target that was kept, and the nearest contract that holds in the twin."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.contract import Contract
from models.policy.core.budget import Account, Promise
from models.twin.advice.serve import hear_last_value
from models.twin.contract.kept import latency_by_second, round_up, target_kept
from models.twin.contract.proposed import fewest_executors, holds, propose_contract
from models.twin.contract.tried import ContractOutcome, try_contract, try_contracts
from models.twin.sim.job import TwinError, TwinJob

# Batches of 2 s (0.4 of 5 s) with 0.4 s of overhead: an executor sustains 80 records/s.
JOB = TwinJob(0.4, 0.01, most=2, tasks=8, trigger_s=1.0, startup_s=(10.0,), noise=0.1)
DRAFT = {
    "job": "orders", "latency_target_s": 5.0, "error_budget": 0.02, "executors": {"min": 1, "max": 2, "cores": 1},
    "planning": {"overhead_s": 0.4, "per_record_s": 0.01},
}  # fmt: skip


def waves(high):
    seconds = np.arange(900)
    return np.concatenate([[0.0], np.cumsum(high * (0.6 - 0.4 * np.cos(seconds * 2 * np.pi / 450)))])


def test_seconds_have_the_latency_of_their_batch_and_a_shared_one_the_longer():
    # Batches at 103, 106.5 and 110 whose oldest records came at 100, 102.5 and 106: they cover 100 to 102.5, to 106.
    seconds, latency_s = latency_by_second(np.array([103.0, 106.5, 110.0]), np.array([3.0, 4.0, 4.0]))
    assert seconds.tolist() == [100, 101, 102, 103, 104, 105]
    assert latency_s.tolist() == [3.0, 2.0, 4.0, 3.5, 2.5, 1.5]  # 102 is of both: from 102.5 to 106.5
    assert [part.tolist() for part in latency_by_second(np.array([9.0]), np.array([2.0]))] == [[], []]


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 120)), min_size=2, max_size=30), st.integers(1, 100),
)  # fmt: skip
def test_the_seconds_over_a_target_are_those_that_the_account_counts(batches, target):
    committed, latency_s = np.cumsum([gap / 4 for gap, _ in batches]) + 1e6, np.array([late / 4 for _, late in batches])
    promise, account = Promise(target / 4, 0.01, 366.0), Account()
    for at, late in zip(committed, latency_s, strict=True):
        account = account.add_batch(promise, float(at), float(late), 1.0)
    assert (latency_by_second(committed, latency_s)[1] > target / 4).sum() == account.late_s


def test_the_target_is_the_shortest_of_two_digits_that_the_share_kept():
    latency_s = np.arange(1, 101) / 10  # 0.1 to 10 s
    assert target_kept(latency_s, 0.02) == 9.8  # 9.9 and 10.0 are over it
    assert target_kept(latency_s + 0.01, 0.02) == 9.9
    assert target_kept(np.full(9, 0.003), 0.01) == 0.1


@given(st.floats(1e-6, 1e6), st.integers(1, 4))
def test_what_is_rounded_up_is_not_below_and_no_digit_above(value, digits):
    found = round_up(value, digits)
    assert value * (1 - 1e-8) <= found <= value * (1 + 10.0 ** (1 - digits)) * (1 + 1e-8)
    assert round_up(0.0) == 0.0 and float(f"{found:.{digits}g}") == found


def test_a_draft_that_holds_is_proposed_as_it_is():
    found = propose_contract(DRAFT, JOB, waves(60))
    assert found.tried == 1 and found.stated == DRAFT and holds(found.outcome)


def test_over_hours_a_third_of_what_may_be_late_is_spared():
    just = ContractOutcome(Contract.model_validate(DRAFT), np.array([0.013, 0.0136]), np.zeros(2), 1, 86_399)
    assert holds(just) and just.kept
    more = replace(just, late=np.array([0.02, 0.02]))
    assert more.kept and not holds(more) and holds(replace(more, seconds=86_400))
    assert not holds(replace(more, seconds=86_400, late=np.full(2, 0.0201))) and not replace(more, late=np.ones(2)).kept


def test_a_draft_that_does_not_hold_is_relaxed_to_the_nearest_that_does():
    told = []
    found = propose_contract({**DRAFT, "latency_target_s": 1.6}, JOB, waves(60), told.append)
    first, *_, last = told
    assert len(told) == found.tried > 1 and not holds(first) and all(not holds(one) for one in told[:-1])
    assert last is found.outcome and last.contract == Contract.model_validate(found.stated)
    assert last.contract.latency_target_s > 1.6 and last.contract.executors.max == 2


def test_where_a_longer_target_does_not_do_the_ceiling_is_raised_as_far_as_there_are_tasks():
    busy = {**DRAFT, "executors": {"min": 1, "max": 1, "cores": 1}}  # the peak takes two
    found = propose_contract(busy, JOB, waves(120))
    assert found.stated["executors"] == {"min": 1, "max": 2, "cores": 1} and found.stated["latency_target_s"] == 5.0
    with pytest.raises(TwinError, match=r"no contract of \d+ holds .* Allow more by --error-budget"):
        propose_contract(busy, replace(JOB, tasks=1), waves(160)[:451])


def test_the_fewest_executors_are_those_of_the_quiet_minutes():
    rate = np.repeat([10.0, 90.0, 100.0], 600)
    arrived = np.concatenate([[0.0], np.cumsum(rate)])
    assert fewest_executors(JOB, arrived, 2.0, 4) == (1, pytest.approx(10.0))
    assert fewest_executors(JOB, 10 * arrived, 2.0, 4) == (2, pytest.approx(100.0))  # 80 records/s each
    assert fewest_executors(JOB, 90 * arrived, 2.0, 4)[0] == 4


def test_equal_contracts_have_equal_futures_and_a_contract_bounds_the_twin():
    contract = Contract.model_validate(DRAFT)
    one, two = (try_contract(contract, replace(JOB, most=8, latency_target_s=99.0), waves(120)) for _ in range(2))
    assert np.array_equal(one.late, two.late) and np.array_equal(one.executor_s, two.executor_s)
    assert one.asked == 2 and one.executor_s.max() <= 2 * 900


def test_contracts_that_are_tried_side_by_side_come_to_what_each_comes_to_alone():
    load, both = waves(150)[:301], [Contract.model_validate({**DRAFT, "latency_target_s": s}) for s in (1.6, 4.8)]
    ahead = hear_last_value(load, both[0])
    for contract, beside in zip(both, try_contracts(both, JOB, load, ahead), strict=True):
        alone = try_contract(contract, JOB, load, ahead)
        assert beside.contract is contract and beside.asked == alone.asked
        assert np.array_equal(beside.late, alone.late) and np.array_equal(beside.executor_s, alone.executor_s)
