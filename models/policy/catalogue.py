"""Every policy by name: how it is built from a contract, the knob that a backtest sweeps, and its own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import POLICIES
from models.policy.core.capacity import Floats
from models.policy.core.paced import Paced
from models.policy.core.policy import Policy
from models.policy.core.steered import Steered
from models.policy.planners.mpc import Mpc
from models.policy.planners.planner import Planner
from models.policy.rules import ds2, flink, kubernetes, spark
from models.policy.rules.fixed import Schedule, Static
from models.policy.rules.md_stream import MdStream

MOST_KNOB_VALUES = 8
"""Most values of a knob (a policy's one tuned parameter) in a sweep."""
UTILISATION_KNOBS = (0.3, 0.45, 0.6, 0.75, 0.9, 1.0, 1.15, 1.4)
"""Knob values of policies by target utilisation; above 1, batches grow longer than planned, up to the target."""
BUSY_SHARE_KNOBS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
"""The same for policies by a measured busy share: that never passes 1, so a target of 1 would never ask for more."""


@dataclass(frozen=True)
class Entry:
    """One policy of the catalogue: its constructor and what a backtest varies.

    Attributes:
        make: builds it from its name, a contract and what it has learned (agent or timetable; None for the others).
        values: of its knob (the one parameter that a backtest sweeps), rising; empty: `knob_values` takes numbers of
            executors.
        usual_setting: the knob's usual setting; None where the contract gives it or there is none.
        interval_s: wall seconds between its own decisions; 0: at every call, None: the contract's `batch_s`.
        stricter: whether its knob (1) rises or (-1) falls towards fewer late seconds, so that the promise may steer it;
            0: nothing steers it.
    """

    make: Callable[[str, Contract, Any], Policy]
    values: tuple[float, ...] = ()
    usual_setting: float | None = None
    interval_s: float | None = 0.0
    stricter: int = 0

    def knob_values(self, contract: Contract) -> tuple[float, ...]:
        """Return the knob values that a backtest tries, rising.

        Without `values` of its own: at most `MOST_KNOB_VALUES` whole numbers of executors, evenly spread from the
        contract's least to its most, both included.
        """
        bounds = contract.executors
        return self.values or tuple(np.unique(np.rint(np.linspace(bounds.min, bounds.max, MOST_KNOB_VALUES))).tolist())


def _dqn(name: str, contract: Contract, learned: Any) -> Policy:
    """What is learned builds its policy itself, because `models.dqn` stands above this package."""
    if not callable(learned):
        raise SettingsError(f"policy {name!r} was given {learned!r}: it needs an agent. Train one first.")
    made: Policy = learned(name, contract)
    return made


CATALOGUE: dict[str, Entry] = {
    "static": Entry(Static.of),
    "hpa": Entry(kubernetes.Hpa.of, BUSY_SHARE_KNOBS, 0.7, kubernetes.SYNC_S),
    "ds2": Entry(ds2.Ds2.of, (0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 2.0, 4.0), 0.0, ds2.INTERVAL_S),
    "keda": Entry(kubernetes.Keda.of, (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0), 1.0, kubernetes.SYNC_S),
    "spark_dstream": Entry(spark.SparkDstream.of, (0.5, 0.6, 0.75, 0.9, 1.1, 1.4, 1.8, 2.4), 0.9, spark.INTERVAL_S),
    "spark_microbatch": Entry(spark.SparkMicrobatch.of, (0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 1.1, 1.4), None, None),
    "flink": Entry(flink.Flink.of, BUSY_SHARE_KNOBS, 0.7, flink.INTERVAL_S),
    "md_stream": Entry(MdStream.of, BUSY_SHARE_KNOBS),
    "schedule": Entry(Schedule.of, UTILISATION_KNOBS),
    "reactive": Entry(Planner.of, UTILISATION_KNOBS, stricter=-1),
    "forecast": Entry(Planner.of, UTILISATION_KNOBS, stricter=-1),
    "mpc": Entry(Mpc.of, (-1.5, -0.75, 0.0, 0.5, 1.0, 1.7, 2.5, 4.0), stricter=1),
    "dqn": Entry(_dqn, (-0.95, -0.4, 0.1, 0.6, 1.1, 1.6, 2.2, 2.95)),
}
"""In the order of `POLICIES`, the simplest first."""


def entry(name: str) -> Entry:
    """Return the catalogue's entry of a policy.

    Raises:
        SettingsError: no policy has that name; the message lists those there are.
    """
    if name not in CATALOGUE:
        raise SettingsError(f"policy {name!r} is unknown. Known ones: {', '.join(POLICIES)}.")
    return CATALOGUE[name]


def select_names(names: Iterable[str]) -> list[str]:
    """Return the policies asked for, each once, in the catalogue's order, simplest first; "all" stands for all of them.

    Raises:
        SettingsError: no policy has one of the names (not checked where "all" is among them).
    """
    asked = set(names)
    if "all" in asked:
        return list(CATALOGUE)
    for name in sorted(asked):
        entry(name)
    return [name for name in CATALOGUE if name in asked]


def build(name: str, contract: Contract, learned: Any = None, knob: Floats | float | None = None) -> Policy:
    """Build a policy for a contract (a job's latency target and executor bounds).

    One with an interval of its own (`Entry.interval_s`, such as 15 s) comes wrapped in `Paced`, which asks it that
    often.

    Args:
        name: of the catalogue, such as "mpc".
        contract: of the job.
        learned: for `schedule` a `Timetable` (records/s by time of day), for `dqn` a callable (name, contract) ->
            policy, whose own errors come through; ignored by the others.
        knob: value of its one tuned parameter, a number or (runs,), not checked; None keeps the default.

    Raises:
        SettingsError: no policy has that name, or `schedule` or `dqn` is not given what it needs.
    """
    kind = entry(name)
    made = kind.make(name, contract, learned)
    made = made if knob is None else with_knob(made, knob)
    interval_s = contract.batch_s if kind.interval_s is None else kind.interval_s
    return Paced(made, interval_s) if interval_s > 0 else made


@lru_cache(maxsize=1 << 12)  # each step of a live job asks for its own
def build_steered(name: str, contract: Contract, start: float | None = None) -> Policy:
    """Build a policy that learns nothing; where the promise may steer its knob, it does (`Steered`).

    A target utilisation that the contract states is kept.

    Args:
        name: of the catalogue.
        contract: of the job.
        start: value of the knob to begin with, as found on the job's past; None: the contract's.

    Raises:
        SettingsError: as `build`.
    """
    made, kind = build(name, contract), entry(name)
    stated = contract.planning.target_utilisation is not None and getattr(made, "knob", "") == "utilisation"
    if not kind.stricter or stated:
        return made
    ladder = np.array(kind.values)[:: kind.stricter]
    steered = Steered.of(made, ladder, contract.error_budget, contract.planning.lead_s)
    return steered if start is None else steered.begun_at(start)


def with_knob(policy: Policy, knob: Floats | float) -> Policy:
    """Return a copy of a policy with its knob (the one tuned field, named by `policy.knob`) set to a number or (runs,).

    Raises:
        AttributeError, TypeError: the policy names no knob, or is no dataclass with that field.
    """
    if isinstance(policy, Paced):
        return replace(policy, policy=with_knob(policy.policy, knob))
    made: Policy = replace(policy, **{policy.knob: knob})  # type: ignore[type-var,attr-defined]
    return made
