"""A job as the store knows it: read at start, and again where a transaction failed after the model had stepped."""

from __future__ import annotations

import logging

import msgspec

from models.forecast.core.gaps import Streak
from pipelines.serve.fast.model_cache import ModelCache
from pipelines.serve.models.model_set import ModelSetError
from pipelines.serve.step.event import issued_in
from pipelines.serve.step.following import Following
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.keys import checkpoint_key, filling_name, forecast_key, intent_key, sample_key, state_key
from pipelines.serve.step.records import ForecastValue, SampleValue, StateValue, unpacked
from pipelines.serve.step.windower import Filling
from pipelines.serve.step.windows import Windows
from pipelines.store import Store

log = logging.getLogger(__name__)
_FILLING = msgspec.msgpack.Decoder(Filling)


def read(store: Store, windows: Windows, cache: ModelCache, job: str) -> Following:
    """The job as the newest transaction left it; one that was never seen is new."""
    step_s = windows.step_s
    following = Following(job, step_s)
    if (raw := store.get_meta(filling_name(job))) is not None:
        filling = _FILLING.decode(raw)
        # Windows of another length have other numbers: what was taken stays taken, the window in progress is left out.
        following.filling = filling if filling.step_s in (0.0, step_s) else Filling(until=filling.until)
    following.generations = _generations(store, job, step_s)
    sample, state = store.get(sample_key(job, step_s)), store.get(state_key(job, step_s))
    if sample is None or state is None:
        return following
    kept = unpacked(StateValue, state.value)
    following.newest, following.first = sample.version, kept.first
    if following.filling.until < (end := (sample.version + 1) * step_s):
        # After a host crash some pages are older than others: what is closed is not closed again.
        following.filling = Filling(until=end, step_s=step_s)
    following.rate = unpacked(SampleValue, sample.value).rate
    following.streak = Streak(kept.imputed, kept.row, kept.warming)
    made = store.get(forecast_key(job, step_s), sample.version)
    following.issued = None if made is None else issued_in(unpacked(ForecastValue, made.value))
    by = next((g for g in following.generations if g.number == kept.generation), None)
    if by is not None:
        try:
            following.resume(windows, cache.find(job, by), by, *_carried(store, following, kept))
        except ModelSetError as error:
            log.warning("serving %s: %s; the next model begins on its own history", job, error)
    return following


def _carried(store: Store, following: Following, kept: StateValue) -> tuple[bytes, int]:
    """The model's state and the first window that it may lack; a large one lies under a key of its own."""
    if kept.carried:
        return kept.carried, following.newest or 0
    found = store.get(checkpoint_key(following.job, following.step_s))
    whole = None if found is None else unpacked(StateValue, found.value)
    if found is None or whole is None or whole.generation != kept.generation:
        return b"", 0
    return whole.carried, found.version + 1


def _generations(store: Store, job: str, step_s: float) -> list[Generation]:
    """The job's swaps; those for windows of another length say nothing of ours."""
    found = (unpacked(Generation, record.value) for record in store.history(intent_key(job)))
    return [made for made in found if made.step_s == step_s]
