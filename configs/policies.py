"""The names of the policies, for whoever checks a name without thinking about policies."""

from __future__ import annotations

from typing import Literal, get_args

PolicyName = Literal[
    "static", "hpa", "ds2", "keda", "spark_dstream", "spark_microbatch", "flink", "schedule",
    "reactive", "forecast", "mpc", "dqn",
]  # fmt: skip
POLICIES: tuple[str, ...] = get_args(PolicyName)
"""Every policy, the simplest first; `models/policy/catalogue.py` builds them."""
LISTENERS: tuple[str, ...] = ("forecast", "mpc", "dqn")
"""Those that go by a forecast; for the others none is looked at or logged."""
BLIND: tuple[str, ...] = ("static", "schedule")
"""Those that go by no load at all."""
LEARNED: tuple[str, ...] = ("dqn",)
"""Those that need an agent from the registry."""
BY_PEAKS: tuple[str, ...] = ("mpc", "dqn")
"""Those that go by quantiles of the load's peak over lead + hold, as deep as `models.policy.received.peaks.LEVELS`."""
