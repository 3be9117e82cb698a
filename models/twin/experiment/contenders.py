"""The policies that a comparison runs: those of the catalogue with their hyper-parameters, and variants of our own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import LEARNED, LISTENERS
from models.policy.catalogue import UTILISATION_KNOBS, build, entry, select_names
from models.policy.core.capacity import Floats
from models.twin.experiment.foresight import FORECASTERS, LEVELS
from models.twin.experiment.scenario import Scenario

TRUTH = "truth"
TRUE_FUTURE, LAST_VALUE = "true_future", "last_value"
OURS = ("forecast", "mpc", "dqn")
UNFORECAST = ("mpc:none", "mpc:last_value")
"""The same planner without a forecast and with the last value: what it saves beyond them, forecasting saves."""
REACTIVE = ("hpa", "ds2", "keda", "spark_dstream", "spark_microbatch", "flink", "reactive")
"""Policies that use no forecast."""
DEFAULTS = ("hpa", "flink", "keda", "spark_dstream")
"""Policies that are also compared at their usual settings."""
USUAL_HOLD_S = 30.0
"""Hold of a job that decides every 15 s; the times below are for such a job and are scaled for others."""

Axis = dict[str, tuple[float, ...]]
DELAYS: Axis = {"down_delay_s": (60.0, 300.0, 900.0)}
USE: Axis = {"utilisation": (1.0, 1.08)}
HOLD: Axis = {"hold_s": (30.0, 120.0, 300.0)}
MARGIN: Axis = {"margin": (1e9, 0.0)}
"""Whether the DQN policy follows the advice (1e9), or departs from it as it learned to (0)."""
SPARE = ("utilisation", UTILISATION_KNOBS)
"""What is swept of `mpc` without a forecast: its price has next to no effect then, and only spare capacity helps."""
HEARING: Axis = {"level": (0.5, 0.75, 0.9, 0.95), "memory_steps": (1.0, 3.0)}
AXES = {"forecast": (HEARING, DELAYS), "reactive": (DELAYS,), "mpc": (USE, HOLD), "dqn": (USE, HOLD | MARGIN)}
"""Grids of hyper-parameters by policy; the baseline of `dqn` is an `mpc`."""


@dataclass(frozen=True)
class Setting:
    """A policy's hyper-parameters, apart from the one (its knob) that is swept.

    Attributes:
        fields: fields of the policy, as (name, value).
        memory_steps: forecast steps after which 1/e of the forecast's present error is still corrected for.
        level: quantile of the forecast that the policy receives; None for all of them.
    """

    fields: tuple[tuple[str, float], ...] = ()
    memory_steps: float = 1.0
    level: float | None = None

    def plus(self, values: dict[str, float]) -> Setting:
        """Return a copy with other values; names that are no attribute are taken for fields of the policy."""
        own = {name: value for name, value in values.items() if name in ("memory_steps", "level")}
        others = dict(self.fields) | {name: value for name, value in values.items() if name not in own}
        return replace(self, fields=tuple(sorted(others.items())), **own)


@dataclass(frozen=True, eq=False)
class Contender:
    """A policy that takes part in a comparison.

    Attributes:
        name: in the results.
        policy: its name in the catalogue.
        forecaster: whose forecasts it receives: one of `foresight.FORECASTERS`, `TRUTH`, or empty for none.
        setting: hyper-parameters to begin with.
        axes: grids of hyper-parameters that are searched on the tuning part, one after the other.
        learned: what the policy needs beside a contract, such as an agent; a timetable is learned from each trace
            instead.
        swept: field that is swept in place of the policy's knob, and its values; None: the knob.
        beside: values of the knob that run on the test part beside those chosen, as the one with which it serves.
    """

    name: str
    policy: str
    forecaster: str = ""
    setting: Setting = Setting()
    axes: tuple[Axis, ...] = ()
    learned: Any = None
    swept: tuple[str, tuple[float, ...]] | None = None
    beside: tuple[float, ...] = ()

    def knob_values(self, contract: Contract) -> tuple[float, ...]:
        """Return the values that are swept at first; SettingsError for an unknown policy."""
        return self.swept[1] if self.swept else entry(self.policy).knob_values(contract)

    @property
    def uses_forecast(self) -> bool:
        """Whether the policy receives any forecast."""
        return bool(self.forecaster) and self.policy in LISTENERS


class Sweep(NamedTuple):
    """A policy's runs on one scenario: its hyper-parameters there, and (N,) values of its knob (swept parameter)."""

    scenario: Scenario
    setting: Setting
    knobs: Floats


