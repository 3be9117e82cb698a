"""What the store holds of windows, models and jobs: read at start, and again where a transaction failed.

A model in use is loaded once, and jobs with equal sets share it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

import msgspec

from models.forecast.core.gaps import Streak
from models.forecast.online import Online
from pipelines.serve.models.model_set import MEMBERS, ModelSetError, load_members
from pipelines.serve.step import keys
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.forecasts import decode_forecast
from pipelines.serve.step.job import ServedJob
from pipelines.serve.step.records import ForecastValue, SampleValue, StateValue, decode_value
from pipelines.serve.step.server_context import ServerContext
from pipelines.serve.step.windower import OpenWindow
from pipelines.serve.step.windows import Rates
from pipelines.store import Store, StoreError

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
            StoreError, msgspec.DecodeError: a window cannot be read or decoded.
        """
        if last < max(first, 0):
            return []
        records = self._store.history(keys.sample_key(job, self.step_s), max(first, 0), last, last - first + 1)
        return [(record.version, decode_value(SampleValue, record.value).rate) for record in records]


class ModelCache:
    """Loaded models by the digests of weights, scaler and hyper-parameters; jobs with equal models share one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._models: dict[tuple[str, str, str], Online] = {}

    def put(self, digests: tuple[str, str, str], model: Online) -> Online:
        """Keep a model under its digests and return it, or return the one that is kept under them already."""
        return self._models.setdefault(digests, model)

    def clear_but(self, digests: Collection[tuple[str, str, str]]) -> None:
        """Drop all models but those with these digests; `find` loads a dropped one again."""
        self._models = {key: model for key, model in self._models.items() if key in digests}

    def __len__(self) -> int:
        return len(self._models)

    def find(self, job: str, deployment: Deployment) -> Online:
        """Return the model of a job's deployment (version in service), loaded from the store if it is not in memory.

        It is then kept in memory until `clear_but`.

        Raises:
            ModelSetError: the LMDB store no longer keeps it, its bytes make no forecaster, or their digests differ from
                the recorded ones.
            StoreError: the store cannot be read.
        """
        if deployment.digests in self._models:
            return self._models[deployment.digests]
        prefix, number = keys.set_prefix(job), deployment.number
        records = {name: self._store.get(f"{prefix}/{name}", number) for name in MEMBERS}
        if missing := [name for name, record in records.items() if record is None]:
            raise ModelSetError(f"{prefix} of deployment {number} lacks {', '.join(missing)}: no longer kept")
        model_set = load_members({name: record.value for name, record in records.items() if record is not None})
        if model_set.digests != deployment.digests:
            raise ModelSetError(
                f"{prefix} of deployment {number} has digests {model_set.digests}, not {deployment.digests}"
            )
        return self.put(model_set.digests, Online(model_set.forecaster))


def restore_job(store: Store, server: ServerContext, job: str) -> ServedJob:
    """Return a job's state as the newest transaction left it, its model stepped up to the newest window.

    A job never seen is new. A model that is no longer stored, or cannot be stepped over the windows, is logged; the job
    then has none until the next window, which begins it anew. A window in progress of another length than the server's
    `step_s` is dropped.

    Args:
        store: that holds the job; only read.
        server: what all jobs have in common; becomes the job's `server`.
        job: its name.

    Raises:
        StoreError, msgspec.DecodeError: the store cannot be read, a stored value not decoded, or the name makes no key.
    """
    step_s = server.windows.step_s
    served = ServedJob(job, server)
    if (raw := store.get_meta(keys.open_window_name(job))) is not None:
        open_window = msgspec.msgpack.decode(raw, type=OpenWindow)
        served.open_window = open_window
        if open_window.step_s not in (0.0, step_s):
            # Windows of another length have other numbers: what was taken stays taken, that in progress is left out.
            served.open_window = OpenWindow(until=open_window.until - open_window.ahead_s)
    deployments = [decode_value(Deployment, record.value) for record in store.history(keys.intent_key(job))]
    served.deployments = [deployment for deployment in deployments if deployment.step_s == step_s]
    sample, state = store.get(keys.sample_key(job, step_s)), store.get(keys.state_key(job, step_s))
    if sample is None or state is None:
        return served
    kept = decode_value(StateValue, state.value)
    served.newest, served.first = sample.version, kept.first
    if served.open_window.until < (end := (sample.version + 1) * step_s):
        # After a host crash some pages are older than others: what is closed is not closed again.
        served.open_window = OpenWindow(until=end, step_s=step_s, ahead_s=served.open_window.ahead_s)
    served.rate = decode_value(SampleValue, sample.value).rate
    served.streak = Streak(kept.imputed, kept.row, kept.warming)
    forecast = store.get(keys.forecast_key(job, step_s), sample.version)
    served.note_sent(None if forecast is None else decode_forecast(decode_value(ForecastValue, forecast.value)))
    deployment = next((d for d in served.deployments if d.number == kept.deployment), None)
    if deployment is not None:
        try:
            served.resume_model(deployment, *_stored_state(store, served, kept))
        except (StoreError, msgspec.DecodeError):
            raise
        except Exception as error:  # one job's model may not stop the others
            log.warning("serving %s: %s; a model begins anew at the next window", job, error)
            served.drop_model()
    return served


def _stored_state(store: Store, served: ServedJob, kept: StateValue) -> tuple[bytes, int]:
    """The model's state and the first window that it may lack; a large one lies under a key of its own."""
    if kept.carried:
        return kept.carried, served.newest or 0
    record = store.get(keys.checkpoint_key(served.job, served.step_s))
    checkpoint = None if record is None else decode_value(StateValue, record.value)
    if record is None or checkpoint is None or checkpoint.deployment != kept.deployment:
        return b"", served.newest or 0  # begun anew: nothing of the history leads on from it
    return checkpoint.carried, record.version + 1
