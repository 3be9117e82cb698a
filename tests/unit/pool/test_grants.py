"""What the jobs of a pool are granted, and what they are told."""

import math
from dataclasses import asdict, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.bounds import HOUR_S
from configs.pool import Blackout, ClusterPool, PoolJob, Quota
from models.pool.ahead import find_shortage
from models.pool.divide import CHANGES, WITHIN_S, expected_shortage, grant
from models.pool.quota import SPENT_S, add_use, cores_left
from models.pool.reasons import describe_shortage, describe_wait
from models.pool.shares import JobClaim, PoolSize
from models.pool.wants import HeldGrant, PoolMemory, Want, executors_needed, late_price

NOW = datetime(2026, 3, 2, 18, 0, tzinfo=UTC).timestamp()
LATE = (90.0, 60.0, 30.0, 10.0, 0.0)


def pool(cores=4, **stated):
    jobs = stated.pop("jobs", {"orders": PoolJob(), "payments": PoolJob()})
    return ClusterPool(name="shared", cores=cores, jobs=jobs, **stated)


def want(job, executors=4, late_s=LATE, budget_left=1.0, at=NOW, running=1, **more):
    return Want(job, at, executors, running, 1, 1, late_s, budget_left, **more)


def both(**of):
    return {job: want(job, **of.get(job, {})) for job in ("orders", "payments")}


def held(**has):
    return PoolMemory({job: HeldGrant(many) for job, many in has.items()}, NOW - 5)


def heard_of(stated, memory, wants):
    """Divide twice: once the jobs have heard of it and spoken again, what was taken is free."""
    memory, _ = grant(stated, memory, wants, NOW)
    return grant(stated, memory, {job: replace(one, at=NOW + 1) for job, one in wants.items()}, NOW + 1)


def test_where_there_is_room_each_has_what_it_asks_for():
    after, granted = grant(pool(8), PoolMemory(), both(), NOW)
    assert {job: (one.executors, one.reason, one.codes) for job, one in granted.items()} == {
        "orders": (4, "", ("granted",)), "payments": (4, "", ("granted",)),
    }  # fmt: skip
    assert after.held == {job: HeldGrant(4, running=1) for job in ("orders", "payments")}


def test_a_job_wants_what_it_is_on_the_way_to():
    assert executors_needed(4, 3, 8) == 4 and executors_needed(1, math.nan, 8) == 1
    assert executors_needed(None, None, 8) == 0 and executors_needed(9, 12, 8) == 8
    assert want("orders", 2, needed=4).wanted == 4  # it starts them in turns
    assert want("orders", 3, needed=1).wanted == 3  # it keeps more than it needs


def test_what_a_job_neither_has_nor_asks_for_yet_is_no_change_of_it():
    memory = held(orders=2, payments=2)
    for turn, needed in enumerate((3, 4, 3, 4, 3)):
        wants = both(orders={"executors": 2, "running": 2, "needed": needed}, payments={"executors": 2, "running": 2})
        memory, granted = grant(pool(6), memory, wants, NOW + turn)
        assert granted["orders"].executors == needed and memory.held["orders"].changed == ()
    memory, granted = grant(
        pool(6), memory, both(orders={"executors": 4, "running": 2}, payments={"executors": 2}), NOW + 9
    )
    assert granted["orders"].executors == 4 and memory.held["orders"].changed == (NOW + 9,)


def test_who_is_far_behind_is_given_at_once_what_it_needs_or_it_would_never_have_it():
    behind = (900.0, 900.0, 900.0, 900.0, 100.0)  # less than all four are of no use
    jobs = {"orders": PoolJob(weight=2), "payments": PoolJob()}
    late = both(orders={"late_s": behind}, payments={"late_s": (90.0, 60.0, 30.0, 10.0, 0.0)})
    _, granted = heard_of(pool(6, jobs=jobs), held(orders=1, payments=4), late)
    assert (granted["orders"].executors, granted["payments"].executors) == (4, 2)
    asked = {**late, "orders": replace(late["orders"], executors=2)}
    _, granted = grant(pool(6, jobs=jobs), held(orders=1, payments=4), asked, NOW)
    assert granted["orders"].executors < 4
    needed = {**late, "orders": replace(asked["orders"], needed=4)}
    _, granted = heard_of(pool(6, jobs=jobs), held(orders=1, payments=4), needed)
    assert granted["orders"].executors == 4


