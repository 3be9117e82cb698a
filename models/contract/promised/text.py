"""What a contract was understood to say, in lines for a terminal."""

from __future__ import annotations

from dataclasses import astuple

from configs.contract import Contract
from models.contract.promised.derive import SustainedRates
from models.contract.terms import ControlBox, Terms

_UNMEASURED = "(checked only: nothing measures it of a running job)"
_UNDONE = "(not of a running job: there it reaches no query)"
_PASSED = "(passed over in a running job: nothing there asks for maintenance)"
_PASSED_ERRORS = "(passed over in a running job: there they reach no query)"


def describe_terms(contract: Contract, rates: SustainedRates, terms: Terms) -> list[str]:
    """Describe promise, paths, scales, limits, boxes and ladder of a contract and its compiled form, a line each."""
    scales, bounds = terms.scales, contract.executors
    weights = ", ".join(f"{value:g}" for value in astuple(terms.weights))
    cores = "1 core" if bounds.cores == 1 else f"{bounds.cores} cores"
    lines = [
        f"{contract.job}: contract {contract.hash}, terms {terms.hash}",
        f"promise: {1 - contract.error_budget:.4%} of the seconds of any {contract.window_days:g} days within "
        f"{contract.latency_target_s:g} s",
        f"times of backfills in {contract.timezone or 'the zone of the setting replay.timezone'}",
        f"executors: {bounds.min} to {bounds.max} of {cores}, by the contract's first guess for "
        f"{rates.least_rps:.4g} to {rates.most_rps:.4g} records/s; more is learned from batches",
    ]
    lines += [
        f"path: {path.kind}, {' > '.join(path.ops)}: {path.quantile:.4%} of the records within {path.max_ms:.0f} ms"
        for path in terms.paths
    ]
    lines += [
        f"scales: latency {scales.latency_ms:g} ms, energy {scales.energy_cores:g} cores, error {scales.error_rel:g}, "
        f"goodput {scales.goodput_rps:.4g} records/s; weights {weights}",
        *_limits(terms),
        f"replay: {_range(terms.controls.replay_rps)}, decided every {terms.interval_s} s {_beside(contract)}",
        f"priorities: live {terms.priorities.live}, maintenance {terms.priorities.maintenance}, replay "
        f"{terms.priorities.replay} (not of a running job: there live records always go first)",
        f"shares of tenants: {terms.fairness.policy} {_UNDONE}",
        f"seed of sampling: {terms.seed} {_UNDONE}",
        "relief, while a limit is violated:",
    ]
    return [*lines, *(f"  {at} {step}" for at, step in enumerate(_ladder(contract, terms), start=1))]


def _limits(terms: Terms) -> list[str]:
    most = terms.util_max
    said = [f"busy at most cpu {most.cpu:g}, memory {most.mem:g}, network {most.net:g}, disk {most.disk:g}"]
    if lag := terms.lag:
        said.append(f"watermark at most {lag.max_ms:.0f} ms behind, growing by at most {lag.drift_max:g} ms/s")
    if terms.memory:
        said.append(f"memory {terms.memory.max_bytes:.4g} bytes")
    if terms.energy:
        said.append(f"{terms.energy.max_cores:g} busy cores")
    if terms.net:
        said.append(f"{terms.net.bytes_per_record_max:g} bytes sent per record")
    said += [f"recall of {name} at least {limit.min:g}" for name, limit in sorted(terms.recall.items())]
    said = [f"{line} {_UNMEASURED}" for line in said]
    for name, limit in sorted(terms.error.items()):
        bound = f"{limit.eps_abs:g}" if limit.eps_abs is not None else f"{limit.eps_rel:.4%}"
        said.append(f"error of {name} at most {bound} with probability {1 - limit.pf:g}")
    return [f"limit: {line}" for line in said]


def _ladder(contract: Contract, terms: Terms) -> list[str]:
    live, shed = terms.controls.live_rps, terms.shed
    unnamed = "never: controls.live_rps is not stated"
    errors = f"{', '.join(sorted(terms.error))} go to their error limits {_PASSED_ERRORS}"
    return [
        "the replay stops",
        f"maintenance falls to {terms.fairness.floor:.0%} of the capacity {_PASSED}",
        errors if terms.error else "approximate operators go to their error limits (passed over: there are none)",
        f"executors are asked for, {contract.executors.max} at most",
        f"live records are held back, the lowest tenant first: {unnamed if live is None else _range(live)}",
        f"records are shed: {f'at most {shed.max_fraction:.2%} {_UNDONE}' if shed.allowed else 'never'}",
    ]


def _beside(contract: Contract) -> str:
    return f"beside live records as {'forecast' if contract.admits_by_forecast else 'they come, whatever is forecast'}"


def _range(box: ControlBox) -> str:
    return f"{box.min:.4g} to {box.max:.4g} records/s, in steps of {box.slew:.0%} of the most per interval"
