"""What the store holds of windows and models; a model in use is loaded once, and jobs with equal sets share it."""

from __future__ import annotations

from collections.abc import Collection

from models.forecast.online import Online
from pipelines.serve.models.model_set import MEMBERS, ModelSetError, unpack
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.keys import sample_key, set_prefix
from pipelines.serve.step.records import SampleValue, unpacked
from pipelines.serve.step.windows import Rates
from pipelines.store import Store


class StoreWindows:
    """The windows that a store keeps."""

    def __init__(self, store: Store, step_s: float) -> None:
        self._store, self.step_s = store, step_s

    def newest(self, job: str) -> int | None:
        """The job's newest window; None without one."""
        record = self._store.get(sample_key(job, self.step_s))
        return None if record is None else record.version

    def rates(self, job: str, first: int, last: int) -> Rates:
        """Windows `first` to `last` as far as they are kept."""
        if last < max(first, 0):
            return []
        found = self._store.history(sample_key(job, self.step_s), max(first, 0), last, last - first + 1)
        return [(record.version, unpacked(SampleValue, record.value).rate) for record in found]


class ModelCache:
    """Who steps jobs, by the digests of weights, scaler and hyper-parameters."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._made: dict[tuple[str, str, str], Online] = {}

    def put(self, digests: tuple[str, str, str], online: Online) -> Online:
        """Who steps jobs by the set with these digests: the one given, unless there is one."""
        return self._made.setdefault(digests, online)

    def clear_but(self, digests: Collection[tuple[str, str, str]]) -> None:
        """Let go of the models that no job needs any more; one that is asked for after all is read from the store."""
        self._made = {key: online for key, online in self._made.items() if key in digests}

    def __len__(self) -> int:
        return len(self._made)

    def find(self, job: str, by: Generation) -> Online:
        """Who steps jobs by a generation's set, from the store where it is not at hand.

        Raises:
            ModelSetError: the set is no longer kept, or is not what was activated.
        """
        if by.digests in self._made:
            return self._made[by.digests]
        prefix = set_prefix(job)
        found = {name: self._store.get(f"{prefix}/{name}", by.number) for name in MEMBERS}
        if missing := [name for name, record in found.items() if record is None]:
            raise ModelSetError(f"{prefix} of generation {by.number} lacks {', '.join(missing)}: no longer kept")
        made = unpack({name: record.value for name, record in found.items() if record is not None})
        if made.digests != by.digests:
            raise ModelSetError(f"{prefix} of generation {by.number} has digests {made.digests}, not {by.digests}")
        return self.put(made.digests, Online(made.forecaster))
