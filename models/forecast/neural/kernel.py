"""One step of a recurrent network, compiled: what it reads, the cell, the head, the rates. What `Recurrent` computes.

`net` is an `online_weights.Weights`. Cell and head count in 32 bits as torch does, what they read in 64 bits.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from models.forecast.neural.windows import _CALM, _LEAST, _MOST_CHANGE, BREAK, FAST

# Sums may be taken in another order, else they run one by one; nothing else is given up, NaN and infinity included.
_SUMS: Any = {"reassoc", "contract"}
_ONE, _EXPECTED = np.float32(1.0), np.float32(0.05)


@numba.njit(cache=True, inline="never", fastmath=_SUMS)
def _total(values: Any) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


@numba.njit(cache=True, inline="never", fastmath=_SUMS)
def _shifts(values: Any) -> float:
    """The sum of the absolute differences of neighbours."""
    total = 0.0
    for i in range(len(values) - 1):
        total += abs(values[i + 1] - values[i])
    return total


@numba.njit(cache=True, inline="never", fastmath=_SUMS)
def _add_product(out: Any, x: Any, weights: Any) -> None:
    """Out += x · weights, where row i of the weights is what x_i counts; rows lie side by side in memory."""
    for i in range(len(x)):
        factor, row = x[i], weights[i]
        for k in range(len(out)):
            out[k] += factor * row[k]


@numba.njit(cache=True, inline="always")
def _sigmoid(x: Any) -> Any:
    return _ONE / (_ONE + math.exp(-x))


@numba.njit(cache=True, inline="never")
def read(net: Any, values: Any, row: Any, root: Any) -> tuple[float, float]:
    """Fill the row (width,) that `windows.read` gives after the last of (≥ needs,) values; its anchor and unit.

    `root` (day + 1,) is scratch.
    """
    day, moves, newest = net.day, len(net.back), len(values)
    for i in range(day + 1):
        root[i] = math.sqrt(values[newest - day - 1 + i])
    anchor = root[day]
    unit = max(_total(root[1:]) / day, _LEAST)
    usual = max(_shifts(root) / day, _CALM * unit)
    fast = min(FAST, day)
    lately = max(_shifts(root[day - fast :]) / fast, 0.1 * usual)
    change = 1.0
    if net.season > day:
        for i in range(day):
            root[i] = math.sqrt(values[newest - net.season - day + i])
        ratio = unit / max(_total(root[:day]) / day, _LEAST)
        if abs(math.log(ratio)) > math.log(BREAK):
            change = min(max(ratio, 1.0 / _MOST_CHANGE), _MOST_CHANGE)
    for i in range(moves):
        there = math.sqrt(values[newest - 1 + net.back[i]])
        row[i] = ((change * there if net.weekly[i] else there) - anchor) / unit
    row[moves], row[moves + 1], row[moves + 2] = anchor / unit, math.log(usual / unit), math.log(lately / usual)
    return anchor, unit


@numba.njit(cache=True, inline="never")
def _recur(net: Any, inputs: Any, hidden: Any) -> None:
    """The cell's step, in place: the state of a GRU, or that of an LSTM beside its cell's."""
    units = net.units
    given, again = net.input_bias.copy(), net.state_bias.copy()
    _add_product(given, inputs, net.of_input)
    _add_product(again, hidden[:units], net.of_state)
    if net.gru:
        for k in range(units):
            reset = _sigmoid(given[k] + again[k])
            keep = _sigmoid(given[units + k] + again[units + k])
            new = math.tanh(given[2 * units + k] + reset * again[2 * units + k])
            hidden[k] = new + keep * (hidden[k] - new)
        return
    for k in range(units):
        taken = _sigmoid(given[k] + again[k]) * math.tanh(given[2 * units + k] + again[2 * units + k])
        kept = _sigmoid(given[units + k] + again[units + k]) * hidden[units + k]
        hidden[units + k] = kept + taken
        hidden[k] = _sigmoid(given[3 * units + k] + again[3 * units + k]) * math.tanh(kept + taken)


@numba.njit(cache=True, inline="never")
def _say(net: Any, row: Any, linear: Any, hidden: Any, anchor: float, unit: float, out: Any) -> None:
    """Fill (horizon, levels) records/s."""
    moves, (horizon, levels), middle = len(net.back), out.shape, net.middle
    level, volatility, restless = row[moves], math.exp(row[moves + 1]), row[moves + 2]
    said = net.head_bias.copy()
    _add_product(said, hidden[: net.units], net.head)
    for h in range(horizon):
        at = h * levels
        median = linear[h] + volatility * (net.centre[h] + net.share * said[at + middle])
        expected = math.log(max(level + median, _EXPECTED))
        common = net.steep[h] * expected + net.restless[h] * restless
        for i in range(levels):
            said[at + i] = math.exp(net.width[h, i] + common + said[at + i]) * volatility
        said[at + middle] = median
        for i in range(middle + 1, levels):
            said[at + i] += said[at + i - 1]
        for i in range(middle - 1, -1, -1):
            said[at + i] = said[at + i + 1] - said[at + i]
        for i in range(levels):
            rate = max(anchor + unit * said[at + i], 0.0)
            out[h, i] = rate * rate


@numba.njit(cache=True, inline="never")
def _moved(net: Any, values: Any, hidden: Any, out: Any, row: Any, root: Any, inputs: Any, speak: bool) -> None:
    anchor, unit = read(net, values, row, root)
    moves = len(net.back)
    linear = net.bias.copy()
    _add_product(linear, row[:moves], net.linear)
    volatility = math.exp(row[moves + 1])
    for i in range(len(net.read)):
        inputs[i] = math.asinh(row[net.read[i]] / volatility)
    for i in range(len(net.look)):
        inputs[len(net.read) + i] = math.asinh(linear[net.look[i]] / volatility)
    inputs[-2], inputs[-1] = row[moves + 1] - net.typical, row[moves + 2]
    _recur(net, inputs, hidden)
    if speak:
        _say(net, row, linear, hidden, anchor, unit, out)


@numba.njit(cache=True, error_model="numpy")
def step_all(net: Any, values: Any, ends: Any, slots: Any, hidden: Any, out: Any) -> None:
    """Move some of the series one step on, whose newest value is there already.

    Args:
        net: the weights.
        values: (series, ≥ needs) records/s, gaps filled.
        ends: (B,) index after the newest value.
        slots: (B,) which series.
        hidden: (series, carried) changed in place.
        out: (series, horizon, levels) filled with records/s.
    """
    row, root, inputs = np.empty(len(net.back) + 3, np.float32), np.empty(net.day + 1), np.empty(net.inputs, np.float32)
    for i in range(len(slots)):
        seen = values[slots[i], ends[i] - net.needs : ends[i]]
        _moved(net, seen, hidden[slots[i]], out[slots[i]], row, root, inputs, True)


@numba.njit(cache=True, error_model="numpy")
def follow(net: Any, values: Any, hidden: Any, out: Any) -> None:
    """Read (T ≥ needs,) values of one series from an empty state; fill `hidden` and `out` with those at the end."""
    row, root, inputs = np.empty(len(net.back) + 3, np.float32), np.empty(net.day + 1), np.empty(net.inputs, np.float32)
    hidden[:] = 0.0
    for end in range(net.needs, len(values) + 1):
        _moved(net, values[end - net.needs : end], hidden, out, row, root, inputs, end == len(values))
