"""Pools as the autoscaler divides them: jobs that say what they want, the driver that grants, and all that fails."""

import itertools
import json
import math
import os
import socket
import threading
from concurrent.futures import wait
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace

import pytest

from configs.bounds import HOUR_S
from configs.contract import Contract, Executors
from configs.pool import Veto
from configs.settings import load
from models.policy.live.evaluation import RESYNC_S
from models.policy.live.granted import with_grant
from models.policy.live.memory import Memory, fresh
from models.policy.live.recomputed import recompute_decision
from models.policy.live.standing import Standing
from models.policy.replays.kept import ReplayControl
from models.pool import divide
from models.pool.state import PoolState
from models.pool.wants import PoolMemory
from pipelines.kafka.broker import Record
from pipelines.kafka.connection import BrokerError
from pipelines.scale.pool import division, heard, telling
from pipelines.scale.pool.division import PoolDivision
from pipelines.scale.pool.grants import Grants, JobGrant, KeptGrants, grants_file, take_grant
from pipelines.scale.pool.heard import FORGOTTEN_S
from pipelines.scale.pool.veto import ask_veto
from pipelines.scale.processor import Scaler
from pipelines.watched import GONE_S
from tests.fakes.unlisted import unlisted
from tests.unit.policy.test_processor import NOW, metric, row
from tidecast.messages import PoolWant, decode_keyed, encode

JOBS = ("orders", "payments")
CONTRACTS = {job: Contract(job=job, executors=Executors(min=1, max=8)) for job in JOBS}
BOUNDS = CONTRACTS["orders"].executors
POOL = "name: shared\ncores: 6\njobs: {orders: {}, payments: {weight: 4}}\n"


class Topic:
    """The topic `wants`, in place of the broker."""

    def __init__(self):
        self.records, self.offset, self.fails = [], 0, []

    def send(self, key, value, at=math.inf):
        self.records.append(Record("wants", 0, len(self.records), key, value, at))

    def opened(self, start):
        self.offset = len(self.records) if start == "latest" else 0
        return self

    def seek_to_time(self, wall_time):
        if self.fails:
            raise self.fails.pop()
        self.offset = next((n for n, one in enumerate(self.records) if one.timestamp >= wall_time), len(self.records))

    def poll(self, wait_s):
        new, self.offset = self.records[self.offset :], len(self.records)
        return new


class Told:
    """The topic `pools`, in place of the broker: what was told of each pool, by name; refuses while `down`."""

    def __init__(self):
        self.of, self.tried, self.down = {}, 0, False

    def send_bytes(self, topic, key, value):
        self.tried += 1
        if self.down:
            raise BrokerError("no topic pools")
        assert topic == "pools"
        self.of.setdefault(key.decode(), []).append(decode_keyed(PoolState, key.decode(), value))

    def flush(self, timeout):
        pass


def test_an_executor_under_way_for_a_replay_stays_where_live_records_need_it():
    """Before the pool has granted them more; it serves them as one of their own would."""
    granted = {"pool": "shared", "executors": 3, "replay": 1, "reason": ""}
    more = "up 3 → 4: 90 rec/s", ["up"]
    said = "hold: 90 rec/s; pool shared: 4 until it is divided again"
    assert with_grant(4, 3, 4, *more, granted, 4) == (4, said, ["hold", "pool"])
    assert with_grant(3, 3, 4, "hold: 60 rec/s", ["hold"], granted, 3) == (4, "hold: 60 rec/s", ["hold"])
    assert with_grant(4, 3, 6, *more, granted, 4)[0] == 4
    assert with_grant(4, 3, 4, *more, {**granted, "replay": 0}, 4)[0] == 3
    for standing in (None, 3):  # none is under way: it is not started before it is granted
        assert with_grant(4, 3, 4, *more, granted, standing)[0] == 3


