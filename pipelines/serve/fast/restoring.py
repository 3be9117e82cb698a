"""What the store holds of windows, models and jobs: read at start, and again where a transaction failed.

A model in use is loaded once, and jobs with equal sets share it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

import msgspec

from models.forecast.core.gaps import Streak
from models.forecast.online import Online
from pipelines.serve.models.model_set import MEMBERS, ModelSetError, unpack
from pipelines.serve.step import keys
from pipelines.serve.step.event import issued_in
from pipelines.serve.step.following import Following, Serving
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.records import ForecastValue, SampleValue, StateValue, unpacked
from pipelines.serve.step.windower import Filling
from pipelines.serve.step.windows import Rates
from pipelines.store import Store

log = logging.getLogger(__name__)


class StoreWindows:
    """Closed windows of `step_s` seconds, read from the store."""

    def __init__(self, store: Store, step_s: float) -> None:
        self._store, self.step_s = store, step_s

    def newest(self, job: str) -> int | None:
        """Return the index of the job's newest window; None without one."""
        record = self._store.get(keys.sample_key(job, self.step_s))
        return None if record is None else record.version

    def rates(self, job: str, first: int, last: int) -> Rates:
        """Return (window index, records/s) of the kept windows `first` to `last`, both included, rising.

        Negative indices are left out; empty where `last` is less than `first`.

        Raises:
            StoreError: the store cannot be read.
        """
        if last < max(first, 0):
            return []
        found = self._store.history(keys.sample_key(job, self.step_s), max(first, 0), last, last - first + 1)
        return [(record.version, unpacked(SampleValue, record.value).rate) for record in found]


class ModelCache:
    """Loaded models by the digests of weights, scaler and hyper-parameters; jobs with equal models share one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._made: dict[tuple[str, str, str], Online] = {}

    def put(self, digests: tuple[str, str, str], online: Online) -> Online:
        """Keep a model under its digests and return it, or return the one that is kept under them already."""
        return self._made.setdefault(digests, online)

    def clear_but(self, digests: Collection[tuple[str, str, str]]) -> None:
        """Drop all models but those with these digests; `find` loads a dropped one again."""
        self._made = {key: online for key, online in self._made.items() if key in digests}

    def __len__(self) -> int:
        return len(self._made)

    def find(self, job: str, by: Generation) -> Online:
        """Return the model of a job's generation, loaded from the store and kept if it is not in memory.

        Raises:
            ModelSetError: the store no longer keeps it, cannot make a forecaster of it, or its digests differ from the
                recorded ones.
            StoreError: the store cannot be read.
        """
        if by.digests in self._made:
            return self._made[by.digests]
        prefix = keys.set_prefix(job)
        found = {name: self._store.get(f"{prefix}/{name}", by.number) for name in MEMBERS}
        if missing := [name for name, record in found.items() if record is None]:
            raise ModelSetError(f"{prefix} of generation {by.number} lacks {', '.join(missing)}: no longer kept")
        made = unpack({name: record.value for name, record in found.items() if record is not None})
        if made.digests != by.digests:
            raise ModelSetError(f"{prefix} of generation {by.number} has digests {made.digests}, not {by.digests}")
        return self.put(made.digests, Online(made.forecaster))


def read(store: Store, by: Serving, job: str) -> Following:
    """Read a job's state as the newest transaction left it; a job never seen is new.

    Its model is loaded and stepped up to the newest window. One that is no longer kept is logged and left out until the
    next swap. A window in progress of another length than `step_s` is dropped.

    Raises:
        StoreError: the store cannot be read.
        SeriesError: the model cannot be started on the stored windows.
        msgspec.DecodeError: a stored value cannot be decoded.
    """
    step_s = by.windows.step_s
    following = Following(job, by)
    if (raw := store.get_meta(keys.filling_name(job))) is not None:
        filling = msgspec.msgpack.decode(raw, type=Filling)
        # Windows of another length have other numbers: what was taken stays taken, the window in progress is left out.
        following.filling = filling if filling.step_s in (0.0, step_s) else Filling(until=filling.until)
    swaps = (unpacked(Generation, record.value) for record in store.history(keys.intent_key(job)))
    following.generations = [made for made in swaps if made.step_s == step_s]
    sample, state = store.get(keys.sample_key(job, step_s)), store.get(keys.state_key(job, step_s))
    if sample is None or state is None:
        return following
    kept = unpacked(StateValue, state.value)
    following.newest, following.first = sample.version, kept.first
    if following.filling.until < (end := (sample.version + 1) * step_s):
        # After a host crash some pages are older than others: what is closed is not closed again.
        following.filling = Filling(until=end, step_s=step_s)
    following.rate = unpacked(SampleValue, sample.value).rate
    following.streak = Streak(kept.imputed, kept.row, kept.warming)
    issued = store.get(keys.forecast_key(job, step_s), sample.version)
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
    found = store.get(keys.checkpoint_key(following.job, following.step_s))
    whole = None if found is None else unpacked(StateValue, found.value)
    if found is None or whole is None or whole.generation != kept.generation:
        return b"", 0
    return whole.carried, found.version + 1
