"""A model checked and warmed beside the serving thread, ready to be swapped in."""

from __future__ import annotations

from typing import NamedTuple

from models.forecast.online import Online
from pipelines.serve.models.model_set import ModelSet, check_can_serve
from pipelines.serve.step.deployments import Deployment
from pipelines.serve.step.forecasts import build_series
from pipelines.serve.step.windows import Windows, warmed_steps


class ReadyModel(NamedTuple):
    """A model that may be swapped in: checked, and warmed on the job's recent windows.

    Attributes:
        job: whose it is.
        model_name, version: in the registry.
        model_set: weights, scaler and hyper-parameters.
        model: steps jobs.
        warm_state: its state after window `warmed_to`.
        warmed_from, warmed_to: index of the first and last window it was warmed on; none where the second is less than
            the first.
    """

    job: str
    model_name: str
    version: str
    model_set: ModelSet
    model: Online
    warm_state: bytes
    warmed_from: int
    warmed_to: int

    def deployment(self, number: int, first_origin: int, step_s: float) -> Deployment:
        """Return the record of its swap, to be stored; it makes forecasts from window `first_origin` on."""
        return Deployment(
            number, self.model_name, self.version, self.model_set.digests, first_origin, self.warmed_from,
            self.warmed_to, step_s,
        )  # fmt: skip


def prepare_model(windows: Windows, job: str, model_name: str, version: str, model_set: ModelSet) -> ReadyModel:
    """Check a model, and start it on a job's newest `warmed_steps` windows less the newest; may take seconds.

    What is compiled at first use is compiled here. Nothing in service changes.

    Args:
        windows: where the job's closed windows are.
        job: its name.
        model_name: in the registry.
        version: in the registry.
        model_set: weights, scaler and hyper-parameters, and the forecaster that they make.

    Raises:
        ModelSetError: the set cannot serve the job.
        SeriesError, OnlineError, RuntimeError: the model cannot be started on the windows, or fails when stepped.
        StoreError, msgspec.DecodeError: the windows cannot be read.
    """
    # The newest window is left out: a first deployment makes a forecast after it, and a replay must begin the same.
    newest = windows.newest(job)
    last = -1 if newest is None else newest - 1
    rates = windows.rates(job, max(last - warmed_steps(windows.step_s) + 1, 0), last)
    first = rates[0][0] if rates else last + 1
    recent = build_series(rates, first, last, windows.step_s)
    check_can_serve(model_set, f"{model_name} version {version}", windows.step_s, recent)
    model = Online(model_set.forecaster)
    model.admit(job, recent)
    warm_state = model.state(job)
    # A rehearsal: what is compiled at its first use is compiled here, not between two events.
    model.restore(job, warm_state, recent)
    model.step(job, float(recent.values[-1]) if len(recent) else 0.0)
    model.forget(job)
    return ReadyModel(job, model_name, version, model_set, model, warm_state, first, last)
