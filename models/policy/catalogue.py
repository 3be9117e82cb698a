"""Every policy by name: how it is built from a contract, the knob that a backtest sweeps, and its own pace."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from configs.contract import Contract
from configs.errors import SettingsError
from configs.policies import POLICIES
from models.policy.core.capacity import Floats
from models.policy.core.paced import Paced
from models.policy.core.view import Policy
from models.policy.planners.mpc import Mpc
from models.policy.planners.planner import Planner
from models.policy.rules import ds2, flink, kubernetes, spark
from models.policy.rules.fixed import Schedule, Static

SWEEP = 8
"""Values of a knob in a sweep."""
UTILISATIONS = (0.3, 0.45, 0.6, 0.75, 0.9, 1.0, 1.15, 1.4)
"""Beyond 1, because who knows the load can let batches grow to the target."""
MEASURED = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)
"""For those that go by a measured busy share: it never passes 1, so that a target of 1 never asks for more."""


@dataclass(frozen=True)
class Entry:
    """One kind of policy.

    Attributes:
        make: from its name, a contract and what it has learned.
        values: of its knob, rising; empty where these are numbers of executors within the contract's bounds.
        upstream: the knob's value as it is shipped; None where the contract gives it or no one ships one.
        interval_s: seconds between its own decisions; 0: whenever it is looked at, None: the contract's batches.
    """

    make: Callable[[str, Contract, Any], Policy]
    values: tuple[float, ...] = ()
    upstream: float | None = None
    interval_s: float | None = 0.0

    def sweep(self, contract: Contract) -> tuple[float, ...]:
        """Values of the knob under a contract, rising, the cautious and the daring end among them."""
        bounds = contract.executors
        return self.values or tuple(np.unique(np.rint(np.linspace(bounds.min, bounds.max, SWEEP))).tolist())


def _dqn(name: str, contract: Contract, learned: Any) -> Policy:
    """What is learned builds its policy itself, because `models.dqn` stands above this package."""
    if not callable(learned):
        raise SettingsError(f"policy {name!r} was given {learned!r}: it needs an agent. Train one first.")
    made: Policy = learned(name, contract)
    return made


CATALOGUE: dict[str, Entry] = {
    "static": Entry(Static.of),
    "hpa": Entry(kubernetes.Hpa.of, MEASURED, 0.7, kubernetes.SYNC_S),
    "ds2": Entry(ds2.Ds2.of, (0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 2.0, 4.0), 0.0, ds2.INTERVAL_S),
    "keda": Entry(kubernetes.Keda.of, (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0), 1.0, kubernetes.SYNC_S),
    "spark_dstream": Entry(spark.SparkDstream.of, (0.5, 0.6, 0.75, 0.9, 1.1, 1.4, 1.8, 2.4), 0.9, spark.INTERVAL_S),
    "spark_microbatch": Entry(spark.SparkMicrobatch.of, (0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 1.1, 1.4), None, None),
    "flink": Entry(flink.Flink.of, MEASURED, 0.7, flink.INTERVAL_S),
    "schedule": Entry(Schedule.of, UTILISATIONS),
    "reactive": Entry(Planner.of, UTILISATIONS),
    "forecast": Entry(Planner.of, UTILISATIONS),
    "mpc": Entry(Mpc.of, (-1.5, -0.75, 0.0, 0.5, 1.0, 1.7, 2.5, 4.0)),
    "dqn": Entry(_dqn, (-0.95, -0.4, 0.1, 0.6, 1.1, 1.6, 2.2, 2.95)),
}
"""In the order of `POLICIES`, the simplest first."""


def entry(name: str) -> Entry:
    """The catalogue's entry of the policy of that name.

    Raises:
        SettingsError: an unknown name; the message lists those there are.
    """
    if name not in CATALOGUE:
        raise SettingsError(f"policy {name!r} is unknown. Known ones: {', '.join(POLICIES)}.")
    return CATALOGUE[name]


def named(names: Iterable[str]) -> list[str]:
    """The policies' names that are asked for, each once and in the catalogue's order; "all" stands for all of them.

    Raises:
        SettingsError: an unknown name; the message lists those there are.
    """
    asked = set(names)
    if "all" in asked:
        return list(CATALOGUE)
    for name in sorted(asked):
        entry(name)
    return [name for name in CATALOGUE if name in asked]


def build(name: str, contract: Contract, learned: Any = None, knob: Floats | float | None = None) -> Policy:
    """The policy of that name at its own pace, with its shipped knob or the one given (a number, or one per run).

    Raises:
        SettingsError: an unknown name, or it needs something learned that is not given.
    """
    kind = entry(name)
    made = kind.make(name, contract, learned)
    made = made if knob is None else tuned(made, knob)
    interval_s = contract.planning.batch_s if kind.interval_s is None else kind.interval_s
    return Paced(made, interval_s) if interval_s > 0 else made


def tuned(policy: Policy, knob: Floats | float) -> Policy:
    """The same policy with its knob turned."""
    if isinstance(policy, Paced):
        return replace(policy, policy=tuned(policy.policy, knob))
    made: Policy = replace(policy, **{policy.knob: knob})  # type: ignore[type-var,attr-defined]
    return made
