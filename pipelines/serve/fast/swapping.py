"""A champion goes into service between two events: on the disk first, then in force, from a recorded window on."""

from __future__ import annotations

from models.forecast.online import Online
from pipelines.serve.fast.core import Core
from pipelines.serve.models.model_set import MEMBERS, ModelSetError
from pipelines.serve.models.ready import Ready
from pipelines.serve.step.following import Following
from pipelines.serve.step.generations import Generation, first_origin
from pipelines.serve.step.keys import active_key, intent_key, sample_key, set_prefix
from pipelines.serve.step.records import SampleValue, packed, unpacked


def swap(core: Core, ready: Ready) -> Generation:
    """Put a prepared model into service for its job, from a recorded window on; to be called by the writing thread.

    First model and intent are put on the disk (the call waits for it), then the swap takes effect in a second
    transaction. The first model of a job also makes the forecast after the newest window. Models that no job needs any
    more are dropped from memory.

    Returns:
        The generation (loaded model), with its number and first window.

    Raises:
        StoreError: a transaction failed. The job is read from the store again at its next use; the call may be
            repeated, and then gets the next number if the intent was on the disk already.
        SeriesError, OnlineError: the model cannot be stepped over the job's windows.
    """
    store, job, following = core.store, ready.job, core.job(ready.job)
    newest = store.get(intent_key(job))
    number = 1 if newest is None else newest.version + 1  # those for windows of another length count, too
    begins = first_origin(following.generations, following.newest, core.last_sent(job))
    made = ready.generation(number, begins, core.step_s)
    prefix = set_prefix(job)
    store.declare(prefix, [f"{prefix}/{name}" for name in MEMBERS])
    try:
        with store.event("persistent") as event:  # the intent: from here on a crash redoes the swap at this window
            event.put_set(prefix, {f"{prefix}/{name}": ready.made.members[name] for name in MEMBERS}, number)
            event.put(intent_key(job), packed(made), number)
        online = core.cache.put(made.digests, ready.online)
        following.generations.append(made)
        _activate(core, following, made, online, ready.warm)
    except BaseException:
        core.closing.leaving.clear()  # it is not in the store: counted on, every later entry had a wrong number
        core.forget(job)
        raise
    core.cache.clear_but(core.needed())
    core.counts["swaps"] += 1
    return made


def redo(core: Core) -> None:
    """Finish the swaps that a crash cut off after their intent was on the disk, at the windows recorded then.

    To be called at the start, before anything is served.

    Raises:
        StoreError: the store cannot be read or written.
    """
    for job in sorted(core.known):
        for made in core.job(job).generations:
            if core.store.get(active_key(job), made.number) is None:
                try:
                    online = core.cache.find(job, made)
                except ModelSetError:  # long out of service
                    online = None
                _activate(core, core.job(job), made, online, None)


def _activate(core: Core, following: Following, made: Generation, online: Online | None, warm: bytes | None) -> None:
    store, newest, job = core.store, following.newest, following.job
    with store.event() as event:
        event.put(active_key(job), packed(made), made.number)
        # Otherwise windows of the older generation are still to come.
        if online is not None and newest is not None and newest >= made.first_origin - 1:
            following.begin(online, made, warm)
            if newest >= made.first_origin:  # the first generation speaks for the newest window at once
                record = store.get(sample_key(job, following.step_s), newest)
                assert record is not None, "the newest window is kept"
                scale = unpacked(SampleValue, record.value).time_scale
                core.closing.issue(event, following, made, record.event_time, scale)
    core.committed([] if newest is None else [(job, newest)])
