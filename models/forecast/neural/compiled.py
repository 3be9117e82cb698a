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
def _add_products(start: Any, weights: Any, values: Any) -> Any:
    """Return start (R,) + weights (R, C) · the first C of the values."""
    found = np.empty(len(start))
    for i in range(len(start)):
        total = start[i]
        for j in range(weights.shape[1]):
            total += weights[i, j] * values[j]
        found[i] = total
    return found


@numba.njit(cache=True)
def _recur(network: Any, read: Any, hidden: Any) -> None:
    """Run the cell on (I,) inputs; what is carried, its (N,) output first, is changed in place."""
    rows, units = network.recurrent.shape
    before = hidden[:units].copy()
    near = _add_products(network.biases[0], network.inputs, read)
    far = _add_products(network.biases[1], network.recurrent, before)
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
def _scales(network: Any, buffer: Any, newest: int) -> Any:
    """The newest root rate, its unit, the usual and the newest volatility, and the factor of last week's steps."""
    day = network.day
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
    return anchor, unit, usual, fast, ratio


@numba.njit(cache=True, error_model="numpy")
def _cell_inputs(network: Any, moves: Any, medians: Any, calm: float, restless: float) -> Any:
    """(I,) what the cell reads: moves and linear medians by the volatility, then how volatile the load is."""
    volatility, many = math.exp(calm), len(network.read)
    read = np.empty(many + len(network.look) + 2)
    for i in range(many):
        read[i] = math.asinh(moves[network.read[i]] / volatility)
    for i in range(len(network.look)):
        read[many + i] = math.asinh(medians[network.look[i]] / volatility)
    read[-2], read[-1] = calm - network.typical, restless
    return read


@numba.njit(cache=True, error_model="numpy")
def _spread_levels(
    network: Any, medians: Any, corrections: Any, level: float, calm: float, restless: float, out: Any
) -> None:
    """Fill `out` with the forecast in units, less the newest root rate: the other levels lie around the median."""
    volatility, (horizon, levels), middle = math.exp(calm), network.width.shape, network.middle
    for h in range(horizon):
        of = corrections[h * levels : (h + 1) * levels]
        median = medians[h] + volatility * (network.centre[h] + SHARE * of[middle])
        wide = network.steep[h] * math.log(max(level + median, LEAST_LEVEL)) + network.restless[h] * restless
        out[h, middle] = median
        for k in range(middle + 1, levels):
            out[h, k] = out[h, k - 1] + volatility * math.exp(network.width[h, k] + wide + of[k])
        for k in range(middle - 1, -1, -1):
            out[h, k] = out[h, k + 1] - volatility * math.exp(network.width[h, k] + wide + of[k])


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
    anchor, unit, usual, fast, ratio = _scales(network, buffer, end - 1)
    moves = np.empty(len(network.back))
    for i in range(len(moves)):
        root = math.sqrt(buffer[end - 1 + network.back[i]]) * (ratio if network.weekly[i] else 1.0)
        moves[i] = (root - anchor) / unit
    calm, restless = math.log(usual / unit), math.log(fast / usual)
    medians = _add_products(network.bias, network.linear, moves)
    _recur(network, _cell_inputs(network, moves, medians, calm, restless), hidden)
    corrections = _add_products(network.head_bias, network.head, hidden)
    _spread_levels(network, medians, corrections, anchor / unit, calm, restless, out)
    for h in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[h, k] = max(anchor + unit * out[h, k], 0.0) ** 2
