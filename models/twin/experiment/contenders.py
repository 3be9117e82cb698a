"""Who takes part in a contest: every policy of the catalogue, and our planners with other calibrator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import LEARNED
from models.policy.catalogue import build, named
from models.twin.experiment.foresight import LEVELS
from models.twin.experiment.lanes import TRUTH, Contender, Setting

TRUE_FUTURE, LAST_VALUE = "true_future", "last_value"
PLANNERS = ("reactive", "forecast")
OURS = ("forecast", "mpc", "dqn")
UNFORECAST = ("mpc:none", "mpc:last_value")
"""The same planner without a forecast and with the last value: what it saves beyond them, forecasting saves."""
REACTIVE = ("hpa", "ds2", "keda", "spark_dstream", "spark_microbatch", "flink", "reactive")
"""Those that go by what they observe alone."""
DEFAULTS = ("hpa", "flink", "keda", "spark_dstream")
"""What people run today, compared as it is shipped."""
USUAL_HOLD_S = 30.0
"""Of a job that decides every 15 s, for which the times below are meant."""
DELAYS: dict[str, tuple[float, ...]] = {"down_delay_s": (60.0, 300.0, 900.0)}
USE: dict[str, tuple[float, ...]] = {"utilisation": (1.0, 1.08)}
HOLD: dict[str, tuple[float, ...]] = {"hold_s": (30.0, 120.0, 300.0)}
MARGIN: dict[str, tuple[float, ...]] = {"margin": (1e9, 0.0)}
"""Whether the agent does what it is advised, or departs from it as it learned to."""
ALONE: dict[str, tuple[float, ...]] = {"utilisation": (0.6, 0.7, 0.8, 0.9, 1.0, 1.08)}
"""Without a forecast its price moves nothing, and room is the only way to be safe."""
HEARING: dict[str, tuple[float, ...]] = {"level": (0.5, 0.75, 0.9, 0.95), "memory_steps": (1.0, 3.0)}


def contenders(
    names: Iterable[str], contract: Contract, learned: dict[str, Any] | None = None, live: bool = False
) -> tuple[list[Contender], dict[str, str]]:
    """The policies of these names ("all" for every one), and why others are left out.

    `true_future` is always among them, and beside `mpc` stand `UNFORECAST`.

    Args:
        names: of the catalogue.
        contract: for which they are to be built.
        learned: what was learned, by policy.
        live: whether the contract is the job's own: nothing but the knob differs from what would run then.

    Raises:
        SettingsError: an unknown name; or a policy asked for by name that cannot be built.
    """
    asked = list(names)
    found, left_out = [], {}
    for name in named(asked):
        one = contender(name, (learned or {}).get(name))
        reason = "" if name == "schedule" else _missing(one, contract)
        if reason and name in asked:
            raise SettingsError(reason)
        if reason:
            left_out[name] = reason
        else:
            found.append(one)
    if "mpc" in {one.name for one in found}:
        found += [
            with_forecaster(contender("mpc"), name.partition(":")[2].replace("none", ""), name) for name in UNFORECAST
        ]
    found.append(with_forecaster(contender("forecast"), TRUTH, TRUE_FUTURE))
    return [_as_live(one, contract) if live else _paced(one, contract) for one in found], left_out


def ablations(found: Iterable[Contender]) -> list[Contender]:
    """`forecast` with the last value, and `mpc` with the true future, where they are among them."""
    calibrator = {"forecast": LAST_VALUE, "mpc": TRUTH}
    return [
        with_forecaster(one, calibrator[one.name], f"{one.name}:{calibrator[one.name]}")
        for one in found
        if one.name in calibrator
    ]


def contender(name: str, learned: Any = None) -> Contender:
    """The policy of that name with what it hears, and the hyper-parameters that are chosen for it."""
    if name == "forecast":
        setting = Setting(level=0.9)
        return Contender(name, name, "blend", setting, (HEARING, DELAYS))
    if name == "reactive":
        return Contender(name, name, axes=(DELAYS,))
    if name == "mpc":
        return Contender(name, name, "blend", axes=(USE, HOLD))
    if name == "dqn":  # its baseline is an mpc
        return Contender(name, name, "blend", axes=(USE, HOLD | MARGIN), learned=learned)
    return Contender(name, name, learned=learned)


def with_forecaster(one: Contender, hears: str, name: str) -> Contender:
    """The same policy, hearing somebody else."""
    axes = tuple(axis for axis in one.axes if axis != HEARING or hears not in (TRUTH, ""))
    if one.policy == "mpc" and not hears:
        axes = tuple(ALONE if axis == USE else axis for axis in axes)
    return Contender(name, one.policy, hears, one.setting, axes, one.learned)


def _as_live(one: Contender, contract: Contract) -> Contender:
    """With the contract's own hyper-parameters; whether an agent departs from its advice is still chosen."""
    nearest = min(LEVELS, key=lambda level: abs(level - contract.planning.quantile))
    setting = one.setting if one.setting.level is None else Setting(level=nearest)
    return replace(one, setting=setting, axes=(MARGIN,) if one.policy in LEARNED else ())


def _paced(one: Contender, contract: Contract) -> Contender:
    """With its times shorter where a job decides more often than every 15 s."""
    pace = contract.planning.hold_s / USUAL_HOLD_S
    axes = tuple(
        {name: tuple(v * pace for v in values) if name.endswith("_s") else values for name, values in axis.items()}
        for axis in one.axes
    )
    return replace(one, axes=axes)


def _missing(one: Contender, contract: Contract) -> str:
    if one.policy in LEARNED and one.learned is None:
        return f"policy {one.name!r} has no agent; train one and name it with --agent"
    try:
        build(one.policy, contract, one.learned)
    except SettingsError as error:
        return str(error)
    return ""
