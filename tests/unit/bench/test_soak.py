"""Whether something grows, told from noise, from a beginning that is not yet warm, and from what was started again."""

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.bench.soak.held import Held, Holdings
from pipelines.bench.soak.measure import BOUNDED, DAYS, HANDLES, MEMORY, summarise_soak
from pipelines.bench.soak.slopes import BLOCKS, slope_of

HOUR = np.arange(0, 3600, 10.0)
DAY_S = 3600 / DAYS
FIRST_HANDLE_S, FIRST_MEMORY_S, LAST_HANDLE_S = HANDLES[0] * DAY_S, MEMORY[0] * DAY_S, HANDLES[1] * DAY_S


def test_the_slope_of_a_line_is_its_own_and_it_grows():
    found = slope_of(HOUR, 100 + 5 * HOUR / 3600)
    assert found.per_hour == pytest.approx(5) and found.low == pytest.approx(5) == found.high
    assert found.mean == pytest.approx(100 + 5 * HOUR.mean() / 3600) and found.grows


def test_what_stays_does_not_grow_nor_does_what_falls():
    assert slope_of(HOUR, np.full(len(HOUR), 7.0)) == (0, 0, 0, 7)
    assert not slope_of(HOUR, [7.0] * len(HOUR)).grows
    assert not slope_of(HOUR, 100 - HOUR / 60).grows


@given(st.integers(0, 10_000))
def test_a_heap_that_is_collected_now_and_then_does_not_grow_but_its_leak_does(seed):
    random = np.random.default_rng(seed)
    period = random.uniform(30, 200)
    heap = 300 + 80 * ((HOUR + random.uniform(0, period)) % period) / period + random.normal(0, 1, len(HOUR))
    assert slope_of(HOUR, heap + 200 * HOUR / 3600).grows
    assert slope_of(HOUR, heap - 200 * HOUR / 3600).high < 0


@pytest.mark.parametrize("least", [False, True])
def test_noise_alone_grows_as_seldom_as_was_said(least):
    random = np.random.default_rng(0)
    grew = sum(slope_of(HOUR, 300 + random.normal(0, 20, len(HOUR)), least).grows for _ in range(2000))
    assert grew <= 4  # one side of an interval that is sure to 0.9997: 0.3 of 2000


def test_the_least_of_each_stretch_sees_a_leak_that_garbage_hides_from_the_mean():
    random = np.random.default_rng(1)
    garbage = random.exponential(100, len(HOUR))
    leak = 300 + 60 * HOUR / 3600
    assert not slope_of(HOUR, leak + garbage).grows and slope_of(HOUR, leak + garbage, least=True).grows
    assert slope_of(HOUR, leak, least=True).per_hour == pytest.approx(60)


def test_what_would_go_unnoticed_is_told_of_the_part_whose_noise_hides_most():
    random = np.random.default_rng(2)
    noisy = [one._replace(files=50 + int(random.integers(0, 40))) for one in samples()]
    found = summarise_soak({"quiet": samples(), "noisy": noisy}, {}, 3600)
    files = found["series"]["noisy"]["files"]
    assert found["unnoticed"]["files"] == pytest.approx((files["high"] - files["low"]) / 2, abs=0.001) and files["low"]
    assert found["unnoticed"]["megabytes"] == found["unnoticed"]["threads"] == 0
    hidden = [one._replace(files=one.files + int(found["unnoticed"]["files"] * one.at_s / 3600 / 2)) for one in noisy]
    assert summarise_soak({"hidden": hidden}, {}, 3600)["growing"] == []


@pytest.mark.parametrize("times", [[], [1.0], [*range(BLOCKS), 500.0]])
def test_samples_that_do_not_reach_into_each_stretch_are_refused(times):
    with pytest.raises(ValueError, match="do not reach"):
        slope_of(times, [1.0] * len(times))


def samples(megabytes=lambda at: 300.0, pid=lambda at: 1, threads=20):
    return [Held(at, pid(at), megabytes(at), 50, threads) for at in HOUR]


