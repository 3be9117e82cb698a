"""A job as the store knows it: read at start, and again where a transaction failed after the model had stepped."""

from __future__ import annotations

import logging

import msgspec

from models.forecast.core.gaps import Streak
from pipelines.serve.models.model_set import ModelSetError
from pipelines.serve.step.event import issued_in
from pipelines.serve.step.following import Following, Serving
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.keys import checkpoint_key, filling_name, forecast_key, intent_key, sample_key, state_key
from pipelines.serve.step.records import ForecastValue, SampleValue, StateValue, unpacked
from pipelines.serve.step.windower import Filling
from pipelines.store import Store

log = logging.getLogger(__name__)
_FILLING = msgspec.msgpack.Decoder(Filling)


def read(store: Store, by: Serving, job: str) -> Following:
    """The job as the newest transaction left it; one that was never seen is new."""
    step_s = by.windows.step_s
    following = Following(job, by)
    if (raw := store.get_meta(filling_name(job))) is not None:
        filling = _FILLING.decode(raw)
        # Windows of another length have other numbers: what was taken stays taken, the window in progress is left out.
        following.filling = filling if filling.step_s in (0.0, step_s) else Filling(until=filling.until)
    swaps = (unpacked(Generation, record.value) for record in store.history(intent_key(job)))
    following.generations = [made for made in swaps if made.step_s == step_s]
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
    issued = store.get(forecast_key(job, step_s), sample.version)
    following.issued = None if issued is None else issued_in(unpacked(ForecastValue, issued.value))
    made = next((g for g in following.generations if g.number == kept.generation), None)
    if made is not None:
        try:
            following.resume(made, *_carried(store, following, kept))
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
