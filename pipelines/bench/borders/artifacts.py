"""Artifacts as somebody who may write to the registry could leave them: forecasters, and agents."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from models.dqn.agent.actions import MOVES, PARTS
from models.dqn.agent.model import LAYERS, DqnModel, Familiar, describe
from models.dqn.agent.observation import FEATURES
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series
from models.forecast.selection.catalogue import CATALOGUE
from pipelines.serve.models.model_set import check_can_serve, load_members, pack_model

STEP_S = 60.0
_TASK = Task(STEP_S, 3, (0.1, 0.5, 0.9))


def forecaster_samples() -> tuple[bytes, ...]:
    """Fit a forecaster of each plain kind; return their members as JSON."""
    hours = np.arange(400)
    history = Series(0.0, STEP_S, 20 + 10 * np.sin(hours / 9) + hours % 5)
    kinds = ("last_value", "seasonal_naive", "ridge", "blend")
    sets = [pack_model(CATALOGUE[kind](_TASK, history)).members for kind in kinds]
    return tuple(
        json.dumps({name: json.loads(member) if member else "" for name, member in one.items()}).encode()
        for one in sets
    )


def agent_sample() -> bytes:
    """Draw a small agent of this code's features and moves; return its description."""
    chance, hidden, out = np.random.default_rng(7), 2, (len(MOVES) + 1) * PARTS
    shapes = zip(LAYERS, ((hidden, len(FEATURES)), (hidden, hidden), (out, hidden)), strict=True)
    weights = {name: (chance.normal(size=shape).round(2), np.zeros(shape[0])) for name, shape in shapes}
    familiar = Familiar.from_observations(chance.normal(size=(200, len(FEATURES))))
    rounded = Familiar._make(np.round(part, 2) for part in familiar._asdict().values())
    agent = DqnModel(weights, rounded, np.ones(1), np.zeros(1), np.array([[1.1, 0.01]]))
    return json.dumps(describe(agent)).encode()


def serve_forecaster(raw: bytes, folder: Path) -> None:
    """Load the members of a forecaster and let it forecast once, as the loader does; `folder` is not used.

    Raises:
        ModelSetError: they make none that can serve.
    """
    try:
        parts = json.loads(raw).items()
        members = {str(name): json.dumps(part).encode() if part != "" else b"" for name, part in parts}
    except (ValueError, AttributeError):
        members = {"hyper": raw, "scaler": b"{}", "weights": b""}
    recent = Series(0.0, STEP_S, np.arange(1.0, 50.0))
    check_can_serve(load_members(members), "a version", STEP_S, recent)
