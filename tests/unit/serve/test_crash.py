"""Killed anywhere and started again, the fast path leaves the store and the forecasts of a run that nothing befell."""

import math
import random

import msgspec
import pytest

from pipelines.serve import closing, core, swapping
from pipelines.serve.keys import active_key
from pipelines.store import commit, transactions
from tests.fakes.serving import JOBS, KilledError, Served, Wire, contents, distinct, log_of, scripted_swaps

SEEDS = range(25)
SWAPS = scripted_swaps()


def undisturbed(folder, log, swaps=SWAPS):
    wire = Wire()
    served = Served(folder, log, wire, swaps)
    while not served.done:
        served.step()
        served.send()
    served.store.flush()
    found = contents(served.store)
    assert not served.store.outbox()
    served.kill()
    return found, wire.sent


PLACES = (
    "before", "in the event", "in the commit", "before the commit", "after", "sent", "before the swap", "in the swap"
)  # fmt: skip


class Reaper:
    """Kills at a drawn moment."""

    def __init__(self, seed, patch, places):
        self.rng, self.kills, self.places, self.armed = random.Random(seed), 0, places, ""
        for where, module, name in (
            ("in the event", closing, "packed"),
            ("in the commit", commit, "pack_head"),
            ("before the commit", transactions, "commit"),
            ("before the swap", swapping, "packed"),
            ("in the swap", swapping, "_activate"),
        ):
            patch.setattr(module, name, self.deadly(where, getattr(module, name)))

    def deadly(self, where, call):
        def called(*arguments, **named):
            self.reach(where)
            return call(*arguments, **named)

        return called

    def arm(self):
        self.armed = self.rng.choice(self.places) if self.rng.random() < 0.5 else ""

    def reach(self, where):
        if self.armed == where:
            self.armed = ""
            self.kills += 1
            raise KilledError(where)


def disturbed(folder, log, seed, patch, swaps=SWAPS, places=PLACES):
    """Run to the end of the log, killed and restarted on the way; store and what was sent."""
    reaper, wire, drawn = Reaper(seed, patch, places), Wire(), random.Random(seed + 1000)
    done = False
    while not done:
        served = None
        try:
            wire.deaf = False
            served = Served(folder, log, wire, swaps)
            while not served.done:
                reaper.arm()
                reaper.reach("before")
                served.step(drawn.choice((1, 1, 2, 5, 32)))
                reaper.reach("after")
                wire.deaf = reaper.armed == "sent"
                served.send()
                reaper.reach("sent")
            reaper.armed, done = "", True
            served.store.flush()
            found = contents(served.store)
            assert not served.store.outbox()
        except KilledError:
            pass
        finally:
            if served is not None:
                served.kill()
    return found, wire.sent, reaper.kills


def per_key(sent):
    found = {}
    for topic, key, version, value in distinct(sent):
        found.setdefault((topic, key), []).append((version, value))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_that_is_killed_leaves_what_an_undisturbed_one_leaves(seed, tmp_path, monkeypatch):
    log = log_of(seed)
    store, sent = undisturbed(tmp_path / "whole", log)
    assert {len(store[active_key(job)]) for job in JOBS} == {2, 3}
    assert sum(topic == "forecasts" for topic, *_ in sent) > 15 and any(topic == "rejects" for topic, *_ in sent)
    again, resent, kills = disturbed(tmp_path / "killed", log, seed, monkeypatch)
    assert kills >= 5
    assert again == store
    assert len(distinct(resent)) == len(sent) <= len(resent)
    assert per_key(resent) == per_key(sent)


def torn_back(folder, log, seed):
    """A run over host crashes: what was not flushed is gone from the rebuildable part, and the topic knows more."""
    rng, wire, saved = random.Random(seed), Wire(), None
    hot = folder / "hot" / "data.mdb"
    while True:
        served = Served(folder, log, wire, SWAPS)
        try:
            for _ in range(rng.randint(20, 60)):
                if rng.random() < 0.1:
                    served.store.flush()
                    saved = hot.read_bytes()
                served.step(rng.choice((1, 2, 5)))
                served.send()
                if served.done:
                    return wire.sent
        finally:
            served.kill()
        if saved is not None:
            hot.write_bytes(saved)


@pytest.mark.parametrize("seed", range(6))
def test_after_a_host_crash_no_origin_is_sent_with_two_contents_and_none_is_skipped(seed, tmp_path):
    log = log_of(seed)
    sent = torn_back(tmp_path / "store", log, seed)
    contents_of = {}
    for topic, key, version, value in sent:
        contents_of.setdefault((topic, key, int(version)), set()).add(value)
    assert len(sent) > len(contents_of) and {len(found) for found in contents_of.values()} == {1}
    _, whole = undisturbed(tmp_path / "whole", log)
    for job in JOBS:
        closed = {int(v) for topic, key, v, _ in whole if (topic, key) == ("forecasts", job)}
        found = {v for topic, key, v in contents_of if (topic, key) == ("forecasts", job)}
        assert found == closed


@pytest.mark.parametrize("seed", range(3))
def test_a_cursor_of_its_own_transaction_loses_events(seed, tmp_path, monkeypatch):
    """The test must be able to fail: without 'one event, one transaction' it does."""
    log = log_of(seed)
    store, _ = undisturbed(tmp_path / "whole", log, ())
    take = core.Core.take

    def apart(self, arrivals, now=None):
        if arrivals:
            self.store.set_meta(core.CURSOR, arrivals[-1].cursor)
        return take(self, arrivals, now)

    monkeypatch.setattr(core.Core, "take", apart)
    again, _, _ = disturbed(tmp_path / "killed", log, seed, monkeypatch, (), ("in the event",))
    assert again != store


@pytest.mark.parametrize("seed", range(3))
def test_without_a_version_check_events_are_taken_twice(seed, tmp_path, monkeypatch):
    """The second control: where the time of a record is not compared with what was taken, duplicates count."""
    log = log_of(seed)
    store, _ = undisturbed(tmp_path / "whole", log, ())
    fill = core.fill

    def blind(filling, one, step_s):
        return fill(msgspec.structs.replace(filling, until=-math.inf), one, step_s)

    monkeypatch.setattr(core, "fill", blind)
    again, _, _ = disturbed(tmp_path / "killed", log, seed, monkeypatch, ())
    assert again != store
