"""A champion goes into service between two events: on the disk first, then in force, from a recorded window on."""

from __future__ import annotations

import logging

from models.forecast.online import Online
from pipelines.serve.fast.core import Core
from pipelines.serve.models.model_set import MEMBERS, ModelSetError
from pipelines.serve.models.ready import ReadyModel
from pipelines.serve.step.deployments import Deployment, choose_first_origin
from pipelines.serve.step.job import ServedJob
from pipelines.serve.step.keys import active_key, intent_key, sample_key, set_prefix
from pipelines.serve.step.records import SampleValue, decode_value, encode_value
from pipelines.store import StoreError

log = logging.getLogger(__name__)


def swap_model(core: Core, ready: ReadyModel) -> Deployment:
    """Put a prepared model into service for its job, from a recorded window on, and return the deployment.

    Model and intent (the record of the swap) are put on the disk first, which the call waits for; a second transaction
    puts them in force. The first model of a job also makes the forecast after the newest window. A model that cannot be
    stepped over the job's newest windows is logged and begun anew at the next one. Models that no job needs any more
    are dropped from memory. Call it in the thread that writes.

    Raises:
        StoreError, msgspec.DecodeError, MessageError: a transaction failed, a stored value cannot be decoded, or the
            forecast not encoded. The call may be repeated: an intent that is on the disk already is then put in force.
    """
    job, served = ready.job, core.job(ready.job)
    try:
        deployment = _unfinished(core, served, ready)
        if deployment is None:
            deployment = _record_intent(core, served, ready)
            served.deployments.append(deployment)
        model = core.cache.put(deployment.digests, ready.model)
        _put_in_force(core, served, deployment, model, ready.warm_state)
    except BaseException:
        core.closer.outgoing.clear()  # it is not in the store: counted on, every later entry had a wrong number
        core.forget(job)
        raise
    core.cache.clear_but(core.digests_in_use())
    core.counts["swaps"] += 1
    return deployment


def finish_swaps(core: Core) -> None:
    """Put in force the swaps that a crash cut off after their intent (record of the swap) was on the disk.

    They take effect at the windows recorded then. Call it at the start, before anything is served. A model that is no
    longer stored is left out; one that cannot be stepped over the job's windows is logged and begun anew at the next
    one.

    Raises:
        StoreError, msgspec.DecodeError, MessageError: the store cannot be read or written, a stored value not decoded,
            or a forecast not encoded; swaps finished before stay so.
    """
    for job in sorted(core.known):
        for deployment in core.job(job).deployments:
            if core.store.get(active_key(job), deployment.number) is None:
                try:
                    model = core.cache.find(job, deployment)
                except ModelSetError:  # long out of service
                    model = None
                _put_in_force(core, core.job(job), deployment, model, None)


def _unfinished(core: Core, served: ServedJob, ready: ReadyModel) -> Deployment | None:
    """The newest deployment, if it is of this model, and only its intent could be stored."""
    if not served.deployments:
        return None
    newest = served.deployments[-1]
    same = newest == ready.deployment(newest.number, newest.first_origin, core.step_s)
    return newest if same and core.store.get(active_key(served.job), newest.number) is None else None


def _record_intent(core: Core, served: ServedJob, ready: ReadyModel) -> Deployment:
    """Put model and intent on the disk: from here on a crash repeats the swap at the window named in it."""
    store, job = core.store, served.job
    # Above those for windows of another length, and those in force of which the intents are gone with their file.
    kept = store.get(intent_key(job)), store.get(active_key(job))
    number = 1 + max((record.version for record in kept if record is not None), default=0)
    first_origin = choose_first_origin(served.deployments, served.newest, core.newest_forecast_window(job))
    deployment = ready.deployment(number, first_origin, core.step_s)
    prefix = set_prefix(job)
    store.declare(prefix, [f"{prefix}/{name}" for name in MEMBERS])
    with store.event("persistent") as event:
        event.put_set(prefix, {f"{prefix}/{name}": ready.model_set.members[name] for name in MEMBERS}, number)
        event.put(intent_key(job), encode_value(deployment), number)
    return deployment


def _put_in_force(
    core: Core, served: ServedJob, deployment: Deployment, model: Online | None, warm_state: bytes | None
) -> None:
    store, newest, job = core.store, served.newest, served.job
    with store.event() as event:
        event.put(active_key(job), encode_value(deployment), deployment.number)
        # Otherwise windows of the older deployment are still to come, or the job is stepped by this one already.
        begins = newest is not None and newest >= deployment.first_origin - 1
        if model is not None and newest is not None and begins and served.deployment_number != deployment.number:
            try:
                served.switch_model(model, deployment, warm_state)
            except StoreError:
                raise
            except Exception:  # one job's model may not stop the others
                log.exception("serving %s: version %s cannot be begun", job, deployment.model_version)
                served.drop_model()
            if newest >= deployment.first_origin:  # a first deployment makes the forecast after the newest window
                record = store.get(sample_key(job, served.step_s), newest)
                assert record is not None, "the newest window is kept"
                scale = decode_value(SampleValue, record.value).time_scale
                core.closer.put_forecast(event, served, deployment, record.event_time, scale)
    core.after_commit([] if newest is None else [(job, newest)])
