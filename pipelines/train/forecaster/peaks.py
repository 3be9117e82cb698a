"""Fits the peak calibrator of a job's policies when its forecaster is trained; it is stored with the version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from configs.contract import Planning, load_contract
from configs.settings import Settings
from models.forecast.core.forecaster import DAY_S, Forecaster
from models.forecast.core.series import Series
from models.policy.live.learned_lead import LearnedLead, lead_quantiles
from models.policy.received.peak_calibrator import PeakCalibrator
from models.twin.experiment.peak_training import LEAST_S, STEPS, UNFITTED, learn_calibrator


@dataclass(frozen=True)
class LiveJob:
    """How a job runs.

    Attributes:
        planning: lead time, hold and tuned parameters, from its contract.
        scale: seconds of job time per second of wall time.
    """

    planning: Planning
    scale: float


def read_live_job(settings: Settings, job: str, outcomes: Iterable[Mapping[str, Any]]) -> LiveJob | None:
    """Return how a job runs, from its contract (YAML of latency target and executor bounds); None where it has none.

    Its lead time is the one that the autoscaler plans for after these outcomes, of a job as busy as is aimed for.

    Args:
        settings: folder of the contracts, and the speed of a replay.
        job: its name.
        outcomes: fields of `tidecast.messages.Outcome`, oldest first.

    Raises:
        KeyError: an outcome lacks a field.
        SettingsError: the contract cannot be read, or a key or value in it is wrong.
    """
    if not (settings.contracts_dir / f"{job}.yaml").is_file():
        return None
    contract = load_contract(job, settings.contracts_dir)
    known = LearnedLead.guess(contract.planning.lead_s)
    for outcome in outcomes:
        known = known.learn_outcome(outcome)
    lead = lead_quantiles(known, contract, contract.planning.utilisation)
    return LiveJob(contract.planned_for(lead["planned_s"]).planning, settings.speed(job))


def fit_calibrator(forecaster: Forecaster, series: Series, live: LiveJob | None) -> PeakCalibrator | None:
    """Fit a peak calibrator to a job's past: how high the load goes while an executor starts, and in the hold after it.

    Args:
        forecaster: whose forecasts policies read.
        series: the job's load, records/s, on its own clock; gaps (NaN) are interpolated linearly.
        live: how the job runs.

    Returns:
        The calibrator, for the contract's lead time (to start an executor) and hold (for which it should then do). None
        without `live`, for a lead time under 1 s, for a forecaster that was fitted to this past, and for a past of
        which under 12 wall hours can be learned from.

    Raises:
        SeriesError, TwinError: a load is negative or infinite, or the series has another step than the forecaster.
    """
    return None if live is None else learn_calibrator(forecaster, series, live.planning, live.scale)


def describe_calibrator(calibrator: PeakCalibrator | None, forecaster: Forecaster, live: LiveJob | None) -> str:
    """Describe for the model card what `fit_calibrator` returned (which gives `calibrator`), or why it returned None.

    Returns:
        One or two sentences with lead time and hold (wall seconds) and the loss in each as a share of the loss of
        taking the present rate as forecast; "" where `live` is None.
    """
    if live is None:
        return ""
    if calibrator is None:
        return f"Peaks: none learned, {_why(forecaster, live)}. Policies read the forecaster's own quantiles."
    return (
        f"Peaks: learned for {calibrator.lead_s:g} s until an executor works and {calibrator.hold_s:g} s after; loss "
        f"{calibrator.soon.gain:.2f} and {calibrator.then.gain:.2f} of that of the present rate alone."
    )


def _why(forecaster: Forecaster, live: LiveJob) -> str:
    step_s, days = forecaster.step_s / live.scale, 1.5 * LEAST_S * live.scale / DAY_S
    if live.planning.lead_s < 1:
        return f"an executor works after {live.planning.lead_s:g} s"
    if not isinstance(forecaster, UNFITTED):
        return f"a {forecaster.kind} that was fitted to this past is too sure there"
    if step_s * STEPS < LEAST_S:
        return f"{STEPS} steps of {step_s:.2g} s on the wall are less than half a day"
    return f"it takes {days:.3g} days of the load"