class Site:
    """Two jobs, their pool and its division, a second at a time."""

    def __init__(self, tmp_path, monkeypatch, pool=POOL):
        self.settings = load(contracts=str(tmp_path / "contracts"))
        self.file = self.settings.pools_dir / "shared.yaml"
        self.file.parent.mkdir()
        self.file.write_text(pool)
        os.utime(self.file, (0, 0))  # else it is new, and read at every look
        self.topic, self.now, self.lines, self.told = Topic(), NOW, [], Told()
        monkeypatch.setattr(telling, "Publisher", lambda kafka, **options: self.told)
        monkeypatch.setattr(heard, "Follower", lambda kafka, topics, start: self.topic.opened(start))
        self.grants = Grants(grants_file(tmp_path / "query"))
        self.start()
        self.kept, self.executors = dict.fromkeys(JOBS), dict.fromkeys(JOBS, 1)
        self.decided = {job: [] for job in JOBS}
        self.lines += self.division.tick(self.now)

    def start(self):
        self.division = PoolDivision(self.settings, lambda: CONTRACTS, self.grants)

    def second(self, mode="act", divide=True, **rps):
        self.now += 1
        for job, rate in rps.items():
            memory = None if self.kept[job] is None else Memory.from_json(self.kept[job])
            sample = metric(
                job=job,
                time=self.now - 1,
                wall_time=self.now,
                arrival_rps=rate,
                executors=self.executors[job],
                mode=mode,
            )
            scaler = Scaler(job, CONTRACTS[job], "reactive", "act", granted=self.grants.of(job))
            memory, said = scaler.step(memory, [row("metrics", sample)], self.now, self.now)
            self.kept[job] = memory.to_json()
            for topic, key, message in said:
                if topic == "wants":
                    self.topic.send(key, encode(message), self.now)
                elif topic == "decisions":
                    self.decided[job].append(message)
                    self.executors[job] = message.executors
        if divide:
            self.lines += self.division.tick(self.now)
            wait([one.answer for one in self.division.hooks.asked.values()])

    def seconds(self, many, **rps):
        for _ in range(many):
            self.second(**rps)
            assert sum(self.executors.values()) <= 6


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def check_log(site):
    """What was logged of each decision tells it again."""
    contracts = {contract.hash: contract for contract in CONTRACTS.values()}
    for decision in site.decided["orders"] + site.decided["payments"]:
        said = {"policy": decision.policy, "inputs": json.loads(json.dumps(decision.inputs))}
        assert recompute_decision(said, contracts) == (decision.executors, decision.reason, decision.codes)


def test_the_dearer_one_is_served_at_the_peak_who_yields_says_it_once_and_a_restart_takes_nothing_from_the_silent(site):
    site.seconds(30, orders=300.0, payments=20.0)
    calm = dict(site.executors)
    assert calm["orders"] > calm["payments"]
    site.seconds(120, orders=300.0, payments=900.0)
    assert site.executors == {"orders": 2, "payments": 4}
    last = site.decided["orders"][-1]
    assert "pool shared: yields" in last.reason
    assert "a late second of payments costs 4 times as much" in last.reason
    assert last.codes[-1] == "pool"
    before = len(site.decided["orders"])
    site.seconds(60, orders=300.0, payments=900.0)
    last = site.decided["orders"][-1]
    assert last.codes[0] == "hold" and last.codes[-1] == "pool" and last.reason.startswith("hold: 300 rec/s")
    assert len(site.decided["orders"]) - before <= 1
    check_log(site)

    has = site.grants.of("payments").executors
    site.start()
    site.seconds(30, orders=900.0)
    assert site.grants.of("payments").executors == has
    assert site.grants.of("orders").executors <= 6 - has


def test_a_steady_load_raises_a_job_once_and_what_is_not_divided_yet_is_said(site):
    site.seconds(20, orders=300.0, payments=20.0)
    decided = [(one.executors, one.codes[0]) for one in site.decided["orders"]]
    assert decided[:2] == [(1, "hold"), (4, "up")] and {executors for executors, _ in decided[1:]} == {4}
    assert site.decided["orders"][0].reason.endswith("; pool shared: 1 until it is divided again")


def test_a_raise_that_does_not_come_is_decided_again_as_seldom_as_outside_a_pool(site):
    for _ in range(120):
        site.second(orders=300.0, payments=20.0)
        site.executors["orders"] = 1  # nothing comes
    decided = site.decided["orders"]
    ups = [one.wall_time for one in decided if one.codes[0] == "up"]
    assert {one.executors for one in decided if one.wall_time >= ups[0]} == {4}
    assert len(ups) > 2 and all(later - up > RESYNC_S for up, later in itertools.pairwise(ups))
    check_log(site)


def test_a_grant_of_what_nobody_asks_for_any_more_starts_no_executor_and_lowers_none():
    seen = SimpleNamespace(target=2, executors=2)
    before = replace(fresh(CONTRACTS["orders"]), target=2, changed_at=NOW - 60, raised_at=NOW - 90)
    asks_two = replace(before, target=2)
    for granted, has in ((4, 2), (2, 2), (1, 1), (None, 2)):
        memory, told = take_grant(before, asks_two, seen, JobGrant("shared", granted), BOUNDS, NOW)
        assert (memory.target, told["executors"]) == (has, has)
        assert memory.changed_at == (NOW if has != 2 else NOW - 60) and memory.raised_at == NOW - 90
    asks_three = replace(before, target=3, changed_at=NOW, raised_at=NOW)
    memory, _ = take_grant(before, asks_three, seen, JobGrant("shared", 2), BOUNDS, NOW)
    assert (memory.target, memory.raised_at) == (2, NOW - 90), "what is asked for in vain is no raise"
    memory, told = take_grant(before, asks_three, seen, JobGrant("shared", 4), BOUNDS, NOW)
    assert (memory.target, memory.changed_at, memory.raised_at) == (3, NOW, NOW)
    given_up = replace(before, target=4)  # its executors never came, and the policy was shown the two that are there
    memory, told = take_grant(given_up, asks_two, seen, JobGrant("shared", 4), BOUNDS, NOW)
    assert (memory.target, told["executors"], memory.changed_at) == (2, 2, NOW - 60)


