"""What was changed last of a running job, while it is on trial, and which placements did no good: a file beside it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np

from models.placement.learned.online import BARRED_S, Scheduled, StepOutcome
from pipelines.placement.job_folder import JobFolder
from pipelines.whole_file import write_json

FILE = "trial.json"


def read_trial(folder: JobFolder) -> Scheduled:
    """Return what is known of a job's last change, without its measured steps.

    Where its queries were moved since by another, the change is as old as that, and on nobody's trial. A file that
    another program wrote to tells of nothing.

    Args:
        folder: of the job.
    """
    moved_s = folder.wanted_since_s()
    try:
        known = trial_from_json(json.loads((folder.path / FILE).read_text()))
    except (OSError, ValueError, TypeError, KeyError):
        return Scheduled(changed_s=moved_s)
    return known if known.changed_s >= moved_s else replace(known, changed_s=moved_s, before=None)


def write_trial(folder: JobFolder, state: Scheduled) -> None:
    """Keep what is known of a job's last change.

    Raises:
        OSError: the file cannot be written.
    """
    write_json(folder.path / FILE, trial_as_json(state))


def put_in_force(state: Scheduled, changed_s: float) -> Scheduled:
    """Return what is kept of a change once it is in force: what it bars is barred from then on.

    Args:
        state: as it was proposed, maybe twelve hours before.
        changed_s: when it was put in force, epoch seconds.
    """
    by_it = state.changed_s + BARRED_S
    barred = tuple((key, changed_s + BARRED_S if until_s == by_it else until_s) for key, until_s in state.barred)
    return replace(state, changed_s=changed_s, barred=barred)


def trial_as_json(state: Scheduled) -> dict[str, Any]:
    """Return the JSON values of it, of which `trial_from_json` makes the same again; measured steps are left out."""
    before = None
    if state.before is not None:
        counts, step = state.before
        before = {"counts": counts.tolist(), "step": list(step)}
    barred = [[np.frombuffer(key, np.int64).tolist(), until_s] for key, until_s in state.barred]
    changed_s = state.changed_s if math.isfinite(state.changed_s) else None
    return {"changed_s": changed_s, "before": before, "barred": barred}


def trial_from_json(told: Any) -> Scheduled:
    """Return what `trial_as_json` wrote.

    Raises:
        ValueError, TypeError, KeyError: it did not.
    """
    before, changed_s = told["before"], told["changed_s"]
    return Scheduled(
        changed_s=-math.inf if changed_s is None else float(changed_s),
        before=None if before is None else (
            np.array(before["counts"], np.int64), StepOutcome(*map(float, before["step"]))
        ),
        barred=tuple((np.array(flat, np.int64).tobytes(), float(until_s)) for flat, until_s in told["barred"]),
    )  # fmt: skip
