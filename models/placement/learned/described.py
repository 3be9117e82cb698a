"""A placement network, or a performance model, as JSON values, and for which job it is: another job's is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from models.dqn.learner.learner import Values
from models.placement.learned.queries import QuerySpace
from models.placement.learned.training import LEARNER, PlacementModel
from models.placement.performance.model import PerformanceModel
from models.placement.performance.network import LayerSizes, PerformanceNetwork

KIND, PERFORMANCE_KIND = "placement-dqn", "performance-lstm-log"
_SCALES = ("mean", "spread", "label_mean", "label_spread", "stopped", "stopped_log")


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
        "weights": _told(model.network),
    }  # fmt: skip


def revive(described: Any, space: QuerySpace) -> PlacementModel:
    """Rebuild the network of a job.

    Args:
        described: as of `describe`.
        space: placements of the job's queries.

    Raises:
        PlacementModelError: it is none, or of other queries or clusters.
    """
    _check(described, KIND, space)
    features, moves = shapes_of(space)
    network = Values(features, moves, 1, LEARNER.hidden, torch.Generator())
    with _refused("network"):
        _load(network, described["weights"])
        usual_ms, curve = float(described["usual_ms"]), tuple(float(one) for one in described["curve"])
    if not 0 < usual_ms < math.inf:
        raise PlacementModelError(f"usual_ms={usual_ms}: a finite latency above 0 is expected; train the network again")
    return PlacementModel(network, usual_ms, curve)


def describe_performance(model: PerformanceModel, space: QuerySpace) -> dict[str, Any]:
    """Convert a performance model to JSON values, as `revive_performance` takes them."""
    return {
        "kind": PERFORMANCE_KIND, "signature": signature_of(space), "sizes": list(model.sizes),
        **{name: getattr(model, name).tolist() for name in _SCALES}, "weights": _told(model.network),
    }  # fmt: skip


def revive_performance(described: Any, space: QuerySpace) -> PerformanceModel:
    """Rebuild the performance model of a job.

    Args:
        described: as of `describe_performance`.
        space: placements of the job's queries.

    Raises:
        PlacementModelError: it is none, or of other queries or clusters.
    """
    _check(described, PERFORMANCE_KIND, space)
    wide = 1 + space.shape[0] * space.shape[1]
    with _refused("performance model"):
        first, second, third, dense, dropout = described["sizes"]
        sizes = LayerSizes(int(first), int(second), int(third), int(dense), float(dropout))
        scales = {name: np.array(described[name], float) for name in _SCALES}
        if [len(one) for one in scales.values()] != [wide, wide, 2, 2, 2, 2]:
            raise PlacementModelError(f"scales are not of {wide} features and 2 answers; train the model again")
        network = PerformanceNetwork(wide, sizes)
        _load(network, described["weights"])
    network.eval()
    return PerformanceModel(network, sizes, **scales)


@contextmanager
def _refused(what: str) -> Iterator[None]:
    """Refuse a description that lacks something, or has it in another form."""
    try:
        yield
    except PlacementModelError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise PlacementModelError(f"the description of a {what} lacks {error}; train it again") from None


def _told(network: nn.Module) -> dict[str, Any]:
    return {name: part.tolist() for name, part in network.state_dict().items()}


def _check(described: Any, kind: str, space: QuerySpace) -> None:
    """Refuse what is of another kind or another job."""
    if not isinstance(described, Mapping) or described.get("kind") != kind:
        raise PlacementModelError(f"no network of kind {kind} is described; train one (the DAG plan_placement)")
    here = signature_of(space)
    if (other := described.get("signature")) != here:
        raise PlacementModelError(
            f"the network was trained for {other}, this job is {here}; train one for it (the DAG plan_placement)"
        )


def _load(network: nn.Module, told: Any) -> None:
    """Give a network the weights that are told, where these are finite and of its shapes."""
    weights = {name: np.asarray(part, np.float32) for name, part in told.items()}
    shapes = {name: tuple(part.shape) for name, part in network.state_dict().items()}
    if {name: part.shape for name, part in weights.items()} != shapes:
        raise PlacementModelError(f"weights are not of the shapes {shapes}; train the network again")
    if not all(np.isfinite(part).all() for part in weights.values()):
        raise PlacementModelError("weights that are not finite; train the network again")
    network.load_state_dict({name: torch.from_numpy(part) for name, part in weights.items()})