def test_a_grant_of_executors_that_run_for_a_replay_already_is_no_start():
    ran = {"executors": 4, "standing": Standing("orders-1", NOW - 60, 4, "")}
    before = replace(fresh(CONTRACTS["orders"]), target=2, changed_at=NOW - 60, raised_at=NOW - 90, **ran)
    for wants, raised_at in ((4, NOW - 90), (5, NOW)):
        asks = replace(before, target=wants, changed_at=NOW, raised_at=raised_at)
        granted, seen = JobGrant("shared", wants, 2), SimpleNamespace(target=2, executors=2)
        memory, _ = take_grant(before, asks, seen, granted, BOUNDS, NOW)
        assert (memory.target, memory.changed_at, memory.raised_at) == (wants, NOW, raised_at)


def test_a_job_of_which_nothing_was_granted_yet_keeps_the_executors_of_its_replays_within_its_bounds():
    kept = replace(fresh(CONTRACTS["orders"]), target=2, executors=5)
    seen = SimpleNamespace(target=2, executors=2)
    for most, replay in ((8, 3), (4, 2)):
        memory, told = take_grant(kept, kept, seen, JobGrant("shared"), Executors(min=1, max=most), NOW)
        assert (memory.target, told["replay"]) == (2, replay)


def test_what_is_decided_is_within_the_contract_whatever_was_granted():
    seen, before = SimpleNamespace(target=5, executors=5), replace(fresh(CONTRACTS["orders"]), target=5)
    for granted, bounds, has in (
        (JobGrant("shared", 5, 4), Executors(min=1, max=2), (2, 0)),
        (JobGrant("shared", 0), Executors(min=2, max=4), (2, 0)),
        (JobGrant("shared", 3, 4), Executors(min=1, max=5), (3, 2)),
    ):
        memory, told = take_grant(before, before, seen, granted, bounds, NOW)
        assert (memory.target, told["replay"]) == has == (told["executors"], told["replay"])


@pytest.mark.parametrize(
    ("granted", "mode", "executors"),
    [
        (JobGrant("shared", 1, 0), "act", 1),
        (JobGrant("shared", 1, 1), "act", 2),
        (JobGrant("shared", 1, 4), "act", 3),
        (JobGrant("shared"), "act", None),  # nothing was granted yet: it keeps what is there
        (JobGrant("shared", 0, 2), "act", 2),  # one was taken off its live records since: it stays, and counts
        (JobGrant("shared", 1, 0), "observe", 3),  # nobody follows
        (None, "act", 3),
    ],
)
@pytest.mark.parametrize("running", [1, 3])
def test_without_metrics_no_executor_for_a_replay_is_asked_for_beyond_the_grant(granted, mode, executors, running):
    asked = ReplayControl({"fix": {"state": "running", "executors": 2, "executors_soon": 2}})
    kept = fresh(CONTRACTS["orders"])
    silent = replace(kept, target=1, executors=running, metric_at=NOW, mode=mode, replay=asked)
    decision = Scaler("orders", CONTRACTS["orders"], "reactive", "act", granted=granted).hold_without_metrics(
        silent, NOW + 60
    )
    assert (decision.executors, decision.codes) == (executors or running, ["hold", "no_metrics"])


def test_the_first_decision_of_a_job_that_keeps_what_it_has_is_no_change():
    first = fresh(CONTRACTS["orders"])
    asks = replace(first, target=4, changed_at=NOW)
    memory, _ = take_grant(first, asks, SimpleNamespace(target=1, executors=1), JobGrant("shared"), BOUNDS, NOW)
    assert (memory.target, memory.changed_at) == (1, None)


def test_nothing_is_granted_before_the_pool_is_divided(site):
    for _ in range(5):
        site.second(orders=900.0, divide=False)
    assert site.executors["orders"] == 1
    assert site.grants.of("orders") == JobGrant("shared")


def test_who_is_not_scaled_keeps_what_it_has_and_is_told_what_its_policy_would_do(site):
    site.executors["orders"] = 3
    for _ in range(40):
        site.second(mode="observe", orders=10.0)
        site.executors["orders"] = 3  # nobody follows
        site.second(payments=900.0)
    assert site.executors["payments"] == 3
    assert site.decided["orders"][-1].executors == 1


