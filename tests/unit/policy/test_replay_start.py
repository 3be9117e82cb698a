"""When a replay begins and with which rate, and what its records are taken to cost: by hand."""

from dataclasses import replace

import pytest

from configs.contract import Contract
from models.contract.controller import close_interval
from models.contract.promised.derive import derive_terms
from models.contract.relief import Relief
from models.contract.service_rate import CERTAIN
from models.contract.signals import OperatorReading, PlannedOperator, SharedPlan, Signals
from models.contract.state import begin
from models.policy.core.sustained import sustained_rates
from models.policy.replays.level import most_admitted, next_level, next_share, raise_to
from models.policy.replays.record_cost import replay_cost
from models.policy.replays.start import certainly_left, is_enough, share_to_be_left
from tidecast.replay.pace import SLOW_START_S

CONTRACT = Contract(job="orders", latency_target_s=10.0)
TERMS = derive_terms(CONTRACT, sustained_rates(CONTRACT))
PLAN = SharedPlan((PlannedOperator("orders", prior_rps=100.0),))
STATE = begin(TERMS, PLAN, 1000.0)


def seen(at, live_rps=60.0, **reading):
    known = OperatorReading(**{"certain_rps": 50.0, "replay_ratio": 0.25, **reading})
    return Signals(at, live_rps=live_rps, live_high_rps=70.0, replay_backlog=1e6, operators={"orders": known},
                   executors=2)  # fmt: skip


def test_what_is_certainly_left_is_what_the_margin_and_live_records_leave_at_what_a_record_costs():
    left = certainly_left(TERMS, PLAN, STATE, seen(1010.0))
    assert left == pytest.approx((100 - 70 - 0.05 * 100) / 0.25)
    assert left == close_interval(TERMS, PLAN, STATE, seen(1010.0)).line["limits"]["admission"]
    assert certainly_left(TERMS, PLAN, STATE, seen(1010.0, replay_ratio=1.0)) == pytest.approx(left / 4)
    assert certainly_left(TERMS, PLAN, STATE, seen(1009.0)) is None  # no interval is over
    assert certainly_left(TERMS, PLAN, STATE, seen(1010.0, live_rps=None)) is None


@pytest.mark.parametrize(("left", "high", "lowest", "begins"), [
    (50.0, 70.0, 1.0, True),  # half of what is certain
    (10.0, 70.0, None, True),  # nothing is known of a better time
    (45.0, 70.0, 65.0, True),  # nor is there one: 50 at best
    (10.0, 70.0, 65.0, False),  # 15 at best
    (49.0, 70.0, 60.0, False),
])  # fmt: skip
def test_a_replay_begins_when_enough_is_left_or_no_better_time_comes(left, high, lowest, begins):
    assert is_enough(0.5, left, 100.0, high, lowest) is begins


def test_less_is_enough_for_one_that_has_begun():
    waiting = {"state": "waiting", "done": 0, "rows": None, "executors": 2}
    assert share_to_be_left(waiting) == share_to_be_left({"state": "waiting", "done": 0}) == 0.5
    for more in ({"state": "running"}, {"done": 1}, {"rows": 12}):
        assert share_to_be_left(waiting | more) == 0.1
    # Run dry it is as good as begun, unless its schedule asks for nothing yet.
    for asked, share in ((None, 0.1), (2, 0.1), (0, 0.5)):
        assert share_to_be_left(waiting | {"warm": True, "executors": asked}) == share
    assert is_enough(0.1, 10.0, 100.0, 70.0, 1.0) and not is_enough(0.1, 9.0, 100.0, 70.0, 1.0)


def test_the_rate_is_half_of_what_is_left_at_least_unless_a_limit_is_broken():
    assert raise_to(STATE, 80.0, CERTAIN, TERMS, None).controls.replay_rps == 40.0
    box = TERMS.controls.replay_rps.max
    assert raise_to(STATE, 80.0, 0.5, TERMS, 0.9).controls.replay_rps == pytest.approx(76.0)
    assert raise_to(STATE, 1e6, CERTAIN, TERMS, None).controls.replay_rps == box
    fast = replace(STATE, controls=replace(STATE.controls, replay_rps=41.0))
    for state, worst in ((fast, 0.5), (STATE, 1.01), (replace(STATE, relief=Relief(1)), 0.5)):
        assert raise_to(state, 80.0, CERTAIN, TERMS, worst) is state


def test_a_limit_that_has_a_price_and_is_kept_lowers_nothing():
    priced = replace(STATE, multipliers={"lag": 0.01})
    assert raise_to(priced, 80.0, CERTAIN, TERMS, 1.0).controls.replay_rps == 40.0
    assert next_level(0.35, 0.96, reads(SLOW_START_S), priced) == 0.35


