"""Killed anywhere and started again, the fast path leaves the store and the forecasts of a run that nothing befell."""

import math
import os
import random
import shutil
import signal
from functools import cache, partial

import msgspec
import pytest

from pipelines.serve.fast import core, swapping, window_closer
from pipelines.serve.step.keys import active_key
from pipelines.serve.step.windower import add_sample
from pipelines.store.writing import commit, opening, puts
from tests.fakes.serving import JOBS, FileWire, Served, Wire, contents, distinct, forked, log_of, scripted_swaps
from tests.fakes.store_faults import in_process

pytestmark = pytest.mark.study

LOGS = 25


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What the store holds and what was sent of the log of a seed where nothing happens; several tests hold to one."""

    @cache
    def run(seed, swaps=True):
        wire = Wire()
        served = Served(tmp_path_factory.mktemp("whole"), log_of(seed), wire, scripted_swaps() if swaps else ())
        while not served.done:
            served.step()
            served.send()
        return ended(served), wire.sent

    return run


def ended(served):
    """What a server that has done all leaves behind."""
    served.store.flush()
    found = contents(served.store)
    assert not served.store.outbox()
    served.close()
    return found


PLACES = (
    "before", "in the event", "in the commit", "before the commit", "after", "sent", "before the swap", "in the swap"
)  # fmt: skip


class Reaper:
    """Kills the process it is in, at a drawn moment: no handler and no destructor runs."""

    def __init__(self, seed, patch, places):
        self.rng, self.places, self.armed = random.Random(seed), places, ""
        for where, module, name in (
            ("in the event", window_closer, "encode_value"),
            ("in the commit", commit, "pack_head"),
            ("before the commit", puts, "commit_events"),
            ("before the swap", swapping, "encode_value"),
            ("in the swap", swapping, "_put_in_force"),
        ):
            patch.setattr(module, name, self.deadly(where, getattr(module, name)))

    def deadly(self, where, call):
        def called(*arguments, **named):
            self.reach(where)
            return call(*arguments, **named)

        return called

    def arm(self):
        self.armed = self.rng.choice(self.places) if self.places and self.rng.random() < 0.35 else ""

    def reach(self, where):
        if self.armed == where:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture
def quick(monkeypatch):
    """After a kill the files are checked in the process that opens them: pages are whole."""
    monkeypatch.setattr(opening, "find_damage", in_process)


def life(folder, log, path, seed, swaps, places):
    """One process: from where the last one was killed to the end of the log, or to its own."""
    with pytest.MonkeyPatch.context() as patch:
        reaper, drawn, wire = Reaper(seed, patch, places), random.Random(f"{seed} steps"), FileWire(path)
        served = Served(folder, log, wire, swaps)
        while not served.done:
            reaper.arm()
            reaper.reach("before")
            served.step(drawn.choice((1, 1, 2, 5, 32)))
            reaper.reach("after")
            wire.deaf = reaper.armed == "sent"
            served.send()
            reaper.reach("sent")
        reaper.armed = ""
        ended(served)


def disturbed(folder, log, seed, swaps=None, places=PLACES, most=math.inf):
    """Run to the end of the log in processes that are killed, `most` at most; store, what was sent, how many were."""
    path, kills = folder.with_suffix(".sent"), 0
    swaps = scripted_swaps() if swaps is None else swaps

    def lived():
        left = places if kills < most else ()
        return forked(partial(life, folder, log, path, f"{seed} {kills}", swaps, left))

    while lived() == signal.SIGKILL:
        kills += 1
    wire = FileWire(path)
    return ended(Served(folder, log, wire, swaps)), wire.sent, kills


def per_key(sent):
    found = {}
    for topic, key, version, value in distinct(sent):
        found.setdefault((topic, key), []).append((version, value))
    return found


@pytest.mark.sized(3, LOGS)
def test_a_run_that_is_killed_leaves_what_an_undisturbed_one_leaves(seed, tmp_path, quick, undisturbed):
    log = log_of(seed)
    store, sent = undisturbed(seed)
    assert {len(store[active_key(job)]) for job in JOBS} == {2, 3}
    assert sum(topic == "forecasts" for topic, *_ in sent) > 15 and any(topic == "rejects" for topic, *_ in sent)
    again, resent, kills = disturbed(tmp_path / "killed", log, seed)
    assert kills > 1
    assert again == store
    assert len(distinct(resent)) == len(sent) <= len(resent)
    assert per_key(resent) == per_key(sent)


@pytest.mark.parametrize("place", PLACES)
def test_the_reaper_reaches_each_of_its_places(place, tmp_path, quick, undisturbed):
    # The test above has many kills of all kinds; each is a process. Before its first step one is often killed in vain.
    most = 8 if place == "before" else 3
    again, _, kills = disturbed(tmp_path / "killed", log_of(0), 0, places=(place,), most=most)
    assert kills
    assert again == undisturbed(0)[0]


PAGE = 4096


def mixed(old, new, rng):
    """Of the pages written since the last flush some have reached the disk."""
    pages = range(0, len(new), PAGE)
    return b"".join(rng.choice((old, new))[at : at + PAGE] or new[at : at + PAGE] for at in pages)


def flipped(old, new, rng):
    found = bytearray(new)
    found[rng.randrange(len(new))] ^= 1 << rng.randrange(8)
    return bytes(found)


TEARS = {
    "older": lambda old, new, rng: old,
    "cut": lambda old, new, rng: new[: rng.randrange(len(new)) // PAGE * PAGE],
    "mixed": mixed,
    "flipped": flipped,
}


def before_the_crash(folder, log, path, saved, rng):
    """Some steps of a process that ends with its host; `saved` holds the file as it was last flushed."""
    served = Served(folder, log, FileWire(path), scripted_swaps())
    shutil.copyfile(folder / "hot" / "data.mdb", saved)  # opening has brought to the disk what was there
    for _ in range(rng.randint(8, 30)):
        if rng.random() < 0.2:
            served.store.flush()
            shutil.copyfile(folder / "hot" / "data.mdb", saved)
        served.step(rng.choice((1, 2, 5)))
        served.send()
        if served.done:
            return
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.sized(4, 500)
def test_after_a_host_crash_no_origin_is_sent_with_two_contents_and_none_is_skipped(seed, tmp_path, undisturbed):
    log, folder, path = log_of(seed % LOGS), tmp_path / "store", tmp_path / "sent"
    saved, hot, crashes = tmp_path / "saved", folder / "hot" / "data.mdb", 0
    tear = TEARS[list(TEARS)[seed % len(TEARS)]]
    while forked(partial(before_the_crash, folder, log, path, saved, random.Random(f"{seed} {crashes}"))):
        crashes += 1
        (folder / "last_run").write_text("another boot\n")
        if saved.exists() and crashes < 5:
            hot.write_bytes(tear(saved.read_bytes(), hot.read_bytes(), random.Random(f"{seed} {crashes}")))
    sent, contents_of = FileWire(path).sent, {}
    for topic, key, version, value in sent:
        contents_of.setdefault((topic, key, int(version)), set()).add(value)
    assert crashes > (seed < 4)  # of the many seeds some crash once
    assert {len(found) for found in contents_of.values()} == {1}
    _, whole = undisturbed(seed % LOGS)
    for job in JOBS:
        closed = {int(v) for topic, key, v, _ in whole if (topic, key) == ("forecasts", job)}
        found = {v for topic, key, v in contents_of if (topic, key) == ("forecasts", job)}
        assert found == closed


def test_a_cursor_of_its_own_transaction_loses_events(tmp_path, monkeypatch, quick, undisturbed):
    """The test must be able to fail: without 'one event, one transaction' it does."""
    seed, log = 0, log_of(0)
    store, _ = undisturbed(seed, swaps=False)
    take = core.Core.process

    def apart(self, arrivals, now=None):
        if arrivals:
            self.store.set_meta(core.CURSOR, arrivals[-1].cursor)
        return take(self, arrivals, now)

    monkeypatch.setattr(core.Core, "process", apart)
    again, _, _ = disturbed(tmp_path / "killed", log, seed, (), ("in the event",))
    assert again != store


def test_without_a_version_check_events_are_taken_twice(tmp_path, monkeypatch, quick, undisturbed):
    """The second control: where the time of a record is not compared with what was taken, duplicates count."""
    seed, log = 0, log_of(0)
    store, _ = undisturbed(seed, swaps=False)

    def blind(open_window, one, *rest):
        return add_sample(msgspec.structs.replace(open_window, until=-math.inf), one, *rest)

    monkeypatch.setattr("pipelines.serve.step.job.add_sample", blind)
    again, _, _ = disturbed(tmp_path / "killed", log, seed, ())
    assert again != store