def test_who_yields_is_told_to_whom_how_long_and_why():
    ahead = ((NOW + 600, 4), (NOW + 1200, 4), (NOW + 1800, 1), (NOW + 2400, 1))
    wants = both(orders={"budget_left": 0.93, "ahead": ahead}, payments={"budget_left": 0.12, "ahead": ahead})
    _, granted = grant(pool(5), PoolMemory(), wants, NOW)  # 20 s by 0.94 and 30 by 0.535 are worth more than 20 by that
    assert (granted["orders"].executors, granted["payments"].executors) == (2, 3)
    assert granted["orders"].reason == (
        "pool shared: yields 2 to payments until 18:20 UTC: "
        "its budget lasts (93 % left), that of payments does not (12 %)"
    )
    assert granted["orders"].late


def test_a_budget_is_no_reason_to_yield_to_a_job_whose_late_second_is_cheaper_all_the_same():
    jobs = {"orders": PoolJob(weight=4), "payments": PoolJob()}
    wants = both(orders={"late_s": (9.0, 1.0, 0.9, 0.8, 0.7)}, payments={"budget_left": 0.0})
    _, granted = grant(pool(5, jobs=jobs), PoolMemory(), wants, NOW)
    assert (granted["orders"].executors, granted["payments"].executors) == (1, 4)
    assert granted["orders"].reason.endswith(
        "yields 3 to payments: without its last executor payments would be late 10 s more"
    )


def test_a_dearer_late_second_is_the_reason_where_it_is_one():
    jobs = {"orders": PoolJob(), "payments": PoolJob(weight=4)}
    _, granted = grant(pool(6, jobs=jobs), PoolMemory(), both(), NOW)
    assert (
        granted["orders"].reason == "pool shared: yields 2 to payments: a late second of payments costs 4 times as much"
    )


def test_what_the_other_would_lose_is_the_reason_between_equals():
    _, granted = grant(pool(6), PoolMemory(), both(payments={"late_s": (900.0, 600.0, 300.0, 100.0, 0.0)}), NOW)
    assert (
        "yields 2 to payments: without its last executor payments would be late 100 s more" in granted["orders"].reason
    )


def test_a_late_second_costs_half_while_the_whole_budget_is_left():
    assert [late_price(4, left) for left in (1.0, 0.5, 0.0, -3.0, 2.0)] == [2, 3, 4, 4, 2]


def test_backfills_come_last():
    wants = both(orders={"executors": 2, "replay": 3}, payments={"executors": 3, "replay": 3})
    _, granted = grant(pool(7), PoolMemory(), wants, NOW)
    assert [(one.executors, one.replay) for one in granted.values()] == [(2, 2), (3, 0)]
    _, granted = grant(pool(5), PoolMemory(), wants, NOW)
    assert [one.replay for one in granted.values()] == [0, 0]


def test_two_changes_within_a_minute_are_the_most():
    memory, changes = held(orders=1, payments=1), []
    for second in range(0, 120, 5):
        wanted = 1 + second // 5 % 3
        before = memory.held["orders"].executors
        memory, granted = grant(pool(8), memory, both(orders={"executors": wanted, "at": NOW + second}), NOW + second)
        if granted["orders"].executors != before:
            changes.append(second)
    assert len(changes) > CHANGES
    assert all(later - first >= WITHIN_S for first, later in zip(changes, changes[CHANGES:], strict=False))


def test_a_floor_is_given_although_the_other_has_changed_twice():
    memory = PoolMemory({"orders": HeldGrant(1), "payments": HeldGrant(4, (NOW - 20, NOW - 10))}, NOW - 5)
    jobs = {"orders": PoolJob(floor=3), "payments": PoolJob()}
    _, granted = heard_of(pool(5, jobs=jobs), memory, both(orders={"executors": 3}))
    assert [granted[job].executors for job in ("orders", "payments")] == [3, 2]
    _, granted = grant(pool(7, jobs=jobs), memory, both(orders={"executors": 3}, payments={"executors": 1}), NOW)
    assert (granted["payments"].executors, granted["payments"].codes) == (4, ("paced",))