class Trial(NamedTuple):
    """A contender on a sweep: its runs on one scenario."""

    contender: Contender
    sweep: Sweep


def select_contenders(
    names: Iterable[str], contract: Contract, learned: dict[str, Any] | None = None, live: bool = False
) -> tuple[list[Contender], dict[str, str]]:
    """Select the policies to compare, with their variants.

    Beside `mpc` stand its variants without a forecast and with the last value (`UNFORECAST`); `true_future`, which is
    `forecast` with the true load, is always there.

    Args:
        names: of the catalogue, or "all".
        contract: of the job (latency target, executor bounds, planning) for which they are to be built.
        learned: what was learned, by policy; `dqn` needs an agent.
        live: whether the contract is the job's own, whose hyper-parameters are then kept instead of tuned.

    Returns:
        The contenders, the variants last, and by name why others of "all" are left out (a message).

    Raises:
        SettingsError: an unknown name, or a policy asked for by name that cannot be built.
    """
    asked = list(names)
    found, left_out = [], {}
    for name in select_names(asked):
        one = make_contender(name, (learned or {}).get(name))
        reason = "" if name == "schedule" else _missing(one, contract)
        if reason and name in asked:
            raise SettingsError(reason)
        if reason:
            left_out[name] = reason
        else:
            found.append(one)
    if "mpc" in {one.name for one in found}:
        found += [with_forecaster(make_contender("mpc"), forecaster) for forecaster in ("", LAST_VALUE)]
    found.append(replace(with_forecaster(make_contender("forecast"), TRUTH), name=TRUE_FUTURE))
    return [_as_live(one, contract) if live else _paced(one, contract) for one in found], left_out


def forecasters_of(contenders: Iterable[Contender]) -> list[str]:
    """Return those of `foresight.FORECASTERS` whose forecasts some of the contenders receive, in that order."""
    heard = {one.forecaster for one in contenders if one.uses_forecast}
    return [name for name in FORECASTERS if name in heard]


def ablations(found: Iterable[Contender]) -> list[Contender]:
    """Return variants: `forecast` with the last value and `mpc` with the true load, of those among the contenders."""
    other = {"forecast": LAST_VALUE, "mpc": TRUTH}
    return [with_forecaster(one, other[one.name]) for one in found if one.name in other]


def make_contender(name: str, learned: Any = None) -> Contender:
    """Return the policy of that name with the blend as forecaster, if it uses one, and the grids it is tuned over."""
    setting = Setting(level=0.9) if name == "forecast" else Setting()
    return Contender(name, name, "blend" if name in OURS else "", setting, AXES.get(name, ()), learned)


def with_forecaster(one: Contender, forecaster: str) -> Contender:
    """Return a copy of a contender (policy in a comparison) with another forecaster, named `<name>:<forecaster>`.

    Args:
        one: to copy; grids over the forecast's hyper-parameters are dropped for `TRUTH` and for none.
        forecaster: "blend", "last_value", `TRUTH` (the true load), or empty for none (named `<name>:none`).
    """
    axes = tuple(axis for axis in one.axes if axis != HEARING or forecaster not in (TRUTH, ""))
    swept = one.swept
    if one.policy == "mpc" and not forecaster:
        axes, swept = tuple(axis for axis in axes if axis != USE), SPARE
    name = f"{one.name}:{forecaster or 'none'}"
    return replace(one, name=name, forecaster=forecaster, axes=axes, swept=swept)


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
