"""A model checked and warmed beside the serving thread, ready to be swapped in."""

from __future__ import annotations

from typing import NamedTuple

from models.forecast.online import Online
from pipelines.serve.models.model_set import ModelSet, check
from pipelines.serve.step.event import series
from pipelines.serve.step.generations import Generation
from pipelines.serve.step.windows import KEPT_STEPS, Windows


class Ready(NamedTuple):
    """A model that may be swapped in: checked, and warmed on the job's recent windows.

    Attributes:
        job: whose it is.
        model, version: in the registry.
        made: weights, scaler and hyper-parameters.
        online: the model that steps jobs.
        warm: its state after window `warmed_to`.
        warmed_from, warmed_to: index of the first and last window it was warmed on; none where the second is less than
            the first.
    """

    job: str
    model: str
    version: str
    made: ModelSet
    online: Online
    warm: bytes
    warmed_from: int
    warmed_to: int

    def generation(self, number: int, first_origin: int, step_s: float) -> Generation:
        """Return the record of its swap, to be stored; it serves from window `first_origin` on."""
        return Generation(
            number, self.model, self.version, self.made.digests, first_origin, self.warmed_from, self.warmed_to, step_s
        )


def prepare(windows: Windows, job: str, model: str, version: str, made: ModelSet) -> Ready:
    """Check a model and warm it on the job's newest `KEPT_STEPS` windows, less the very newest; may take a second.

    What is compiled at first use is compiled here. Nothing in service changes.

    Args:
        windows: where the job's closed windows are.
        job: its name.
        model: its name in the registry.
        version: in the registry.
        made: weights, scaler and hyper-parameters, loaded.

    Raises:
        ModelSetError: the set cannot serve.
        SeriesError, OnlineError: the model cannot be started on the windows.
        StoreError: the windows cannot be read.
    """
    # The newest window is left out: the first generation speaks for it, and a replay must find the same beginning.
    newest = windows.newest(job)
    last = -1 if newest is None else newest - 1
    found = windows.rates(job, max(last - KEPT_STEPS + 1, 0), last)
    first = found[0][0] if found else last + 1
    recent = series(found, first, last, windows.step_s)
    check(made, f"{model} version {version}", windows.step_s, recent)
    online = Online(made.forecaster)
    online.admit(job, recent)
    warm = online.state(job)
    # A rehearsal: what is compiled at its first use is compiled here, not between two events.
    online.restore(job, warm, recent)
    online.step(job, float(recent.values[-1]) if len(recent) else 0.0)
    online.forget(job)
    return Ready(job, model, version, made, online, warm, first, last)