@pytest.mark.parametrize(
    "stated",
    [
        {"frozen": True},
        {"jobs": {"orders": PoolJob(frozen=True), "payments": PoolJob()}},
        {"blackouts": (Blackout(begin="2026-03-02T17:00Z", end="2026-03-02T19:00Z", jobs=("orders",)),)},
    ],
)
def test_who_is_frozen_keeps_what_it_has(stated):
    _, granted = grant(pool(8, **stated), held(orders=2, payments=2), both(), NOW)
    assert granted["orders"].executors == 2
    assert (granted["orders"].reason, granted["orders"].codes) == ("pool shared: 2 kept, as it is frozen", ("frozen",))
    assert granted["payments"].executors == (2 if "frozen" in stated else 4)


def has(granted):
    return {job: one.executors for job, one in granted.items()}


def test_who_is_frozen_keeps_what_is_there_where_nothing_was_granted_yet():
    wants = both(orders={"running": 3, "executors": 1}, payments={"running": 1, "executors": 3})
    after, granted = grant(pool(4, frozen=True), PoolMemory(), wants, NOW)
    assert has(granted) == {"orders": 3, "payments": 1}
    assert after.held["orders"].executors == 3


def test_a_job_that_joins_while_replays_run_keeps_these_apart_under_a_freeze_and_loses_none_without():
    wants = both(orders={"running": 5, "executors": 2, "replay": 3}, payments={"executors": 1})
    for stated in (pool(6), pool(6, frozen=True)):
        after, granted = grant(stated, PoolMemory(), wants, NOW)
        assert [(one.executors, one.replay) for one in granted.values()] == [(2, 3), (1, 0)]
        assert after.held["orders"] == HeldGrant(2, (), 1, 3, 5)
    fewer = both(orders={"running": 5, "executors": 1, "replay": 3}, payments={"executors": 1})
    _, granted = grant(pool(6, frozen=True), PoolMemory(), fewer, NOW)  # its policy gives one up, and it is frozen
    assert (granted["orders"].executors, granted["orders"].replay) == (2, 3)


@pytest.mark.parametrize("stated", [{"cores": 4}, {"cores": 8, "quota": Quota(hourly_core_hours=2)}])
def test_a_freeze_stands_above_the_size_of_the_pool_and_its_quota_and_the_others_keep_their_least(stated):
    jobs = {"orders": PoolJob(frozen=True), "payments": PoolJob()}
    memory = replace(held(orders=5, payments=3), hour_s=2 * HOUR_S)
    wants = both(orders={"running": 5}, payments={"running": 3})
    _, granted = grant(pool(jobs=jobs, **stated), memory, wants, NOW)
    assert has(granted) == {"orders": 5, "payments": 1}


@pytest.mark.parametrize(("leaving", "told"), [
    ("a", "a has"), ("am", "a has"), ("ma", "a has"), ("m", "others have"), ("abc", "a, b, c have"),
    ("abcd", "a, b, c, 1 other have"), ("abcdmef", "a, b, c, 3 others have"), ("ambcd", "a, b, c, 1 other have"),
])  # fmt: skip
def test_of_many_jobs_that_have_to_give_up_executors_three_are_named(leaving, told):
    assert describe_wait("m", 2, dict.fromkeys(leaving)) == f"2 more once {told} given them up"


def test_nobody_is_raised_before_another_one_has_given_up_what_it_is_to_have():
    wants = both(orders={"running": 4}, payments={"late_s": (900.0, 600.0, 300.0, 100.0, 0.0)})
    after, granted = grant(pool(6), held(orders=4, payments=1), wants, NOW)
    assert has(granted) == {"orders": 2, "payments": 2}
    assert granted["payments"].reason == "pool shared: 2 more once orders has given them up"
    assert granted["payments"].codes == ("waits",)
    wants["orders"] = replace(wants["orders"], running=2, at=NOW + 5)
    _, granted = grant(pool(6), after, wants, NOW + 5)
    assert has(granted) == {"orders": 2, "payments": 4}


FAR_BEHIND = (900.0, 600.0, 300.0, 100.0, 0.0)


def cut():
    """What a pool remembers once `orders` was told at NOW to give up two of its four, and what was wanted then."""
    wants = both(orders={"running": 4}, payments={"late_s": FAR_BEHIND})
    return grant(pool(6), held(orders=4, payments=1), wants, NOW)[0], wants


