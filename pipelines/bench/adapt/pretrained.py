"""One network pre-trained on all other loads at once, moved to a short history in several ways, beside no source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from models.adapt.candidates import (
    TransferSource,
    adapt_to_target,
    decide_on_gate_part,
    fit_own_candidates,
    pretrain_source,
    score_source_only,
)
from models.adapt.target_load import TargetLoad
from models.adapt.training import LossWeights, TransferPlan
from models.forecast.core.series import Floats, Series
from pipelines.bench.adapt.adaptation import SEED, SERVED_DAYS, Study, errors_while_served, older_part, place_cuts

LONGER = 4
"""Times as many batches of pre-training as on one load."""
DRAWS = 2000
DISCREPANCY = (LossWeights(0.0, 0.1), LossWeights(0.1, 0.0), LossWeights(0.1, 0.1))
WAYS: dict[str, Callable[[TransferPlan], TransferPlan]] = {
    "fine-tuned": lambda plan: replace(plan, adapting=0, grid=(LossWeights(),)),
    "trained on both, fine-tuned": lambda plan: replace(plan, grid=(LossWeights(),)),
    "the same with MMD, CMMD": lambda plan: replace(plan, grid=DISCREPANCY),
}
"""How the network is moved; beside these it is taken as it is."""
AS_IS = "as it is"


@dataclass(frozen=True, eq=False)
class PretrainedCase:
    """How one pre-trained network forecasts a target from one moment on.

    Attributes:
        target: name of the load that is forecast.
        days: of its history.
        accepted: the ways whose network the four-way gate would let serve.
        ratios: by way, RMSE over all steps ahead ÷ that of what serves without a source and learns while it does.
    """

    target: str
    days: float
    accepted: tuple[str, ...]
    ratios: dict[str, float]


def evaluate_pretrained(
    loads: Mapping[str, Series], study: Study, report_progress: Callable[[str], None]
) -> Iterator[PretrainedCase]:
    """Forecast every load from a short history with a network that was pre-trained on all others.

    Of a load that others learn from only the part of `older_part` is, and none that reaches into the days that are
    judged. Lazy; blocks a minute per target and cut.

    Args:
        loads: as in `evaluate_pairs`.
        study: cuts, lengths of history and settings.
        report_progress: called with a line of text as each target is done.

    Raises:
        SeriesError: as `evaluate_pairs`.
    """
    day = study.task.day
    for name, load in loads.items():
        for cut in place_cuts(len(load), day, study.cuts):
            begin, end = (load.start + at * load.step_s for at in (cut, cut + SERVED_DAYS * day))
            older = [older_part(other, day) for named, other in loads.items() if named != name]
            before = [one.values for one in older if not (one.start < end and begin < one.end)]
            plan = replace(study.plan, pretraining=LONGER * study.plan.pretraining)
            source = pretrain_source(before, study.task.horizon, plan, SEED)
            for days in study.days:
                if cut >= days * day:
                    yield _case(name, load, cut, days, source, study)
        report_progress(f"{name} was served by a network pre-trained on all others")


def summarise_pretrained(cases: Sequence[PretrainedCase]) -> dict[str, Any]:
    """Summarise cases: geometric means of the ratios over targets, with 95 % intervals by a bootstrap over targets.

    Returns:
        `days`: by days of history as text, by way, `targets`, `geometric_mean`, `low`, `high`, `worst`, and `accepted`
        (share of the cases that the gate would let serve); `rows`: the same as rows of a table.
    """
    frame = pd.DataFrame([
        {"days": f"{case.days:g}", "target": case.target, "way": way, "log": np.log(ratio), "let": way in case.accepted}
        for case in cases for way, ratio in case.ratios.items()
    ])  # fmt: skip
    found: dict[str, Any] = {}
    for (days, way), one in frame.groupby(["days", "way"], sort=False):
        by_target = one.groupby("target")["log"].mean().to_numpy()
        drawn = np.random.default_rng(SEED).choice(by_target, (DRAWS, len(by_target))).mean(axis=1)
        low, high = np.exp(np.quantile(drawn, [0.025, 0.975]))
        found.setdefault(str(days), {})[str(way)] = {
            "targets": len(by_target), "geometric_mean": float(np.exp(by_target.mean())), "low": float(low),
            "high": float(high), "worst": float(np.exp(by_target.max())), "accepted": float(one["let"].mean()),
        }  # fmt: skip
    rows = [
        {
            "days of history": days, "the network": way, "RMSE ÷ without a source": round(data["geometric_mean"], 3),
            "95 % interval": f"{data['low']:.3f} to {data['high']:.3f}", "worst load": round(data["worst"], 3),
            "let in by the gate": round(data["accepted"], 2),
        }
        for days, ways in found.items() for way, data in ways.items()
    ]  # fmt: skip
    return {"days": found, "rows": rows}


def _case(name: str, load: Series, cut: int, days: float, source: TransferSource, study: Study) -> PretrainedCase:
    day = study.task.day
    steps = round(days * day)
    values = load.values[cut - steps : cut + SERVED_DAYS * day]
    known, held = Series(load.start + (cut - steps) * load.step_s, load.step_s, values).split(SERVED_DAYS * day)
    target = TargetLoad(values, steps, day, study.task.horizon)
    alone = errors_while_served(study.choose_forecaster(known, {}).forecaster, known, held)
    own, as_is = fit_own_candidates(target, study.plan, SEED), score_source_only(target, source)
    made, accepted = {AS_IS: as_is.errors}, []
    for way, plan in WAYS.items():
        _, _, moved = adapt_to_target(target, source, plan(study.plan), SEED)
        made[way] = moved.errors
        if decide_on_gate_part(target, own, as_is, moved).accepted:
            accepted.append(way)
    served = slice(target.history - 1, -1)
    return PretrainedCase(
        name, days, tuple(accepted), {way: _ratio(errors[served], alone) for way, errors in made.items()}
    )


def _ratio(mine: Floats, theirs: Floats) -> float:
    known = np.isfinite(mine) & np.isfinite(theirs)
    return float(np.sqrt(np.mean(mine[known] ** 2) / np.mean(theirs[known] ** 2)))
