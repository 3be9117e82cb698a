import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.limits import Priorities
from models.contract.fairness import Credits, divide_credits, whole_records
from tidecast.spark.shares import highest_first, water_fill

FLOWS = st.lists(st.tuples(st.floats(0, 1e6), st.floats(0.01, 100)), min_size=1, max_size=6)
CAPACITY = st.floats(0, 1e6)


@pytest.mark.parametrize(
    ("capacity", "demands", "weights", "shares"),
    [
        (100, (20, 50, 80), (1, 1, 1), (20, 40, 40)),
        (100, (20, 50, 80), (1, 1, 2), (20, 26.667, 53.333)),
        (1000, (900, 200, 400), (2, 1, 1), (533.333, 200, 266.667)),
        (100, (math.inf, 10), (1, 1), (90, 10)),
        (0, (5, 5), (1, 1), (0, 0)),
        (100, (), (), ()),
    ],
)
def test_shares_by_hand(capacity, demands, weights, shares):
    assert water_fill(capacity, demands, weights) == pytest.approx(shares, abs=5e-4)


@given(CAPACITY, FLOWS)
def test_nobody_gains_without_taking_from_one_who_has_no_more(capacity, flows):
    demands, weights = zip(*flows, strict=True)
    shares = water_fill(capacity, demands, weights)
    assert all(0 <= share <= demand for share, demand in zip(shares, demands, strict=True))
    assert math.fsum(shares) <= capacity * (1 + 1e-12)
    short = [flow for flow, share in enumerate(shares) if share < demands[flow] * (1 - 1e-9)]
    if short:
        assert math.fsum(shares) == pytest.approx(capacity)
    for flow in short:
        own = shares[flow] / weights[flow]
        assert all(share / weight <= own * (1 + 1e-6) + 1e-9 for share, weight in zip(shares, weights, strict=True))


@given(st.floats(1, 1e4), st.lists(st.tuples(st.floats(1, 1e4), st.floats(0.1, 10)), min_size=2, max_size=5), st.data())
def test_the_shares_are_proportionally_fair_too(capacity, flows, data):
    demands, weights = zip(*flows, strict=True)
    shares = water_fill(capacity, demands, weights)
    source, target = data.draw(st.permutations(range(len(flows))))[:2]
    moved = min(data.draw(st.floats(0, 0.5)) * shares[source], demands[target] - shares[target])
    other = [share + moved * ((flow == target) - (flow == source)) for flow, share in enumerate(shares)]
    welfare = [math.fsum(w * math.log(x) for w, x in zip(weights, xs, strict=True)) for xs in (shares, other)]
    assert welfare[1] <= welfare[0] + 1e-9 * (1 + abs(welfare[0]))


def test_credits_by_hand():
    ten = Priorities(10, 5, 1)
    assert divide_credits(100, Credits(50, 10, 60), ten, 0.05) == Credits(50, 10, 40)
    assert divide_credits(100, Credits(80, 10, 60), ten, 0.05) == Credits(80, 10, 10)
    # By priority maintenance would have a hundredth; the floor is more than that.
    assert divide_credits(100, Credits(100, 20, 0), Priorities(100, 1, 1), 0.05) == Credits(95, 5, 0)


@given(CAPACITY, *[st.floats(0, 1e6)] * 3, st.lists(st.integers(1, 200), min_size=3, max_size=3), st.floats(0, 1))
def test_live_records_never_lose_to_the_replay(capacity, live, maintenance, replay, weights, floor):
    priorities, asked = Priorities(*sorted(weights, reverse=True)), Credits(live, maintenance, replay)
    given_ = divide_credits(capacity, asked, priorities, floor)
    assert given_.live + given_.maintenance + given_.replay <= capacity * (1 + 1e-9) + 1e-9
    assert given_.maintenance >= min(maintenance, floor * capacity) * (1 - 1e-9)
    if given_.live < live * (1 - 1e-9):
        assert given_.replay / priorities.replay <= given_.live / priorities.live * (1 + 1e-6) + 1e-9
    fewer = divide_credits(capacity, Credits(live, maintenance, 0.0), priorities, floor)
    if live <= capacity * (1 - floor) * priorities.live / sum(weights):  # what is his in any case
        assert given_.live == pytest.approx(fewer.live) == pytest.approx(live)


def test_the_lowest_tenant_is_cut_first():
    assert highest_first(100, (60, 50, 40), (3, 1, 2)) == (60, 0, 40)
    assert highest_first(120, (60, 50, 40), (3, 1, 2)) == (60, 20, 40)
    assert highest_first(100, (80, 80, 20), (1, 1, 2)) == (40, 40, 20)
    assert highest_first(500, (60, 50), (1, 2)) == (60, 50)


def test_remainders_are_owed():
    given_, deficits, totals = (), (0.0, 0.0, 0.0), [0, 0, 0]
    for _ in range(3):
        given_, deficits = whole_records((10 / 3,) * 3, (100, 100, 100), deficits)
        assert sum(given_) == 10
        totals = [total + own for total, own in zip(totals, given_, strict=True)]
    assert totals == [10, 10, 10]


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0.1, 10)), min_size=1, max_size=6), st.integers(0, 4000))
def test_over_many_batches_each_flow_gets_its_share_to_a_record(flows, size):
    waiting, weights = zip(*flows, strict=True)
    shares, deficits, totals = water_fill(size, waiting, weights), (0.0,) * len(flows), [0] * len(flows)
    for batch in range(1, 12):
        rows, deficits = whole_records(shares, waiting, deficits)
        assert all(0 <= own <= most for own, most in zip(rows, waiting, strict=True))
        assert sum(rows) == min(size, sum(waiting))
        totals = [total + own for total, own in zip(totals, rows, strict=True)]
        assert all(abs(total - batch * share) < 2 for total, share in zip(totals, shares, strict=True))


def test_numbers_without_end_end():
    rows, _ = whole_records((1e18, 1e18 / 3), (10**18, 10**18), (0.5, 0.5))
    assert all(0 <= own <= 10**18 for own in rows)


@pytest.mark.parametrize(
    ("capacity", "demands", "weights"),
    [
        (math.nan, (1,), (1,)), (-1, (1,), (1,)), (math.inf, (1,), (1,)), (1, (math.nan,), (1,)), (1, (-1,), (1,)),
        (1, (1,), (0,)), (1, (1,), (math.inf,)), (1, (1, 2), (1,)),
    ],
)  # fmt: skip
def test_what_cannot_be_divided_is_an_error(capacity, demands, weights):
    with pytest.raises(ValueError, match="expected"):
        water_fill(capacity, demands, weights)