def test_what_a_job_says_counts_from_its_cut_on_although_the_pool_was_divided_since():
    memory, wants = cut()
    for second in range(1, 5):  # each of its words is older than the division before
        said = replace(wants["orders"], at=NOW + second - 1.5, running=4 if second < 4 else 2)
        memory, granted = grant(pool(6), memory, {**wants, "orders": said}, NOW + second)
        assert has(granted) == {"orders": 2, "payments": 2 if second < 4 else 4}


def test_metrics_of_before_its_cut_do_not_tell_that_a_job_has_given_up_any_however_late_they_are_said():
    memory, wants = cut()
    stale = replace(wants["orders"], at=NOW + 4, running=2, seen_at=NOW - 1)  # then it had not started all four
    memory, granted = grant(pool(6), memory, {**wants, "orders": stale}, NOW + 5)
    assert has(granted) == {"orders": 2, "payments": 2}
    _, granted = grant(pool(6), memory, {**wants, "orders": replace(stale, seen_at=NOW + 3)}, NOW + 6)
    assert has(granted) == {"orders": 2, "payments": 4}


def test_a_cut_was_not_later_than_now_where_the_clock_was_set_back():
    memory, wants = cut()
    for second, many in ((0, 2), (1, 4)):
        said = {job: replace(one, at=NOW - 3600 + second) for job, one in wants.items()}
        said["orders"] = replace(said["orders"], running=2)
        memory, granted = grant(pool(6), memory, said, NOW - 3600 + second)
        assert has(granted) == {"orders": 2, "payments": many}


def test_who_falls_silent_before_it_gave_up_any_is_taken_to_have_them_still():
    wants = both(orders={"running": 5, "at": NOW - 31}, payments={"running": 1})
    _, granted = grant(pool(6), held(orders=2, payments=1), wants, NOW)
    assert granted["payments"].executors == 1
    memory = PoolMemory({"orders": HeldGrant(2, running=5), "payments": HeldGrant(1)}, NOW - 5)
    after, granted = grant(pool(6), memory, {"payments": want("payments")}, NOW)  # it has not spoken since a restart
    assert granted["payments"].executors == 1
    assert after.held["orders"] == HeldGrant(2, running=5)


def test_memory_that_a_silent_job_has_is_nobodys_although_it_is_all_there_is():
    jobs = {"orders": PoolJob(memory_gb=2), "payments": PoolJob(memory_gb=2)}
    memory = PoolMemory({"orders": HeldGrant(3, running=3), "payments": HeldGrant(1)}, NOW - 5)
    _, granted = grant(pool(24, jobs=jobs, memory_gb=8), memory, {"payments": want("payments")}, NOW)
    assert granted["payments"].executors == 1


def test_executors_of_replays_are_no_others_before_they_are_gone():
    memory = PoolMemory({"orders": HeldGrant(2, replay=3), "payments": HeldGrant(1)}, NOW - 5)
    wants = both(orders={"executors": 2, "running": 5, "replay": 3}, payments={"executors": 3})
    after, granted = grant(pool(6), memory, wants, NOW)
    assert [(one.executors, one.replay) for one in granted.values()] == [(2, 1), (1, 0)]
    wants["orders"] = replace(wants["orders"], running=3, at=NOW + 5)
    _, granted = grant(pool(6), after, wants, NOW + 5)
    assert [(one.executors, one.replay) for one in granted.values()] == [(2, 1), (3, 0)]


ASKED = st.tuples(st.integers(1, 6), st.integers(0, 3), st.sampled_from(["follows", "stays", "silent"]))


@given(st.lists(st.tuples(ASKED, ASKED, st.integers(1, 40)), min_size=1, max_size=12))
def test_what_is_granted_and_what_still_runs_have_room_together_whoever_follows(turns):
    memory, now, running, said = PoolMemory(), NOW, {"orders": 1, "payments": 1}, {}
    for *asked, waited in turns:
        now += waited
        for job, (many, replay, does) in zip(running, asked, strict=True):
            if does != "silent" or job not in said:
                said[job] = want(job, many, at=now, running=running[job], replay=replay)
        memory, granted = grant(pool(6), memory, said, now)
        assert sum(one.occupied for one in memory.held.values()) <= 6
        for job, (_, _, does) in zip(running, asked, strict=True):
            if does == "follows":
                running[job] = granted[job].executors + granted[job].replay
        assert sum(running.values()) <= 6


