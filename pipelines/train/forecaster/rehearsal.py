"""Rehearses a job's policies on its past when its forecaster is trained; what they learn is stored with the version."""

from __future__ import annotations

from typing import NamedTuple

from configs.bounds import DAY_S
from configs.contract import load_contract
from configs.policies import LISTENERS
from configs.settings import Settings
from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Series
from models.policy.live.learned_lead import LearnedLead, lead_quantiles, plan_contract
from models.policy.received.peak_calibrator import PeakCalibrator
from models.policy.received.rehearsal import Rehearsal, promised
from models.twin.experiment.peak_training import LEAST_S, STEPS, UNFITTED, learn_calibrator
from models.twin.experiment.rehearsal import find_starts
from models.twin.experiment.setup import Setup
from pipelines.lake.load import LakeSeries
from pipelines.train.twin import fit_twin, twin_setup


class LiveJob(NamedTuple):
    """How a job runs: contract, twin (simulator) and clock, and whether the twin was fitted to what the job did."""

    setup: Setup
    measured: bool


def read_live_job(settings: Settings, job: str, source: LakeSeries) -> LiveJob | None:
    """Return how a job runs; None where it has no contract (YAML of latency target and executor bounds).

    Its lead time is the one that the autoscaler plans for after the outcomes that the lake has, of a job as busy as is
    aimed for.

    Args:
        settings: folders of contracts and stored fits, and the speed of a replay.
        job: its name.
        source: what the lake has of it.

    Raises:
        KeyError: an outcome lacks a field.
        SettingsError: the contract cannot be read, or a key or value in it is wrong.
        TwinError: a stored fit of the twin cannot be read or is unfinished.
    """
    if not (settings.contracts_dir / f"{job}.yaml").is_file():
        return None
    contract = load_contract(job, settings.contracts_dir)
    known = LearnedLead.guess(contract.planning)
    for outcome in source.outcomes:
        known = known.learn_outcome(outcome)
    lead = lead_quantiles(known, contract, contract.planning.utilisation)
    planned = plan_contract(known, contract, lead)
    twin = fit_twin(settings, planned, source)
    return LiveJob(twin_setup(settings, planned, twin.job), twin.measured)


def rehearse(forecaster: Forecaster, series: Series, live: LiveJob | None) -> Rehearsal:
    """Learn from a job's past how its peaks are forecast and, in a twin that was fitted, where steering begins.

    A guessed twin would tell nothing of the latter: how strict a policy must be hangs on what executors really do.

    Args:
        forecaster: whose forecasts policies hear.
        series: the job's load, records/s, on its own clock; gaps (NaN) are interpolated linearly.
        live: how the job runs; None: nothing is learned.

    Raises:
        SeriesError, TwinError: a load is negative or infinite, or the series has another step than the forecaster.
    """
    if live is None:
        return Rehearsal()
    setup = live.setup
    peaks = learn_calibrator(forecaster, series, setup.contract.planning, setup.speed)
    starts = find_starts(forecaster, series, setup) if live.measured else {}
    knobs, hours = ({policy: start[at] for policy, start in starts.items()} for at in (0, 1))
    return Rehearsal(peaks, knobs, hours, promised(setup.contract) if starts else ())


def describe_rehearsal(rehearsal: Rehearsal, forecaster: Forecaster, live: LiveJob | None) -> str:
    """Describe for the model card what policies learned of the past, or why they learned nothing.

    Returns:
        A few sentences: lead time and hold (wall seconds) that peaks were learned for and the loss in each as a share
        of that of taking the present rate as forecast; where the promise is steered from, and what hearing the forecast
        saved. "" where `live` is None.
    """
    if live is None:
        return ""
    found = ", ".join(f"{policy} {knob:.2g}" for policy, knob in rehearsal.starts.items())
    starts = f" The promise is steered from: {found} (half the error budget on the past, in the twin)." if found else ""
    saved = {policy: rehearsal.saved(policy, live.setup.contract) for policy in LISTENERS}
    worth = ", ".join(f"{policy} {share:+.1%}" for policy, share in saved.items() if share is not None)
    worth = f" Executor-hours saved beside `reactive` at that: {worth}." if worth else ""
    return _peaks(rehearsal.peaks, forecaster, live.setup) + starts + worth


def _peaks(peaks: PeakCalibrator | None, forecaster: Forecaster, live: Setup) -> str:
    if peaks is None:
        return f"Peaks: none learned, {_why(forecaster, live)}. Policies read the forecaster's own quantiles."
    return (
        f"Peaks: learned for {peaks.lead_s:g} s until an executor works and {peaks.hold_s:g} s after; loss "
        f"{peaks.soon.gain:.2f} and {peaks.then.gain:.2f} of that of the present rate alone."
    )


def _why(forecaster: Forecaster, live: Setup) -> str:
    step_s, days = forecaster.step_s / live.speed, 1.5 * LEAST_S * live.speed / DAY_S
    if live.contract.planning.lead_s < 1:
        return f"an executor works after {live.contract.planning.lead_s:g} s"
    if not isinstance(forecaster, UNFITTED):
        return f"a {forecaster.kind} that was fitted to this past is too sure there"
    if step_s * STEPS < LEAST_S:
        return f"{STEPS} steps of {step_s:.2g} s on the wall are less than half a day"
    return f"it takes {days:.3g} days of the load"
