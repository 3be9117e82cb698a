"""A placement network as JSON values, and for which job it is: another job's is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from models.dqn.learner.learner import Values
from models.placement.learned.queries import QuerySpace
from models.placement.learned.training import LEARNER, PlacementModel

KIND = "placement-dqn"


class PlacementModelError(ValueError):
    """A description that makes no network for a job; the message names what differs and what to do."""


def signature_of(space: QuerySpace) -> dict[str, Any]:
    """Return what a network's inputs and outputs stand for: JSON values that are equal for jobs it can place.

    Queries by their operators, and clusters by name, with cores of it and of an executor.
    """
    clusters = space.measure.topology.clusters
    return {
        "topology": space.measure.topology.name, "queries": [list(block) for block in space.blocks],
        "clusters": [[name, one.cores, one.executor_cores] for name, one in clusters.items()],
    }  # fmt: skip


def shapes_of(space: QuerySpace) -> tuple[int, int]:
    """Return the numbers of features of an observation, and of moves."""
    m, n = space.shape
    return m * n + 1 + m, 2 * m * n


def describe(model: PlacementModel, space: QuerySpace) -> dict[str, Any]:
    """Convert a trained network to JSON values, as `revive` takes them."""
    return {
        "kind": KIND, "signature": signature_of(space), "usual_ms": model.usual_ms, "curve": list(model.curve),
        "weights": {name: part.tolist() for name, part in model.network.state_dict().items()},
    }  # fmt: skip


def revive(described: Any, space: QuerySpace) -> PlacementModel:
    """Rebuild the network of a job.

    Args:
        described: as of `describe`.
        space: placements of the job's queries.

    Raises:
        PlacementModelError: it is none, or of other queries or clusters.
    """
    if not isinstance(described, Mapping) or described.get("kind") != KIND:
        raise PlacementModelError(f"no network of kind {KIND} is described; train one (the DAG plan_placement)")
    here = signature_of(space)
    if (other := described.get("signature")) != here:
        raise PlacementModelError(
            f"the network was trained for {other}, this job is {here}; train one for it (the DAG plan_placement)"
        )
    features, moves = shapes_of(space)
    network = Values(features, moves, 1, LEARNER.hidden, torch.Generator())
    try:
        weights = {name: np.asarray(part, np.float32) for name, part in described["weights"].items()}
        shapes = {name: tuple(part.shape) for name, part in network.state_dict().items()}
        if {name: part.shape for name, part in weights.items()} != shapes:
            raise PlacementModelError(f"weights are not of the shapes {shapes}; train the network again")
        if not all(np.isfinite(part).all() for part in weights.values()):
            raise PlacementModelError("weights that are not finite; train the network again")
        network.load_state_dict({name: torch.from_numpy(part) for name, part in weights.items()})
        usual_ms, curve = float(described["usual_ms"]), tuple(float(one) for one in described["curve"])
    except PlacementModelError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise PlacementModelError(f"the description of a network lacks {error}; train it again") from None
    if not 0 < usual_ms < math.inf:
        raise PlacementModelError(f"usual_ms={usual_ms}: a finite latency above 0 is expected; train the network again")
    return PlacementModel(network, usual_ms, curve)
