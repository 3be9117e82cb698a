"""What a job's policies learn of its peaks when its forecaster is trained: kept beside the version that serves."""

from __future__ import annotations

from dataclasses import dataclass

from configs.contract import Planning, load_contract
from configs.errors import SettingsError
from configs.settings import Settings
from models.forecast.forecaster import Forecaster
from models.forecast.series import Series
from models.policy.ears import Ears
from models.twin.schooling import LEAST_S, ears_of


@dataclass(frozen=True)
class Live:
    """How a job runs.

    Attributes:
        planning: of its contract.
        scale: seconds of its clock that pass in one on the wall.
    """

    planning: Planning
    scale: float


def live(settings: Settings, job: str) -> Live | None:
    """How a job of ours runs; None for one without a contract."""
    try:
        contract = load_contract(job, settings.contracts_dir)
    except SettingsError:
        return None
    return Live(contract.planning, settings.speed(job))


def learned(forecaster: Forecaster, series: Series, live: Live | None) -> Ears | None:
    """What the load's past says of its peaks in the words of a forecaster; None where that cannot be told."""
    return None if live is None else ears_of(forecaster, series, live.planning, live.scale)


def told(ears: Ears | None, live: Live | None) -> str:
    """The same in a sentence for the model card."""
    if live is None:
        return ""
    if ears is None:
        return (
            "Peaks: none learned; it takes a past of "
            f"{1.5 * LEAST_S * live.scale / 86400:.3g} days or more, and a forecaster that was not fitted to it. "
            "Policies hear the forecaster's own quantiles."
        )
    return (
        f"Peaks: learned for {ears.lead_s:g} s until an executor works and {ears.hold_s:g} s after; loss "
        f"{ears.soon.gain:.2f} and {ears.then.gain:.2f} of that of the present rate alone."
    )