def test_what_was_granted_stands_over_a_folder_that_is_gone_a_restart_and_a_file_that_has_become_wrong(site):
    site.seconds(40, orders=300.0, payments=900.0)
    before, there = site.grants.all().jobs, site.file.parent
    there.rename(there.with_name("away"))
    lines = [line for at in range(1, 40) for line in site.division.tick(site.now + at)]
    (line,) = [line for line in lines if line.startswith("pool")]
    assert line == f"pools: {there} is no folder; what was granted stays"
    assert {job: one.executors for job, one in site.grants.all().jobs.items()} == {
        job: one.executors for job, one in before.items()
    }
    there.with_name("away").rename(there)
    assert "pools: over" in site.division.tick(site.now + 41)
    site.seconds(5, orders=300.0, payments=900.0)

    before = site.grants.all().jobs
    site.file.write_text(POOL.replace("cores: 6", "cores: many"))
    assert "Until then the last one counts." in site.division.tick(site.now + 1)[0]
    site.start()
    (line,) = site.division.tick(site.now + 2)
    assert line.startswith("pool shared: shared.yaml, line 2: cores='many'")
    assert line.endswith("Until then what was granted stays.")
    assert site.grants.all().jobs == before
    site.file.unlink()
    site.division.tick(site.now + 3)
    assert site.grants.all().jobs == before
    assert "pool shared: its file is gone" in site.division.tick(site.now + 3 + GONE_S)[0]
    assert site.grants.of("orders") is None


def test_what_was_granted_stands_while_the_folder_may_not_be_listed(site, monkeypatch):
    site.seconds(40, orders=300.0, payments=900.0)
    before, folder = {job: site.grants.of(job).executors for job in JOBS}, site.file.parent
    cannot = f"pools: {folder} cannot be listed: Permission denied; what was granted stays"
    with unlisted(monkeypatch, folder):
        lines = [line for at in range(1, 40) for line in site.division.tick(site.now + at)]
        site.start()
        assert cannot in site.division.tick(site.now + 40)
    assert [line for line in lines if line.startswith("pool")] == [cannot]
    assert {job: site.grants.of(job).executors for job in JOBS} == before
    assert "pools: over" in site.division.tick(site.now + 41)


def test_what_is_no_want_or_another_jobs_or_unsigned_is_not_taken(site, tmp_path, capsys):
    keys = tmp_path / "keys.yaml"
    keys.write_text("payments: 0123456789abcdef0123456789abcdef\n")
    site.settings = load(contracts=str(tmp_path / "contracts"), kafka={"signing_keys": str(keys)})
    site.start()
    want = PoolWant("orders", NOW, NOW, 1.0, "shared", 4, 1, 1, 1, [9.0, 1.0, 0.0], 1.0, [], [])
    forged = PoolWant("payments", NOW, NOW, 1.0, "shared", 8, 1, 1, 1, [9.0, 1.0, 0.0], 1.0, [], [])
    elsewhere = PoolWant("orders", NOW, NOW + 1, 1.0, "other", 1, 1, 1, 1, [0.0], 1.0, [], [])
    for key, value in (
        ("orders", encode(want)), ("payments", encode(forged)), ("orders", encode(elsewhere)), ("orders", b"{"),
        ("payments", encode(want)),
    ):  # fmt: skip
        site.topic.send(key, value)
    site.division.tick(NOW + 1)
    site.division.tick(NOW + 12)
    assert (site.grants.of("orders").executors, site.grants.of("payments").executors) == (4, None)
    said = capsys.readouterr().out
    assert said.count("wants of payments: not taken") == 2
    assert said.count("wants of orders: not taken") == 1


def test_a_job_that_is_gone_leaves_its_executors_to_the_others_after_a_while(site):
    site.seconds(60, orders=300.0, payments=900.0)
    site.now += FORGOTTEN_S + 1
    site.executors["payments"] = 0
    site.seconds(70, orders=900.0)
    assert site.executors["orders"] == 6
    assert site.grants.of("payments") == JobGrant("shared"), "if it comes back it has what is there until it is divided"


def test_an_old_want_that_is_sent_again_keeps_no_job_in_the_pool_that_has_ended(site):
    site.seconds(60, orders=300.0, payments=900.0)
    old = next(each for each in reversed(site.topic.records) if each.key == "payments")
    site.executors["payments"] = 0
    for _ in range(3):
        site.now += FORGOTTEN_S - 60
        site.topic.send("payments", old.value)
        site.seconds(5, orders=900.0)
    site.seconds(70, orders=900.0)
    assert site.executors["orders"] == 6 and site.grants.of("payments") == JobGrant("shared")


def send(site, job, at, executors=4, running=1, pool="shared", seen_at=None):
    late = [9.0, 6.0, 4.0, 2.0, 1.0, 0.0]
    said = PoolWant(job, at, at, 1.0, pool, executors, running, 1, 1, late, 1.0, [], [], seen_at=seen_at)
    site.topic.send(job, encode(said), at)


