"""Names of the scaling policies, and groups of them, to be imported without the policies themselves."""

from __future__ import annotations

from typing import Literal, get_args

PolicyName = Literal[
    "static", "hpa", "ds2", "keda", "spark_dstream", "spark_microbatch", "flink", "md_stream",
    "schedule", "reactive", "forecast", "mpc", "dqn",
]  # fmt: skip
POLICIES: tuple[str, ...] = get_args(PolicyName)
"""Every policy, the simplest first; `models/policy/catalogue.py` builds them."""
LISTENERS: tuple[str, ...] = ("forecast", "mpc", "dqn")
"""Policies that use a forecast; for the others none is read or logged."""
BLIND: tuple[str, ...] = ("static", "schedule")
"""Policies that do not look at the load."""
LEARNED: tuple[str, ...] = ("dqn",)
"""Policies that need a trained agent from the registry."""
BY_PEAKS: tuple[str, ...] = ("mpc", "dqn")
"""Policies that use quantiles of the load's peak over lead + hold, of levels `models.policy.received.peaks.LEVELS`."""
_PLANNERS = ("reactive", "forecast")
PLANNED_BY: dict[str, tuple[str, ...]] = {
    "quantile": ("forecast",),
    "target_utilisation": ("schedule", *_PLANNERS),
    "scale_down_delay_s": (*_PLANNERS, "mpc", "dqn"),
    "cooldown_s": (*_PLANNERS, "mpc", "dqn"),
    "max_step_down": _PLANNERS,
}
"""Policies that keep to a key of a contract's `planning`; those that are not here hold beside any policy, too."""
