"""The audit of a log: the same inputs must give the same decisions, bit for bit."""

from __future__ import annotations

import dataclasses
from typing import Any

from configs.contract import Contract
from models.policy.planner import Observation, plan

_FIELDS = [f.name for f in dataclasses.fields(Observation)]


def replayed(decision: dict[str, Any]) -> tuple[int, str, list[str]] | None:
    """Executors, reason and codes that a logged decision's inputs give; None for one made without an observation."""
    inputs = decision["inputs"]
    if any(name not in inputs for name in (*_FIELDS, "contract")):
        return None
    seen = Observation(**{name: inputs[name] for name in _FIELDS})
    made = plan(seen, Contract.model_validate(inputs["contract"]), decision["policy"])
    return made.executors, made.reason, made.codes