def test_an_agent_that_never_hears_of_its_cut_keeps_the_others_from_what_it_has(site):
    send(site, "orders", NOW, 5, running=5)
    send(site, "payments", NOW, 1)
    site.division.tick(NOW + 1)
    assert site.grants.of("orders").executors == 5
    for at in range(2, 90):
        send(site, "payments", NOW + at)
        if at == 2:
            send(site, "orders", NOW + at, 2, running=5)
        site.division.tick(NOW + at)
        assert site.grants.of("payments").executors == 1


def test_an_agent_with_narrower_bounds_has_what_it_has_and_the_others_the_rest(site):
    for at in range(90):
        send(site, "orders", NOW + at, 3, running=3)
        send(site, "payments", NOW + at, running=site.grants.of("payments").executors or 1)
        site.division.tick(NOW + at)
    assert site.grants.of("payments").executors == 3
    assert "once orders has given them up" in site.grants.of("payments").reason


def test_a_quota_is_kept_back_for_the_floor_of_a_job_that_has_not_started(tmp_path, monkeypatch):
    site = Site(tmp_path, monkeypatch, POOL.replace("{weight: 4}", "{floor: 3}") + "quota: {hourly_core_hours: 4}\n")
    to_come = HOUR_S - NOW % HOUR_S
    site.grants.write(KeptGrants({}, {"shared": PoolMemory({}, NOW, 4 * HOUR_S - 4 * to_come)}))
    for at in range(1, 20):
        send(site, "orders", NOW + at, 5)
        site.division.tick(NOW + at)
    last = site.told.of["shared"][-1]
    assert last.state == "divided" and 4 <= last.usable < 5, "three for it, one for orders, and what was not used"


def test_a_want_tells_of_when_its_metrics_have_the_executors_and_never_of_later_than_it_was_said(site):
    for measured, seen_at in ((NOW + 1, NOW + 1), (NOW + 4, NOW + 2)):
        sample = metric(job="orders", time=NOW, wall_time=measured, arrival_rps=300.0, executors=1)
        scaler = Scaler("orders", CONTRACTS["orders"], "reactive", "act", granted=site.grants.of("orders"))
        _, said = scaler.step(None, [row("metrics", sample)], NOW + 2, NOW + 2)
        (want,) = [message for topic, _, message in said if topic == "wants"]
        assert (want.wall_time, want.seen_at) == (NOW + 2, seen_at)


def test_what_was_seen_before_a_cut_gives_nobody_executors_that_still_run(site):
    site.file.write_text(POOL.replace("{weight: 4}", "{weight: 4, floor: 3}"))
    for at in range(1, 12):
        send(site, "orders", NOW + at, 4, running=4)
        send(site, "payments", NOW + at, 1)
        site.division.tick(NOW + at)
    for at in range(12, 20):
        send(site, "orders", NOW + at, 4, running=3, seen_at=NOW + min(at - 5, 11))
        send(site, "payments", NOW + at, 3)
        site.division.tick(NOW + at)
        assert (site.grants.of("orders").executors, site.grants.of("payments").executors) == (3, 2)
    send(site, "orders", NOW + 20, 4, running=3, seen_at=NOW + 19)
    send(site, "payments", NOW + 20, 3)
    site.division.tick(NOW + 20)
    assert site.grants.of("payments").executors == 3


def test_a_job_that_is_added_has_time_to_speak_before_anything_is_given_away(site):
    for at in range(20):
        send(site, "orders", NOW + at, 1)
        send(site, "payments", NOW + at, 1)
        site.division.tick(NOW + at)
    site.file.write_text(POOL.replace("payments:", "rides: {}, payments:"))
    CONTRACTS["rides"] = Contract(job="rides", executors=Executors(min=1, max=8))
    try:
        for at in range(20, 35):
            send(site, "payments", NOW + at, 4, running=site.grants.of("payments").executors)
            site.division.tick(NOW + at)
            assert site.grants.of("payments").executors == (1 if at < 30 else 4)
    finally:
        del CONTRACTS["rides"]


def test_a_file_that_is_away_for_a_moment_is_not_gone_and_one_that_comes_back_knows_its_quota(site):
    site.seconds(40, orders=300.0, payments=900.0)
    used = site.grants.all().memories["shared"].day_s
    text = site.file.read_text()
    site.file.unlink()
    site.division.tick(site.now + 1)
    assert site.grants.of("orders").executors is not None
    site.file.write_text(text)
    site.division.tick(site.now + 2)
    assert site.grants.all().memories["shared"].held
    site.file.unlink()
    for at in (3, 14, 15):
        site.division.tick(site.now + at)
    assert site.grants.of("orders") is None
    kept = site.grants.all().memories["shared"]
    assert kept.day_s >= used > 0 and not kept.held


