"""A champion goes into service between two events: on the disk first, then in force, from a recorded window on."""

from __future__ import annotations

from typing import NamedTuple

from models.forecast.online import Online
from pipelines.serve.core import Core
from pipelines.serve.event import series
from pipelines.serve.fleet import KEPT_STEPS
from pipelines.serve.following import Following
from pipelines.serve.generations import Generation, first_origin
from pipelines.serve.keys import active_key, intent_key, sample_key, set_prefix
from pipelines.serve.model_set import MEMBERS, ModelSet, ModelSetError, check
from pipelines.serve.records import SampleValue, packed, unpacked
from pipelines.store import Store


class Ready(NamedTuple):
    """A model that may be swapped in: checked, and warmed on the job's recent windows.

    Attributes:
        job: whose it is.
        model, version: in the registry.
        made: the set.
        online: who steps by it.
        warm: its state after window `warmed_to`.
        warmed_from, warmed_to: first and last window that it was begun on.
    """

    job: str
    model: str
    version: str
    made: ModelSet
    online: Online
    warm: bytes
    warmed_from: int
    warmed_to: int


def prepare(store: Store, step_s: float, job: str, model: str, version: str, made: ModelSet) -> Ready:
    """Check a set and warm it; in a thread of its own, because it may take a second.

    Raises:
        ModelSetError: the set cannot serve; the one in service goes on.
    """
    # The newest window is left out: the first generation speaks for it, and a replay must find the same beginning.
    key = sample_key(job, step_s)
    newest = store.get(key)
    last = -1 if newest is None else newest.version - 1
    found = store.history(key, max(last - KEPT_STEPS + 1, 0), last) if last >= 0 else []
    first = found[0].version if found else last + 1
    windows = [(record.version, unpacked(SampleValue, record.value).rate) for record in found]
    recent = series(windows, first, last, step_s)
    check(made, f"{model} version {version}", step_s, recent)
    online = Online(made.forecaster)
    online.admit(job, recent)
    warm = online.state(job)
    # A rehearsal: what is compiled at its first use is compiled here, not between two events.
    online.restore(job, warm, recent)
    online.step(job, float(recent.values[-1]) if len(recent) else 0.0)
    online.forget(job)
    return Ready(job, model, version, made, online, warm, first, last)


def swap(core: Core, ready: Ready) -> Generation:
    """Put a prepared set into service; the calling thread is the one that writes.

    Raises:
        StoreError: nothing has changed that serves, and a later call may succeed.
    """
    store, job, following = core.store, ready.job, core.job(ready.job)
    newest = store.get(intent_key(job))
    number = 1 if newest is None else newest.version + 1  # those for windows of another length count, too
    begins = first_origin(following.generations, following.newest, core.last_sent(job))
    digests = ready.made.digests
    made = Generation(
        number, ready.model, ready.version, digests, begins, ready.warmed_from, ready.warmed_to, core.step_s
    )
    prefix = set_prefix(job)
    store.declare(prefix, [f"{prefix}/{name}" for name in MEMBERS])
    try:
        with store.event("persistent") as event:  # the intent: from here on a crash redoes the swap at this window
            event.put_set(prefix, {f"{prefix}/{name}": ready.made.members[name] for name in MEMBERS}, number)
            event.put(intent_key(job), packed(made), number)
        online = core.shelf.put(digests, ready.online)
        following.generations.append(made)
        _activate(core, following, made, online, ready.warm)
    except BaseException:
        core.closing.leaving.clear()  # it is not in the store: counted on, every later entry had a wrong number
        core.forget(job)
        raise
    core.shelf.clear_but(core.needed())
    core.counts["swaps"] += 1
    return made


def redo(core: Core) -> None:
    """Finish swaps that a crash cut off between the disk and their effect, at the windows recorded then."""
    for job in sorted(core.known):
        for made in core.job(job).generations:
            if core.store.get(active_key(job), made.number) is None:
                try:
                    online = core.shelf.find(job, made)
                except ModelSetError:  # long out of service
                    online = None
                _activate(core, core.job(job), made, online, None)


def _activate(core: Core, following: Following, made: Generation, online: Online | None, warm: bytes | None) -> None:
    store, newest, job = core.store, following.newest, following.job
    with store.event() as event:
        event.put(active_key(job), packed(made), made.number)
        # Otherwise windows of the older generation are still to come.
        if online is not None and newest is not None and newest >= made.first_origin - 1:
            following.begin(store, online, made, warm)
            if newest >= made.first_origin:  # the first generation speaks for the newest window at once
                record = store.get(sample_key(job, following.step_s), newest)
                assert record is not None, "the newest window is kept"
                scale = unpacked(SampleValue, record.value).time_scale
                core.closing.say(event, following, made, record.event_time, scale)
    core.outbox.committed(core.closing.leaving)
    core.closing.committed(job, -1 if newest is None else newest)
    core.closing.leaving.clear()
