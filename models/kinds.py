"""Forecasters as data: what must be kept of one, and a forecaster from what was kept."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

from models.adapt.scale import CONTEXT, DomainScale
from models.adapt.target import AdaptedForecaster
from models.forecast.baselines.linear import LinearForecaster, LinearWeights
from models.forecast.baselines.naive import Naive
from models.forecast.blend.blend import Blend
from models.forecast.blend.networked import NetworkedBlend
from models.forecast.classical.classical import Classical, Harmonics, Recursion
from models.forecast.core.forecaster import Forecaster, Task
from models.forecast.neural.cells import CELLS, carried_by
from models.forecast.neural.frozen import FrozenNetwork, freeze
from models.forecast.neural.network import Network
from models.forecast.neural.windows import PastWindow

if TYPE_CHECKING:
    from torch import nn

Shape = tuple[int, ...]
Parameters = TypeVar("Parameters", LinearWeights, Harmonics, Recursion, FrozenNetwork)
KINDS = (
    "adapted",
    "arima",
    "blend",
    "ets",
    "gru",
    "last_value",
    "lstm",
    "networked_blend",
    "ridge",
    "seasonal_naive",
    "theta",
    "yesterday",
)


class KindError(ValueError):
    """A description that makes no forecaster; the message names the value and what would be right."""


def describe(forecaster: Forecaster) -> dict[str, Any]:
    """The forecaster's parameters as JSON values; the weights of an adapted network are kept apart."""
    common = {
        "kind": forecaster.kind,
        "step_s": forecaster.step_s,
        "horizon": forecaster.horizon,
        "levels": list(forecaster.levels),
    }
    if isinstance(forecaster, Network):
        return {**common, "parameters": asdict(forecaster.frozen)}
    if isinstance(forecaster, AdaptedForecaster):
        return {**common, "low": forecaster.scale.low, "span": forecaster.scale.span}
    if isinstance(forecaster, Classical):
        parts = {"season": asdict(forecaster.season), "recursion": asdict(forecaster.recursion)}
        return {**common, "parameters": parts}
    if isinstance(forecaster, NetworkedBlend):
        return {**common, "parameters": asdict(forecaster.network)}
    if isinstance(forecaster, LinearForecaster):
        return {**common, "parameters": asdict(forecaster.fitted)}
    return common


def revive(described: dict[str, Any], module: nn.Module | None = None) -> Forecaster:
    """The forecaster that was described, with its network's module where its weights were kept apart.

    An older release kept those of a GRU or LSTM apart, too: they are taken from the module.

    Raises:
        KindError: an unknown kind, a missing parameter or one of another type, or an adapted network without its
            module.
        ValueError: a text is no number, or a network's weights do not fit it; SeriesError where a number is out of
            range.
    """
    try:
        kind = described["kind"]
        task = Task(float(described["step_s"]), int(described["horizon"]), tuple(described["levels"]))
        if kind in ("seasonal_naive", "yesterday", "last_value"):
            return Naive(task, seasonal=kind != "last_value", weekly=kind == "seasonal_naive")
        if kind in ("ets", "theta", "arima"):
            parts = described["parameters"]
            return Classical(kind, task, _of(Harmonics, parts["season"]), _of(Recursion, parts["recursion"]))
        if kind == "blend":
            return Blend(task)
        if kind == "networked_blend":
            return NetworkedBlend(task, _of(FrozenNetwork, described["parameters"]))
        if kind == "ridge":
            return LinearForecaster(task, _of(LinearWeights, described["parameters"]))
        if kind == "adapted" and module is not None:
            return AdaptedForecaster(task, module, DomainScale(float(described["low"]), float(described["span"])))
        if kind in CELLS and module is not None:
            view, carried = PastWindow(task, int(described["season"])), int(described["carried"])
            units = carried // carried_by(kind, 1)
            return Network(task, freeze(module.state_dict(), kind, units, view, until=0.0), kind)
        if kind in CELLS:
            return Network(task, _of(FrozenNetwork, described["parameters"]), kind)
    except (RuntimeError, TypeError) as error:
        raise KindError(f"kind={described['kind']!r} is not as this code has it: {error}. Register it anew.") from None
    except KeyError as error:
        raise KindError(f"the description of a forecaster lacks {error}; it has {sorted(described)}") from None
    if kind == "adapted":
        raise KindError("an adapted network needs its module; load it from the same artifact")
    raise KindError(f"kind={kind!r}: one of {', '.join(KINDS)} is expected. Is this code older?")


def _of(parameters: type[Parameters], values: dict[str, Any]) -> Parameters:
    """The dataclass of such values; a KeyError names the one that is missing."""
    return parameters(**{field.name: values[field.name] for field in fields(parameters)})


def shapes(forecaster: AdaptedForecaster) -> tuple[dict[str, Shape], dict[str, Shape]]:
    """Shapes of what an adapted network reads and says, by name; -1 is the batch."""
    return {"x": (-1, CONTEXT)}, {"y": (-1, forecaster.horizon)}