def test_a_job_that_moves_is_in_one_pool_although_the_first_ones_file_is_wrong(site):
    site.file.write_text("name: shared\ncores: many\njobs: {payments: {}}\n")
    (site.file.parent / "other.yaml").write_text("name: other\ncores: 3\njobs: {orders: {}}\n")
    for at in range(1, 20):
        send(site, "orders", NOW + at, pool="other")
        send(site, "payments", NOW + at)
        site.division.tick(NOW + at)
    assert site.grants.of("orders")[:2] == ("other", 3)
    memories = site.grants.all().memories
    assert ({*memories["shared"].held}, {*memories["other"].held}) == ({"payments"}, {"orders"})


def test_a_clock_that_is_set_back_stops_no_division(site):
    for at in range(12):
        send(site, "orders", NOW + at, 1)
        send(site, "payments", NOW + at, 1)
        site.division.tick(NOW + at)
    back = NOW - 3600
    for at in range(12):
        send(site, "orders", back + at, 3)
        send(site, "payments", back + at, 1)
        site.division.tick(back + at)
    assert site.grants.of("orders").executors == 3
    for at in range(12, int(FORGOTTEN_S) + 20, 5):
        send(site, "payments", back + at, 1)
        site.division.tick(back + at)
    assert site.grants.of("orders") == JobGrant("shared"), "it is forgotten ten minutes after it spoke last"


def test_how_a_pool_stands_is_told_on_where_the_clock_is_set_back_also_after_a_broker_that_refused(site):
    site.told.down = True
    for at in range(3):
        send(site, "orders", NOW + at, 1)
        send(site, "payments", NOW + at, 1)
        site.division.tick(NOW + at)
    site.told.down, back = False, NOW - 3600
    for at in range(30):
        site.division.tick(back + at)
    assert [one.wall_time - back for one in site.told.of["shared"]][-1] >= 20


def test_what_was_said_before_a_start_is_not_heard_as_of_now_where_the_broker_fails_at_first(site):
    send(site, "orders", NOW - 600, 3)
    site.topic.fails = [BrokerError("a time-out")]
    site.start()
    with pytest.raises(BrokerError):
        site.division.tick(NOW)
    site.division.tick(NOW + 1)
    assert "orders" not in site.division._heard._heard


def test_a_pool_that_cannot_be_divided_takes_nothing_from_another(site, monkeypatch):
    site.file.write_text("name: shared\ncores: 3\njobs: {orders: {}}\n")
    (site.file.parent / "other.yaml").write_text("name: other\ncores: 3\njobs: {payments: {}}\n")

    def fails(pool, *args):
        if pool.name == "other":
            raise ArithmeticError("no such sum")
        return divide.grant(pool, *args)

    monkeypatch.setattr(division, "grant", fails)
    lines = []
    for at in range(1, 9):
        send(site, "orders", NOW + at)
        send(site, "payments", NOW + at, pool="other")
        lines += site.division.tick(NOW + at)
    assert site.grants.of("orders").executors == 3
    assert lines.count("division of other: ArithmeticError: no such sum; what was granted stands") == 1


def test_keys_that_are_no_members_leave_nothing_behind(site, capsys):
    for at in range(50):
        site.topic.send(f"junk{at}", b"{")
    site.division.tick(NOW + 1)
    assert "junk" not in capsys.readouterr().out
    assert not [about for about in site.division._said._said if "junk" in about]


def test_how_a_pool_stands_is_told_as_it_was_granted_and_that_it_is_too_small_once_and_when_that_is_over(site):
    assert site.told.of["shared"][-1].state == "waits", "before anybody has spoken"
    site.seconds(100, orders=900.0, payments=900.0)
    state = site.told.of["shared"][-1]
    assert (state.state, state.cores, state.usable, state.problem) == ("divided", 6, 6.0, "")
    assert state.enough_cores > 6 and state.short_from <= site.now and "orders" in state.short_jobs
    for share in state.jobs:
        kept = site.grants.of(share.job)
        assert (share.granted, share.reason) == (kept.executors, kept.reason)
        assert share.wanted > share.granted or not share.reason
    assert [(share.job, share.weight) for share in state.jobs] == [("orders", 1.0), ("payments", 4.0)]
    assert "yields" in next(share for share in state.jobs if share.job == "orders").codes
    (small,) = [line for line in site.lines if line.startswith("size of shared")]
    assert "cores would be enough, it has 6" in small
    site.seconds(90, orders=20.0, payments=20.0)
    assert site.lines[-1] == "size of shared: over"


def test_what_does_not_change_is_told_and_written_every_few_seconds_and_what_is_granted_at_once(site):
    site.seconds(60, orders=20.0, payments=20.0)
    before, first, written = len(site.told.of["shared"]), site.grants.all().memories["shared"], set()
    for _ in range(50):
        site.second(orders=20.0, payments=20.0)
        written.add(site.grants.file.stat().st_mtime_ns)
    assert 9 <= len(site.told.of["shared"]) - before <= 11 and 9 <= len(written) <= 12
    last = site.grants.all().memories["shared"]
    assert last.at > site.now - 6 and last.day_s - first.day_s == pytest.approx(2 * (last.at - first.at))
    had = {job: site.grants.of(job).executors for job in JOBS}
    while {job: site.grants.of(job).executors for job in JOBS} == had:
        site.second(orders=900.0, payments=20.0)
    assert site.told.of["shared"][-1].wall_time == site.now