def test_after_a_blackout_it_is_granted_again():
    over = Blackout(begin="2026-03-02T16:00Z", end="2026-03-02T18:00Z")
    _, granted = grant(pool(8, blackouts=(over,)), held(orders=2, payments=2), both(), NOW)
    assert [one.executors for one in granted.values()] == [4, 4]


def test_who_is_not_heard_keeps_what_it_has():
    wants = both(orders={"at": NOW - 31, "executors": 1})
    _, granted = grant(pool(4), held(orders=3, payments=1), wants, NOW)
    assert [granted[job].executors for job in ("orders", "payments")] == [3, 1]
    assert granted["orders"].codes == ("silent",)


def test_what_was_granted_to_a_job_that_has_not_spoken_yet_is_given_to_nobody():
    memory = PoolMemory({"orders": HeldGrant(2, (), 2), "payments": HeldGrant(1)}, NOW - 5)
    after, granted = grant(pool(6), memory, {"payments": want("payments")}, NOW)
    assert granted["payments"].executors == 2  # of six cores four are those of the other
    assert after.held["orders"] == HeldGrant(2, (), 2, running=2)


def test_the_hour_ends_within_its_quota():
    stated = pool(8, quota=Quota(hourly_core_hours=4))
    memory = PoolMemory({"orders": HeldGrant(4), "payments": HeldGrant(4)}, NOW + 1795, hour_s=3 * 3600.0 - 40)
    wants = both(orders={"running": 4, "at": NOW + 1800}, payments={"running": 4, "at": NOW + 1800})
    after, granted = grant(stated, memory, wants, NOW + 1800)  # 3 of 4 core-hours are gone after half of the hour
    assert after.hour_s == 3 * 3600
    assert sum(one.executors for one in granted.values()) == 2
    assert all(one.codes[-1] == "quota" and "the quota leaves 2 of 8 cores" in one.reason for one in granted.values())


def test_a_quota_is_used_as_it_is_needed_and_its_floors_last_to_the_end():
    stated, memory, hour = pool(8, quota=Quota(hourly_core_hours=4)), PoolMemory(), NOW - NOW % HOUR_S
    running, most = dict.fromkeys(("orders", "payments"), 4), []
    for at in range(0, 3600, 5):
        wants = {job: want(job, at=hour + at, running=many) for job, many in running.items()}
        memory, granted = grant(stated, memory, wants, hour + at)
        running = has(granted)
        most.append(sum(running.values()))
    assert most[0] == 8 and most[-1] == 2
    assert most == sorted(most, reverse=True)
    assert 3.9 * HOUR_S < memory.hour_s <= 4 * HOUR_S


def test_a_quota_is_not_overspent_by_a_job_that_starts_late_and_is_all_used_where_it_does_not():
    stated, hour = pool(8, quota=Quota(hourly_core_hours=3)), NOW - NOW % HOUR_S
    for begins in (3000, math.inf):
        memory, running = PoolMemory(floors={"orders": 1, "payments": 1}), {"orders": 4}
        for at in range(0, 3600, 5):
            if at == begins:
                running["payments"] = 1
            wants = {job: want(job, at=hour + at, running=many) for job, many in running.items()}
            memory, granted = grant(stated, memory, wants, hour + at)
            running = has(granted)
        assert 2.9 * HOUR_S < memory.hour_s <= 3 * HOUR_S


def test_what_ran_while_nobody_divided_is_charged_to_those_too_that_have_not_spoken_since():
    memory = PoolMemory({"orders": HeldGrant(3, (), 2, 0, 3), "payments": HeldGrant(1, (), 1, 0, 1)}, NOW - 600)
    after, _ = grant(pool(9), memory, {"payments": want("payments", running=2)}, NOW)
    assert after.day_s == 600 * (3 * 2 + 2)


def test_a_new_hour_begins_with_nothing_taken_and_the_day_goes_on():
    memory = add_use(PoolMemory({}, NOW - 10, 500.0, 700.0), 4, NOW + 5)
    assert (memory.hour_s, memory.day_s) == (20.0, 760.0)
    assert cores_left(9, Quota(), memory, 2, NOW) == 9
    daily = Quota(daily_core_hours=12.5)  # six hours are left, for which two cores are kept back
    assert cores_left(9, daily, memory, 2, NOW) == pytest.approx(2 + (12.5 * 3600 - 760 - 2 * 6 * 3600) / SPENT_S)
    assert cores_left(9, Quota(daily_core_hours=0.5), memory, 2, NOW) == 2
    assert cores_left(9, Quota(daily_core_hours=24), memory, 2, NOW) == 9


