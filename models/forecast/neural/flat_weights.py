"""A recurrent network's weights as flat arrays for `online_kernel`, from a `Recurrent` or its exported archive."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from models.forecast.neural.network import Network
from models.forecast.neural.recurrent import _SHARE, Recurrent
from models.forecast.neural.windows import STATES, Packed, View

Indices = NDArray[np.int64]
_PROBES = 8  # rows on which the kernel and the module must say the same
_APART = 1e-4  # in units: what rounding may make of it, and more than that is another network


class Weights(NamedTuple):
    """All that a step needs; matrices lie by row of what they multiply.

    Attributes:
        day, season, needs: steps of a day, of the longest season, and of history that a row reads.
        units, inputs: of the cell.
        middle: place of the median among the levels.
        gru: whether the cell is a GRU, else an LSTM.
        typical, share: usual log volatility; how much of the head's word the median takes.
        back, weekly: (moves,) steps from the newest value to what is read; 1 where it is a week back.
        read, look: moves and steps ahead that the cell reads.
        linear, bias: (moves, horizon), (horizon,) of the regression.
        of_input, input_bias, of_state, state_bias: (inputs, gates), (gates,), (units, gates), (gates,).
        head, head_bias: (units, horizon · levels), (horizon · levels,).
        centre, steep, restless, width: (horizon,) three times, (horizon, levels).
    """

    day: int
    season: int
    needs: int
    units: int
    inputs: int
    middle: int
    gru: bool
    typical: np.float32
    share: np.float32
    back: Indices
    weekly: NDArray[np.uint8]
    read: Indices
    look: Indices
    linear: Packed
    bias: Packed
    of_input: Packed
    input_bias: Packed
    of_state: Packed
    state_bias: Packed
    head: Packed
    head_bias: Packed
    centre: Packed
    steep: Packed
    restless: Packed
    width: Packed


def extract(network: Network) -> Weights | None:
    """The weights of a network whose module is a `Recurrent` or was exported from one.

    None where the module is something else: its weights have other names or shapes, or it does not say what
    `Recurrent` says with them. Such a network is stepped by its module.
    """
    if not isinstance(network.module, torch.nn.Module):
        return None
    mine = Recurrent(network.view, _cell(network), _units(network), torch.Generator())
    state = {name: value.detach() for name, value in network.module.state_dict().items()}
    known = {name: state[name] for name in mine.state_dict() if name in state}
    try:
        mine.load_state_dict(known)
    except RuntimeError:
        return None
    return _packed(network.view, mine) if _says_the_same(network, mine) else None


def _cell(network: Network) -> Any:
    return network.kind


def _units(network: Network) -> int:
    return network.carried // (1 if network.kind == "gru" else 2)


@torch.no_grad()
def _says_the_same(network: Network, mine: Recurrent) -> bool:
    draw = torch.Generator().manual_seed(1)
    row = torch.randn(_PROBES, network.view.width, generator=draw) / 4
    hidden = torch.randn(_PROBES, network.carried, generator=draw) / 4
    pairs = zip(network.module(row, hidden), mine.eval()(row, hidden), strict=True)
    return all(torch.allclose(theirs, own, rtol=_APART, atol=_APART) for theirs, own in pairs)


def _packed(view: View, mine: Recurrent) -> Weights:
    state = {name: np.ascontiguousarray(value.numpy(), np.float32) for name, value in mine.state_dict().items()}

    def turned(name: str) -> Packed:
        return np.ascontiguousarray(state[name].T)

    return Weights(
        day=view.task.day, season=view.season, needs=view.needs, units=mine.hidden,
        inputs=len(mine.read) + len(mine.look) + STATES - 1, middle=mine.middle, gru=mine.cell == "gru",
        typical=np.float32(mine.typical.item()), share=np.float32(_SHARE),
        back=np.array([k - lag * max(1, -(-k // lag)) if lag else k for lag, k in view.moves], np.int64),
        weekly=np.array([view.season > view.task.day and lag == view.season for lag, _ in view.moves], np.uint8),
        read=np.array(mine.read, np.int64), look=np.array(mine.look, np.int64),
        linear=np.ascontiguousarray((state["linear"] * state["kept"]).T), bias=state["bias"],
        of_input=turned("rnn.weight_ih_l0"), input_bias=state["rnn.bias_ih_l0"],
        of_state=turned("rnn.weight_hh_l0"), state_bias=state["rnn.bias_hh_l0"],
        head=turned("head.weight"), head_bias=state["head.bias"],
        centre=state["centre"], steep=state["steep"][:, 0].copy(), restless=state["restless"][:, 0].copy(),
        width=state["width"],
    )  # fmt: skip