def test_a_wrong_file_a_frozen_job_a_blackout_and_a_pool_that_is_gone_are_told(site):
    blackouts = "blackouts: [{begin: '1970-01-01T00:00Z', end: '2000-01-01T00:00Z', jobs: [payments]}]\n"
    site.file.write_text(
        POOL.replace("orders: {}", "orders: {frozen: true}") + blackouts + "quota: {daily_core_hours: 99}\n"
    )
    site.seconds(12, orders=900.0, payments=20.0)
    state = site.told.of["shared"][-1]
    assert [share.frozen for share in state.jobs] == ["frozen", "blackout"]
    assert (state.daily_core_hours, state.day_core_s > 0, state.usable < 6) == (99.0, True, False)
    assert state.blackouts == [[0.0, 946684800.0, ["payments"]]]
    site.file.write_text("name: shared\ncores: many\n")
    site.seconds(12, orders=900.0, payments=20.0)
    assert "cores='many'" in site.told.of["shared"][-1].problem
    site.start()
    site.seconds(1, orders=900.0)
    assert site.told.of["shared"][-1].state == "wrong"
    site.file.unlink()
    site.seconds(12, orders=20.0)
    assert site.told.of["shared"][-1].state == "gone"


@pytest.mark.parametrize("name", ["my pool", os.fsdecode(b"\xff")])
def test_a_file_whose_name_no_pool_may_have_is_said_to_be_wrong_and_the_others_are_told(site, name):
    site.file.with_name(f"{name}.yaml").write_text("[]\n")
    site.start()
    site.seconds(12, orders=900.0, payments=20.0)
    assert [line for line in site.lines if line.startswith(f"pool {name}: {name}.yaml, line 1: a list is not")]
    assert [*site.told.of] == ["shared"] and site.told.of["shared"][-1].wall_time > site.now - 6


def test_a_broker_that_does_not_take_it_holds_up_no_division_and_is_asked_seldom(site):
    site.told.down = True
    site.seconds(60, orders=300.0, payments=900.0)
    assert site.grants.of("payments").executors == 4
    assert [line for line in site.lines if "topic pools" in line] == [
        "topic pools: not told how pools stand: no topic pools"
    ]
    assert site.told.tried <= 8
    site.told.down = False
    site.seconds(20, orders=300.0, payments=900.0)
    assert site.lines[-1] == "topic pools: over" and site.told.of["shared"][-1].wall_time > site.now - 6


@pytest.fixture
def hook():
    """A hook that answers what it is told to; None: it hangs until it is released."""

    class Answer(BaseHTTPRequestHandler):
        status, asked, release = 204, [], threading.Event()

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.asked.append(json.loads(body))
            if self.status is None and not self.release.wait(5):
                return
            self.send_response(self.status)
            self.send_header("Location", "http://127.0.0.1:9/")
            self.end_headers()

        def log_message(self, *said):
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    Answer.port = server.server_port
    yield Answer
    Answer.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (403, "its hook at 127.0.0.1 forbids it; nothing changes"),
        (None, "does not answer within 0.3 s"),
    ],
)
def test_a_hook_that_forbids_fails_or_hangs_changes_nothing(tmp_path, monkeypatch, hook, status, told):
    veto = f"veto: {{url: 'http://127.0.0.1:{hook.port}/s3cret', timeout_s: 0.3}}\n"
    site = Site(tmp_path, monkeypatch, POOL + veto)
    site.seconds(3, orders=20.0, payments=20.0)
    before = dict(site.executors)
    hook.status = status
    site.seconds(25, orders=900.0, payments=900.0)
    assert site.executors == before
    *_, asked, vetoed = (
        one for one, _ in itertools.groupby((one.state, one.problem) for one in site.told.of["shared"])
    )
    assert asked == ("asked", "") and vetoed[0] == "vetoed" and told in vetoed[1]
    (line,) = [line for line in site.lines if line.startswith("veto of shared")]
    assert told in line
    assert "s3cret" not in line
    assert len(hook.asked) <= 4, "who has forbidden it is asked again after a while only"
    hook.status = 204
    hook.release.set()
    site.seconds(25, orders=900.0, payments=900.0)
    assert sum(site.executors.values()) == 6
    assert site.lines.count("veto of shared: over") == 1, "a later one is told again"
    (change,) = [one for one in hook.asked[-1]["changes"] if one["job"] == "payments"]
    assert change["executors"]["after"] > change["executors"]["before"]


