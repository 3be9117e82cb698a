"""A job's contract compiled: what its file states of a shared job, and the rest by promise and executors."""

from __future__ import annotations

from typing import Any, NamedTuple

from configs.backpressure import Backpressure, StatedBox, StatedPath
from configs.bounds import Section
from configs.contract import LEAST_BUDGET, Contract
from models.contract.declared import TermsError
from models.contract.promised.level import path_limit_ms, records_level
from models.contract.terms import LIVE, Terms, compile_terms


class SustainedRates(NamedTuple):
    """Records/s that the fewest and the most executors of a contract sustain."""

    least_rps: float
    most_rps: float


def derive_terms(contract: Contract, rates: SustainedRates) -> Terms:
    """Compile a contract; what it does not state follows from it.

    - path: the whole query, called as the job, within its latency target, at the level that its error budget comes to
      (`level`); stretches of half a batch are the shortest that are reckoned with. A live path that is stated stands in
      its place.
    - scales: the target, all cores, the error budget (or the strictest relative error that is stated), the most rate.
    - lag: target and catch-up time together, beyond the watermark's own delay: what a backlog that is worked off as
      planned comes to.
    - boxes: the replay from 0 to what the most executors sustain; live records, if they may be held back at all, from
      what the fewest sustain to what the most do. A least that is stated above the most is that.

    Args:
        contract: of the job.
        rates: by what is known of its batches.

    Raises:
        TermsError: what is stated does not go together with what follows.
    """
    stated, target_s = contract.backpressure or Backpressure(), contract.latency_target_s
    budget = max(contract.error_budget, LEAST_BUDGET)
    level = records_level(budget, contract.batch_s / 2)
    paths = [_path(contract, path, level) for path in stated.paths]
    if not any(path["class"] == LIVE for path in paths):
        paths.insert(0, _path(contract, StatedPath(), level))
    relative = [limit.eps_rel for limit in stated.error.values() if limit.eps_rel is not None]
    scales = {
        "latency_ms": 1000 * target_s,
        "energy_cores": contract.executors.max * contract.executors.cores,
        "error_rel": min(relative, default=budget),
        "goodput_rps": rates.most_rps,
    }
    boxes = stated.controls
    controls = {
        "replay_rps": _box(boxes.replay_rps, 0.0, rates.most_rps), "theta": boxes.theta.model_dump(),
    }  # fmt: skip
    if boxes.live_rps is not None:
        controls["live_rps"] = _box(boxes.live_rps, rates.least_rps, rates.most_rps)
    derived = {
        "name": contract.job, "scales": {**scales, **_said(stated.scales)}, "controls": controls, "paths": paths,
        "lag": {"max_ms": 1000 * (target_s + contract.planning.catch_up_s)},
    }  # fmt: skip
    return compile_terms({**derived, **_others(stated)})


def _others(stated: Backpressure) -> dict[str, Any]:
    """The parts that have one form in file and terms."""
    own = ("paths", "scales", "controls", "admit_by", "apart")
    return {name: value for name, value in _said(stated).items() if name not in own}


def _said(part: Section) -> dict[str, Any]:
    """What is stated of a part; an empty list of operators states none."""
    return {name: value for name, value in part.model_dump().items() if not (name == "ops" and not value)}


def _path(contract: Contract, stated: StatedPath, level: float) -> dict[str, Any]:
    level = level if stated.quantile is None else stated.quantile
    limit_ms = path_limit_ms(contract.latency_target_s, level, contract.batch_s)
    return {"ops": (contract.job,), "quantile": level, "max_ms": limit_ms, **_said(stated)}


def refuse_unsustained(contract: Contract, rates: SustainedRates) -> None:
    """Refuse a rate that is stated as the least of a control and is more than the most executors sustain.

    Args:
        contract: of the job.
        rates: by its first guess; where its batches turn out slower, the least that is stated falls with them.

    Raises:
        TermsError: as said.
    """
    controls = (contract.backpressure or Backpressure()).controls
    for name, box in (("replay_rps", controls.replay_rps), ("live_rps", controls.live_rps)):
        if box is not None and box.min is not None and box.max is None and box.min > rates.most_rps:
            most = f"the most executors sustain {rates.most_rps:.4g} records/s"
            raise TermsError(f"controls.{name}.min={box.min:g}: {most}. State less, or a max above it.")


def _box(stated: StatedBox, least_rps: float, most_rps: float) -> dict[str, float]:
    box = {"min": least_rps, "max": most_rps, **_said(stated)}
    return {**box, "min": min(box["min"], box["max"])}