def test_the_beginning_does_not_count_and_a_leak_is_named():
    held = {
        "driver": samples(lambda at: min(at, FIRST_MEMORY_S)),  # has come to its size before it counts
        "autoscaler": samples(lambda at: 300 + at / 100),
    }
    taken = {BOUNDED[0]: [(at, 12.0) for at in HOUR], "logs": [(at, at) for at in HOUR]}
    found = summarise_soak(held, taken, 3600)
    assert found["growing"] == ["autoscaler: megabytes"] and found["looked_at"] == 7 and found["growing_n"] == 1
    assert found["series"]["driver"]["megabytes"]["per_hour"] == 0
    assert found["series"]["autoscaler"]["megabytes"]["per_hour"] == pytest.approx(36)
    assert found["folders"]["logs"]["per_hour"] == pytest.approx(3600) and found["folders"]["logs"]["grows"]
    assert found["unmeasured"] == [] and found["unmeasured_n"] == 0


def test_a_checkpoint_that_grows_is_named_and_so_is_a_thread_now_and_then():
    held = {"serving": [one._replace(threads=20 + int(one.at_s // DAY_S)) for one in samples()]}
    taken = {BOUNDED[1]: [(at, at / 10) for at in HOUR]}
    assert summarise_soak(held, taken, 3600)["growing"] == ["serving: threads", BOUNDED[1]]


def test_what_swings_with_the_day_of_the_trace_does_not_grow():
    swing = samples(lambda at: 300 + 50 * np.sin(2 * np.pi * at / DAY_S))
    found = summarise_soak({"driver": swing}, {}, 3600)
    assert found["growing"] == []
    assert abs(found["series"]["driver"]["megabytes"]["per_hour"]) < 5


def test_a_part_that_was_seen_too_little_is_named_and_takes_no_other_with_it():
    gone = [one for one in samples() if one.at_s < 3000]
    again = samples(pid=lambda at: 1 if at < 2900 else 2)
    rare = samples()[::20]
    held = {"gone": gone, "again": again, "rare": rare, "never": [], "there": samples()}
    found = summarise_soak(held, {"none": []}, 3600)
    assert found["unmeasured"] == ["gone", "again", "rare", "never", "none"]
    assert {*found["series"]} == {"there"} and found["looked_at"] == 3


def test_handles_count_before_garbage_is_collected_and_memory_after():
    leak = [one._replace(files=50 + int(min(one.at_s, LAST_HANDLE_S))) for one in samples()]  # as they are closed then
    garbage = samples(lambda at: 300 + (at if at < LAST_HANDLE_S else 0.0))
    found = summarise_soak({"leak": leak, "garbage": garbage}, {}, 3600)
    assert found["growing"] == ["leak: files"]
    assert found["series"]["leak"]["files"]["mean"] == pytest.approx(50 + (FIRST_HANDLE_S + LAST_HANDLE_S) / 2, abs=5)


def test_the_process_counts_that_was_there_for_most_of_the_time():
    ended = FIRST_MEMORY_S + 50
    held = {"executor": samples(lambda at: 900.0 if at < ended else 300.0, lambda at: 1 if at < ended else 2)}
    found = summarise_soak(held, {}, 3600)
    assert found["growing"] == [] and found["series"]["executor"]["megabytes"]["mean"] == 300.0


def test_a_sample_tells_what_a_process_holds_and_nothing_of_a_part_that_is_gone(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(bytes(2_000_000))
    own = psutil.Process()

    def processes(part):
        return {"own": [own]}[part]  # of any other part nothing runs

    holdings = Holdings(("gone", "own"), processes, {"folder": tmp_path})
    for _ in range(3):
        holdings.sample()
    assert holdings.held["gone"] == []
    one = holdings.held["own"][-1]
    assert one.pid == own.pid and one.megabytes > 10 and one.files > 0 and one.threads > 0
    times = [at for at, *_ in holdings.held["own"]]
    assert len(times) == 3 and times == sorted(times)
    assert holdings.taken["folder"][-1][1] == pytest.approx(2.0, rel=0.02)
