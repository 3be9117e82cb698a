"""One compiled step of a trained GRU or LSTM: torch's numbers in a twentieth of the time."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from models.forecast.core.series import Floats
from models.forecast.neural.cells import LEAST_LEVEL, SHARE
from models.forecast.neural.windows import BREAK, CALM, FAST, FAST_CALM, LEAST, MOST_CHANGE


class CompiledNetwork(NamedTuple):
    """What the compiled step reads; I inputs of the cell, N units, G gates (3 of a GRU, 4 of an LSTM), M moves.

    Attributes:
        middle, day, season: which level is the median; steps of a day and of the longest season read.
        back, weekly: (M,) steps from the newest one to what a move reads, and 1 where it reads the longest season.
        read, look: moves, and steps ahead (less one) of the linear forecast, that the cell reads.
        linear, bias, centre: (horizon, M), (horizon,) twice: the median without the cell.
        width, steep, restless: (horizon, levels), (horizon,) twice: of the distances between levels, logarithms.
        typical: log volatility.
        inputs, recurrent, biases: (G·N, I), (G·N, N), (2, G·N): the cell.
        head, head_bias: (horizon·levels, N), (horizon·levels,): from its output to corrections.
    """

    middle: int
    day: int
    season: int
    back: NDArray[np.int64]
    weekly: NDArray[np.uint8]
    read: NDArray[np.int64]
    look: NDArray[np.int64]
    linear: Floats
    bias: Floats
    centre: Floats
    width: Floats
    steep: Floats
    restless: Floats
    typical: float
    inputs: Floats
    recurrent: Floats
    biases: Floats
    head: Floats
    head_bias: Floats


@numba.njit(cache=True, inline="always")
def _sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-min(max(x, -50.0), 50.0)))


@numba.njit(cache=True)
def _recur(network: Any, read: Any, hidden: Any) -> None:
    """Run the cell on (I,) inputs; what is carried, its (N,) output first, is changed in place."""
    rows, units = network.recurrent.shape
    before = hidden[:units].copy()
    near, far = network.biases[0].copy(), network.biases[1].copy()
    for g in range(rows):
        for i in range(len(read)):
            near[g] += network.inputs[g, i] * read[i]
        for i in range(units):
            far[g] += network.recurrent[g, i] * before[i]
    for u in range(units):
        first, second = _sigmoid(near[u] + far[u]), _sigmoid(near[units + u] + far[units + u])
        if rows == 3 * units:  # a GRU: reset, update
            fresh = math.tanh(near[2 * units + u] + first * far[2 * units + u])
            hidden[u] = fresh + second * (before[u] - fresh)
        else:  # an LSTM: input, forget
            fresh = math.tanh(near[2 * units + u] + far[2 * units + u])
            hidden[units + u] = second * hidden[units + u] + first * fresh
            hidden[u] = _sigmoid(near[3 * units + u] + far[3 * units + u]) * math.tanh(hidden[units + u])


@numba.njit(cache=True, error_model="numpy")
def step_network(network: Any, buffer: Any, end: int, hidden: Any, out: Any) -> None:
    """Run one step of a network, as `Recurrent.run_rows` on the newest row of `windows.input_rows`.

    Args:
        network: a `CompiledNetwork`. Compiled: neither shapes nor indices are checked.
        buffer: of a `Ring`, records/s, gaps filled; the newest `PastWindow.needs` values must be known.
        end: index after its newest value.
        hidden: (N,) state, of an LSTM (2·N,), changed in place; zeros at first.
        out: (horizon, levels) records/s, filled: rising over the levels, at least 0.
    """
    newest, day, middle = end - 1, network.day, network.middle
    anchor = math.sqrt(buffer[newest])
    total, changes, fast, before = 0.0, 0.0, 0.0, 0.0
    later = anchor
    for i in range(day):
        root = math.sqrt(buffer[newest - i - 1])
        change = abs(later - root)
        total += later
        changes += change
        if i < FAST:
            fast += change
        if network.season > day:
            before += math.sqrt(buffer[newest - i - network.season])
        later = root
    unit = max(total / day, LEAST)
    usual = max(changes / day, CALM * unit)
    fast = max(fast / min(FAST, day), FAST_CALM * usual)
    ratio = 1.0
    if network.season > day:
        ratio = unit / max(before / day, LEAST)
        ratio = min(max(ratio, 1 / MOST_CHANGE), MOST_CHANGE) if abs(math.log(ratio)) > math.log(BREAK) else 1.0
    moves = np.empty(len(network.back))
    for i in range(len(moves)):
        root = math.sqrt(buffer[newest + network.back[i]]) * (ratio if network.weekly[i] else 1.0)
        moves[i] = (root - anchor) / unit
    level, calm, restless = anchor / unit, math.log(usual / unit), math.log(fast / usual)
    volatility, (horizon, levels) = math.exp(calm), network.width.shape
    medians = network.bias.copy()
    for h in range(horizon):
        for i in range(len(moves)):
            medians[h] += network.linear[h, i] * moves[i]
    many = len(network.read)
    read = np.empty(many + len(network.look) + 2)
    for i in range(many):
        read[i] = math.asinh(moves[network.read[i]] / volatility)
    for i in range(len(network.look)):
        read[many + i] = math.asinh(medians[network.look[i]] / volatility)
    read[-2], read[-1] = calm - network.typical, restless
    corrections = network.head_bias.copy()
    _recur(network, read, hidden)
    for i in range(len(corrections)):
        for u in range(network.head.shape[1]):
            corrections[i] += network.head[i, u] * hidden[u]
    for h in range(horizon):
        of = corrections[h * levels : (h + 1) * levels]
        median = medians[h] + volatility * (network.centre[h] + SHARE * of[middle])
        wide = network.steep[h] * math.log(max(level + median, LEAST_LEVEL)) + network.restless[h] * restless
        out[h, middle] = median
        for k in range(middle + 1, levels):
            out[h, k] = out[h, k - 1] + volatility * math.exp(network.width[h, k] + wide + of[k])
        for k in range(middle - 1, -1, -1):
            out[h, k] = out[h, k + 1] - volatility * math.exp(network.width[h, k] + wide + of[k])
        for k in range(levels):
            out[h, k] = max(anchor + unit * out[h, k], 0.0) ** 2
