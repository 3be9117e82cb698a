"""A forecaster as the three members of an affinity set, in data formats only: weights, scaler, hyper-parameters."""

from __future__ import annotations

import hashlib
import io
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from models.adapt.target import AdaptedForecaster
from models.forecast.core.forecaster import Forecaster
from models.forecast.core.series import Series
from models.kinds import describe, revive, shapes
from pipelines.registry.network_archive import load_network

MEMBERS = ("weights", "scaler", "hyper")
_SCALER = ("low", "span")
_DIGEST_BYTES = 16


class ModelSetError(ValueError):
    """Members that make no forecaster that can serve; the message says which and why."""


@dataclass(frozen=True)
class ModelSet:
    """A forecaster and the bytes it is made of.

    Attributes:
        members: bytes by "weights", "scaler" and "hyper"; equal forecasters of two jobs have equal members.
        forecaster: what they make.
    """

    members: Mapping[str, bytes]
    forecaster: Forecaster

    @property
    def digests(self) -> tuple[str, str, str]:
        """BLAKE2b (16 bytes, hexadecimal) of weights, scaler and hyper-parameters, in this order."""
        made = [hashlib.blake2b(self.members[name], digest_size=_DIGEST_BYTES).hexdigest() for name in MEMBERS]
        return made[0], made[1], made[2]


def pack_model(forecaster: Forecaster, archive: bytes | None = None) -> ModelSet:
    """Split a forecaster into weights, scaler and hyper-parameters as bytes, and load it from these again.

    Args:
        forecaster: any kind of `models.kinds`.
        archive: of an adapted network, as `torch.export` writes it (`pt2`); None to export it here, which takes
            seconds. Not read of other kinds.

    Returns:
        The members (weights: the archive for an adapted network, else JSON or empty; the others JSON), and the
        forecaster loaded from them, not the one given.

    Raises:
        ModelSetError: the members cannot be loaded again.
        Exception: whatever torch raises where it cannot export the network.
    """
    described = describe(forecaster)
    scaler = {name: described.pop(name) for name in _SCALER if name in described}
    parameters = described.pop("parameters", None)
    weights = b"" if parameters is None else _text(parameters)
    if isinstance(forecaster, AdaptedForecaster):
        weights = archive or _exported(forecaster)
    hyper = _text({**described, "carry": isinstance(forecaster, AdaptedForecaster)})
    return load_members({"weights": weights, "scaler": _text(scaler), "hyper": hyper})


def load_members(members: Mapping[str, bytes]) -> ModelSet:
    """Load a forecaster from its members, and return it with them.

    Args:
        members: bytes by name: "weights" (a torch.export archive for an adapted network, and for a GRU or LSTM of an
            older release; else JSON or empty), "scaler" and "hyper" (both JSON objects); other names are kept and not
            read.

    Raises:
        ModelSetError: a member is missing or cannot be read, or they make no forecaster.
    """
    if missing := sorted(set(MEMBERS) - set(members)):
        raise ModelSetError(f"the set lacks {', '.join(missing)}. Put all of {', '.join(MEMBERS)} at once.")
    try:
        hyper, scaler = json.loads(members["hyper"]), json.loads(members["scaler"])
        apart = hyper.pop("carry")
        module = None
        described = {**hyper, **scaler}
        if apart:
            module = load_network(members["weights"])
        elif members["weights"]:
            described["parameters"] = json.loads(members["weights"])
        forecaster = revive(described, module)
    except Exception as error:  # whatever the members hold, the other jobs' models go on
        raise ModelSetError(f"the set makes no forecaster: {error!r}. Register the model anew.") from None
    return ModelSet(dict(members), forecaster)


def check_can_serve(candidate: ModelSet, named: str, step_s: float, recent: Series) -> None:
    """Check that a forecaster can serve a job, by one forecast after its newest windows; returns nothing.

    Args:
        candidate: to be checked.
        named: its model and version, for errors.
        step_s: seconds per window that is served.
        recent: the job's newest windows, records/s, NaN where missing; may be empty.

    Raises:
        ModelSetError: its step is another, it fails on the windows, its quantiles have not the shape (horizon, levels),
            or one is not finite though the forecast rests on a value (`basis` is not "none").
    """
    forecaster = candidate.forecaster
    if forecaster.step_s != step_s:
        raise ModelSetError(f"{named} has {forecaster.step_s:g} s steps, training.step_s is {step_s:g}. Retrain it.")
    try:
        track = forecaster.begin(recent)
        quantiles = track.quantiles
    except Exception as error:  # weights of other shapes or kinds show here
        raise ModelSetError(f"{named} fails on the newest {len(recent)} windows: {error!r:.200}") from None
    shape = forecaster.horizon, len(forecaster.levels)
    if quantiles.shape != shape:
        raise ModelSetError(f"{named} says {quantiles.shape}, not {shape}")
    if track.basis() != "none" and not np.isfinite(quantiles).all():
        raise ModelSetError(f"{named} says {quantiles[~np.isfinite(quantiles)][0]} on the newest windows")


def _text(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":"), sort_keys=True).encode()


def _exported(forecaster: AdaptedForecaster) -> bytes:
    import torch

    reads, _ = shapes(forecaster)
    example = tuple(torch.zeros(2, *shape[1:]) for shape in reads.values())  # one in the batch would be frozen
    batch = torch.export.Dim("batch")
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The tensor attributes .*_flat_weights")  # they are parameters too
        traced: Any = forecaster.module
        program = torch.export.export(traced, example, dynamic_shapes=tuple({0: batch} for _ in example))
        torch.export.save(program, buffer)
    return buffer.getvalue()