@pytest.mark.parametrize(("replays", "cost"), [
    ([], None),
    ([{"cost": None, "rows": None, "work_s": None}], None),
    ([{"cost": 0.3}], 0.3),
    ([{"rows": 100, "work_s": 0.25}], 0.25),  # 25 live records of 10 ms
    ([{"rows": 100, "work_s": 3.0}], 1.0),  # what tasks take is not the records' cost
    ([{"cost": 0.3, "rows": 100, "work_s": 0.5}], 0.4),  # belief and a batch of a hundred weigh the same
    ([{"cost": 0.3, "rows": 12, "work_s": 9.0}], (30 + 12) / 112),
    ([{"rows": 100, "work_s": 0.2}, {"rows": 300, "work_s": 2.4}], 260 / 400),
    ([{"rows": 100, "work_s": 1e-6}], 0.02),
    ([{"cost": 0.0}], 0.02),
    ([{"cost": 7.0}], 1.0),
])  # fmt: skip
def test_a_record_costs_what_was_believed_until_batches_tell(replays, cost):
    assert replay_cost(replays, 0.01) == (None if cost is None else pytest.approx(cost))


def reads(since_s, state="running"):
    return [{"state": state, "wall_time": 1_000.0 + since_s, "reading_since": 1_000.0}]


def test_more_of_the_capacity_is_believed_after_each_interval_in_which_live_records_were_well_within_their_limits():
    level, steps = 0.05, []
    for _ in range(6):
        level = next_level(level, 0.95, reads(SLOW_START_S), STATE)
        steps.append(round(level, 9))
    assert steps == [0.2, 0.35, 0.5, 0.5, 0.5, 0.5]


def test_nothing_is_learned_from_an_interval_without_a_replay_that_reads_or_without_latency():
    for replays in ([], reads(SLOW_START_S - 1), reads(SLOW_START_S, "paused")):
        assert next_level(0.25, 0.5, replays, STATE) == 0.25
    decided = replace(STATE, controls=replace(STATE.controls, replay_rps=40.0))
    for admitted_rps, level in ((None, 0.25), (1.0, 0.25), (20.0, 0.4)):
        bound = [{**one, "admitted_rps": admitted_rps} for one in reads(SLOW_START_S)]
        assert next_level(0.25, 0.5, bound, decided) == pytest.approx(level)
    assert next_level(0.25, None, reads(SLOW_START_S), STATE) == 0.25
    assert next_level(0.25, 0.96, reads(SLOW_START_S), STATE) == 0.25


def test_a_broken_limit_halves_what_is_believed_beyond_the_certain_and_relief_ends_it():
    assert next_level(0.45, 1.01, reads(SLOW_START_S), STATE) == 0.25
    assert next_level(0.45, 0.5, reads(SLOW_START_S), replace(STATE, relief=Relief(1))) == 0.05


def test_after_a_broken_limit_less_of_what_is_left_is_admitted_and_it_comes_back_in_small_steps():
    had, still = replace(STATE, controls=replace(STATE.controls, replay_rps=60.0)), reads(SLOW_START_S)
    admitted = [{**one, "admitted_rps": 60.0} for one in still]
    relieved = replace(had, relief=Relief(1))

    def after(share, worst, replays=admitted, before=had, state=had):
        return next_share(share, 80.0, worst, replays, before, state)

    assert after(None, 1.01) == 0.75 * 60 / 80  # of what it had, not of all
    slow = replace(had, controls=replace(had.controls, replay_rps=4.0))
    assert after(None, 1.01, before=slow) == 0.375  # it rises slowly: that it had so little says nothing
    assert after(None, 1.01, before=STATE) is None and after(0.4, 1.01, before=STATE) == 0.4  # not its doing
    assert after(0.4, 1.01) == pytest.approx(0.3) and after(0.06, 1.19) == 0.05
    assert after(None, 1.0) is after(None, None) is None
    assert after(0.4, 0.95) == pytest.approx(0.45) and after(0.92, 0.5) is None
    assert after(0.4, 0.96) == after(0.4, 0.5, still) == after(0.4, None) == 0.4  # not quiet, not borne, not read
    for unread in ([], reads(SLOW_START_S - 1), reads(SLOW_START_S, "paused")):
        assert after(None, 1.1, unread) is None and after(0.4, 1.1, unread) == 0.4
    assert after(0.4, 1.5, state=relieved) == 0.2 and after(None, 1.5, state=relieved) == 0.375
    assert after(0.2, 1.5, before=relieved, state=relieved) == 0.2  # once
    assert next_share(None, 0.0, 1.1, admitted, had, had) == 0.75
    for nothing in ([], still[:0], reads(SLOW_START_S, "paused")):  # relief that no replay caused
        assert after(None, 1.5, nothing, state=relieved) is None and after(0.4, 1.5, nothing, state=relieved) == 0.4
    assert after(None, 1.5, before=STATE, state=relieved) is None


def test_nothing_rises_above_the_least_as_long_as_a_limit_is_broken():
    had = replace(STATE, controls=replace(STATE.controls, replay_rps=60.0))
    assert most_admitted(None, 80.0, 1.0, had) is None and most_admitted(0.5, 80.0, None, had) == 40.0
    assert most_admitted(None, 80.0, 1.01, had) == 60.0 and most_admitted(0.5, 80.0, 1.01, had) == 40.0
    assert most_admitted(0.5, -3.0, 0.5, had) == 0.0
    assert most_admitted(None, 80.0, 1.01, STATE) == 4.0  # without a record nobody can tell what is borne


def test_one_whose_first_batch_was_run_dry_tells_from_its_beginning_what_live_records_bear():
    warm = [{**one, "warm": True} for one in reads(1.0)]
    assert next_level(0.05, 0.5, warm, STATE) == pytest.approx(0.2)