def test_a_pool_that_will_be_too_small_says_when_how_large_it_should_be_and_who_goes_short():
    ahead = ((NOW + 300, 2), (NOW + 600, 5), (NOW + 900, 3), (NOW + 1200, 3))
    fewer = tuple((until, min(many, 3)) for until, many in ahead)
    wants = both(orders={"executors": 2, "ahead": ahead}, payments={"executors": 2, "ahead": fewer})
    claims = {job: JobClaim(PoolSize(1), 1, 2, weight, LATE) for job, weight in (("orders", 1.0), ("payments", 9.0))}
    found = find_shortage(PoolSize(6), claims, wants, NOW)
    assert found == (8, NOW + 300, NOW + 600, ("orders",), 0.0, 6)
    assert find_shortage(PoolSize(8), claims, wants, NOW) is None


def test_a_shortage_of_memory_is_one_and_what_a_quota_leaves_is_told_beside_the_size():
    jobs = {"orders": PoolJob(memory_gb=2), "payments": PoolJob(memory_gb=2)}
    stated = pool(24, jobs=jobs, memory_gb=8)
    found = expected_shortage(stated, held(orders=1, payments=1), both(), NOW)
    assert (found.cores, found.memory_gb, found.jobs) == (8, 16, ("orders", "payments"))
    assert "8 cores and 16 GB would be enough, it has 24, and 8 GB; orders" in describe_shortage(stated, found)
    stated = pool(24, quota=Quota(hourly_core_hours=2))
    spent = replace(held(orders=1, payments=1), hour_s=2 * HOUR_S)
    told = describe_shortage(stated, expected_shortage(stated, spent, both(), NOW))
    assert "8 cores would be enough, it has 24, of which its quota leaves 2; " in told


def test_a_forecast_that_has_ended_ends_nobodys_and_who_is_silent_needs_what_it_has():
    ahead = ((NOW + 300, 1), (NOW + 600, 4))
    wants = both(orders={"executors": 1, "ahead": ahead}, payments={"executors": 1, "ahead": ((NOW - 5, 9),)})
    memory = PoolMemory({"orders": HeldGrant(1), "payments": HeldGrant(1)}, NOW - 5)
    assert expected_shortage(pool(4), memory, wants, NOW).begin == NOW + 300
    del wants["payments"]
    memory = PoolMemory({"orders": HeldGrant(1), "payments": HeldGrant(2)}, NOW - 5)
    assert expected_shortage(pool(5), memory, wants, NOW).cores == 6


def test_its_memory_comes_back_from_json():
    memory = PoolMemory({"orders": HeldGrant(3, (NOW,), 2, 1, 4)}, NOW, 5.0, 6.0, {"orders": NOW - 9}, {"rides": 2})
    assert PoolMemory.from_json_values(asdict(memory)) == memory
    older = {"held": {"orders": [3, [NOW], 2]}, "at": NOW, "hour_s": 5.0, "day_s": 6.0}
    assert PoolMemory.from_json_values(older) == PoolMemory(
        {"orders": HeldGrant(3, (NOW,), 2)}, NOW, 5.0, 6.0, {"orders": NOW}
    )
    assert PoolMemory.from_json_values({**older, "at": None}).cut_at == {}


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 20)), min_size=1, max_size=12))
def test_it_never_gives_more_than_there_is_nor_changes_more_often_whatever_is_asked(asked):
    memory, now, changed = PoolMemory(), NOW, {"orders": [], "payments": []}
    for one, other, waited in asked:
        now += waited
        wants = both(orders={"executors": one, "at": now}, payments={"executors": other, "at": now})
        wants["payments"] = replace(wants["payments"], least=0)
        wants["orders"] = replace(wants["orders"], least=0)
        before = memory.held
        stated = pool(5, jobs={"orders": PoolJob(floor=0), "payments": PoolJob(floor=0)})
        memory, granted = grant(stated, memory, wants, now)
        assert sum(given.executors for given in granted.values()) <= 5
        for job in changed:
            if job in before and before[job].executors != granted[job].executors:
                changed[job].append(now)
    for times in changed.values():
        assert all(later - first >= WITHIN_S for first, later in zip(times, times[CHANGES:], strict=False))
