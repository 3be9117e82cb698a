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
from models.policy.rules import ds2, flink, hpa, spark_dstream
from models.policy.rules.ds2 import Ds2
from models.policy.rules.flink import Flink
from models.policy.rules.hpa import Hpa
from models.policy.rules.keda import Keda
from models.policy.rules.schedule import Schedule, Timetable
from models.policy.rules.spark_dstream import SparkDstream
from models.policy.rules.spark_microbatch import SparkMicrobatch
from models.policy.rules.static import Static

Made = Callable[[str, Contract, Any], Policy]
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
        sweep: knob values, from a contract; the cautious and the daring end among them.
        upstream: the knob's value as it is shipped; None where the contract gives it or no one ships one.
        interval_s: of its own decisions, from a contract; 0: whenever it is looked at.
        learned: what it needs beside a contract, in words; empty for nothing.
    """

    make: Made
    sweep: Callable[[Contract], tuple[float, ...]]
    upstream: float | None = None
    interval_s: Callable[[Contract], float] = lambda contract: 0.0
    learned: str = ""


def _plain(kind: Any) -> Made:
    """Of a class that needs the contract's planning alone."""
    return lambda name, contract, learned: kind.of(name, contract.planning)


def _schedule(name: str, contract: Contract, learned: Any) -> Policy:
    if not isinstance(learned, Timetable):
        raise SettingsError(f"policy {name!r} was given {learned!r}: it needs a timetable (schedule.learned).")
    return Schedule.of(name, contract.planning, learned)


def _dqn(name: str, contract: Contract, learned: Any) -> Policy:
    """What is learned builds its policy itself, because `models.dqn` stands above this package."""
    if not callable(learned):
        raise SettingsError(f"policy {name!r} was given {learned!r}: it needs an agent. Train one first.")
    made: Policy = learned(name, contract)
    return made


def _values(*values: float) -> Callable[[Contract], tuple[float, ...]]:
    return lambda contract: values


def _counts(contract: Contract) -> tuple[float, ...]:
    """Numbers of executors from bound to bound; fewer than `SWEEP` where there are fewer."""
    least, most = contract.executors.min, contract.executors.max
    return tuple(float(n) for n in np.unique(np.rint(np.linspace(least, most, SWEEP))))


def _every(seconds: float) -> Callable[[Contract], float]:
    return lambda contract: seconds


CATALOGUE: dict[str, Entry] = {
    "static": Entry(_plain(Static), _counts),
    "hpa": Entry(_plain(Hpa), _values(*MEASURED), 0.7, _every(hpa.SYNC_S)),
    "ds2": Entry(_plain(Ds2), _values(0.0, 0.1, 0.2, 0.35, 0.6, 1.0, 2.0, 4.0), 0.0, _every(ds2.INTERVAL_S)),
    "keda": Entry(_plain(Keda), _values(0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0), 1.0, _every(hpa.SYNC_S)),
    "spark_dstream": Entry(
        _plain(SparkDstream), _values(0.5, 0.6, 0.75, 0.9, 1.1, 1.4, 1.8, 2.4), 0.9, _every(spark_dstream.INTERVAL_S)
    ),
    "spark_microbatch": Entry(
        _plain(SparkMicrobatch), _values(0.4, 0.5, 0.6, 0.75, 0.9, 1.0, 1.1, 1.4), None,
        lambda contract: contract.planning.batch_s,
    ),
    "flink": Entry(_plain(Flink), _values(*MEASURED), 0.7, _every(flink.INTERVAL_S)),
    "schedule": Entry(_schedule, _values(*UTILISATIONS), learned="a timetable"),
    "reactive": Entry(_plain(Planner), _values(*UTILISATIONS)),
    "forecast": Entry(_plain(Planner), _values(*UTILISATIONS)),
    "mpc": Entry(Mpc.of, _values(-1.5, -0.75, 0.0, 0.5, 1.0, 1.7, 2.5, 4.0)),
    "dqn": Entry(_dqn, _values(-0.95, -0.4, 0.1, 0.6, 1.1, 1.6, 2.2, 2.95), learned="an agent"),
}  # fmt: skip
"""In the order of `POLICIES`, the simplest first."""


def entry(name: str) -> Entry:
    """The kind of that name.

    Raises:
        SettingsError: an unknown name; the message lists those there are.
    """
    if name not in CATALOGUE:
        raise SettingsError(f"policy {name!r} is unknown. Known ones: {', '.join(POLICIES)}.")
    return CATALOGUE[name]


def named(names: Iterable[str]) -> list[str]:
    """The names, each once and in the catalogue's order; "all" stands for all of them.

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
    interval_s = kind.interval_s(contract)
    return Paced(made, interval_s) if interval_s > 0 else made


def tuned(policy: Policy, knob: Floats | float) -> Policy:
    """The same policy with its knob turned."""
    if isinstance(policy, Paced):
        return replace(policy, policy=tuned(policy.policy, knob))
    made: Policy = replace(policy, **{knob_of(policy): knob})  # type: ignore[type-var]
    return made


def knob_of(policy: Policy) -> str:
    """The name of the field that a backtest sweeps."""
    name: str = knob_of(policy.policy) if isinstance(policy, Paced) else policy.knob  # type: ignore[attr-defined]
    return name