def test_a_hook_is_not_asked_about_a_job_that_joins_with_replays_and_is_to_keep_what_it_has(
    tmp_path, monkeypatch, hook
):
    veto = f"veto: {{url: 'http://127.0.0.1:{hook.port}/'}}\n"
    site = Site(tmp_path, monkeypatch, "name: shared\ncores: 6\njobs: {orders: {}}\n" + veto)
    said = PoolWant("orders", NOW, NOW, 1.0, "shared", 2, 5, 1, 1, [9.0, 1.0, 0.0], 1.0, [], [], 3)
    site.topic.send("orders", encode(said), NOW)
    site.division.tick(NOW + 1)
    assert not site.division.hooks.asked and site.grants.of("orders")[:3] == ("shared", 2, 3)


def test_a_cut_that_a_hook_was_asked_about_counts_from_its_answer_on(tmp_path, monkeypatch, hook):
    veto = f"veto: {{url: 'http://127.0.0.1:{hook.port}/', timeout_s: 10}}\n"
    site = Site(tmp_path, monkeypatch, POOL.replace("{weight: 4}", "{weight: 4, floor: 3}") + veto)

    def tick(at, running, asked):
        send(site, "orders", NOW + at, 4, running=running)
        send(site, "payments", NOW + at, asked)
        site.division.tick(NOW + at)
        return [one.answer for one in site.division.hooks.asked.values()]

    for at in range(1, 12):
        wait(tick(at, 1, 1))
    assert site.grants.of("orders").executors == 4
    hook.status = None
    (answer,) = tick(12, 3, 3)  # its fourth starts meanwhile
    tick(13, 3, 3)
    hook.status = 204
    hook.release.set()
    wait([answer])
    assert tick(14, 3, 3) == [], "nothing more to ask: the fourth may be there"
    assert [site.grants.of(job).executors for job in JOBS] == [3, 2]


@pytest.mark.parametrize("status", [500, 302])
def test_a_hook_that_answers_otherwise_forbids(hook, status):
    hook.status = status
    veto = Veto(url=f"http://127.0.0.1:{hook.port}/")
    assert ask_veto(veto, "shared", {}) == (
        f"its hook at 127.0.0.1 answers {status} and neither 2xx (may) nor 403 (may not); nothing changes"
    )
    assert len(hook.asked) == 1, "no redirect is followed"


def test_a_hook_that_trickles_has_not_answered_in_time():
    server = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def trickle():
        there, _ = server.accept()
        with there, suppress(OSError):
            for one in b"HTTP/1.1 204 No Content\r\n" + b"X-More: 1\r\n" * 100:
                if ended.wait(0.05):
                    break
                there.sendall(bytes([one]))

    thread = threading.Thread(target=trickle)
    thread.start()
    veto = Veto(url=f"http://127.0.0.1:{server.getsockname()[1]}/", timeout_s=0.4)
    assert "does not answer within 0.4 s" in ask_veto(veto, "shared", {})
    thread.join(20)  # it was hung up on, or it would trickle for a minute
    assert not thread.is_alive()
    ended.set()
    server.close()


def test_a_hook_that_is_not_there_changes_nothing(tmp_path, monkeypatch):
    site = Site(tmp_path, monkeypatch, POOL + "veto: {url: 'http://127.0.0.1:9/'}\n")
    site.seconds(12, orders=900.0, payments=900.0)
    assert sum(site.executors.values()) == 2
    assert "does not answer" in next(line for line in site.lines if line.startswith("veto"))


def test_a_hook_that_is_slow_holds_up_no_other_pool_and_what_it_was_asked_happens_when_it_answers(
    tmp_path, monkeypatch, hook
):
    veto = f"veto: {{url: 'http://127.0.0.1:{hook.port}/', timeout_s: 10}}\n"
    site = Site(tmp_path, monkeypatch, "name: shared\ncores: 3\njobs: {orders: {}}\n" + veto)
    (site.file.parent / "other.yaml").write_text("name: other\ncores: 3\njobs: {payments: {}}\n")
    hook.status, first = None, NOW + 1
    for at in range(8):
        for job, pool in zip(JOBS, ("shared", "other"), strict=True):
            wants = 3 if at < 4 else 2
            said = PoolWant(job, NOW + at, NOW + at, 1.0, pool, wants, 1, 1, 1, [9.0, 3.0, 1.0, 0.0], 1.0, [], [])
            site.topic.send(job, encode(said))
        site.division.tick(first + at)
    (waits,) = site.division.hooks.asked.values()
    assert len(hook.asked) == 1 and not waits.answer.done()
    assert (site.grants.of("orders").executors, site.grants.of("payments").executors) == (None, 2)
    hook.status = 204
    hook.release.set()
    wait([waits.answer])
    site.division.tick(first + 8)  # it has spoken of nothing else
    assert site.grants.of("orders").executors == hook.asked[0]["changes"][0]["executors"]["after"] == 3
