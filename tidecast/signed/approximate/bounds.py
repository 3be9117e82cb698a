"""How wrong a sketch or a sample may be, and which size keeps it: formulas alone, the same for planner and query.

`pf` is the probability with which a bound may fail, `eps` its half width. A bound is of one answer: of several the
probabilities add up (union bound).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Any

LEAST_PRECISION, MOST_PRECISION = 4, 21
"""Of HyperLogLog: base 2 logarithm of its registers, as the DataSketches library allows."""
LEAST_K, MOST_K = 8, 65535
"""Of KLL, likewise."""
LEAST_LOG_K, MOST_LOG_K = 4, 26
"""Of theta sketches, as Spark allows: base 2 logarithm of the values that one keeps."""
_KLL_FACTOR, _KLL_POWER, _KLL_PF = 2.296, 0.9021, 0.01


def check_share(name: str, value: float) -> float:
    """Return a share.

    Raises:
        ValueError: it is not above 0 and below 1.
    """
    if not 0 < value < 1:
        raise ValueError(f"{name}={value}: give more than 0 and less than 1")
    return value


def deviations(pf: float) -> float:
    """Return how many standard deviations a normal error leaves, to either side together, with probability pf."""
    return NormalDist().inv_cdf(1 - check_share("pf", pf) / 2)


def count_min_size(eps: float, pf: float) -> tuple[int, int]:
    """Return width 2^⌈log2(e/eps)⌉ and depth ⌈ln(1/pf)⌉ of a count-min sketch (Cormode and Muthukrishnan 2005).

    The width is a power of 2, so that it can be halved.

    Args:
        eps: largest error, as a share of all that was counted.
        pf: probability that an answer exceeds it.
    """
    return 2 ** math.ceil(math.log2(math.e / check_share("eps", eps))), math.ceil(-math.log(check_share("pf", pf)))


def count_min_bound(width: int, depth: int) -> tuple[float, float]:
    """Return eps = e/w, a share of all that was counted, and pf = e^−d: y ≤ ŷ always, ŷ ≤ y + eps·N but for pf."""
    return math.e / width, math.exp(-depth)


def hyperloglog_error(precision: int, pf: float) -> float:
    """Return the relative error of a distinct count: deviations · 1.04/√m, m = 2^p (Flajolet et al. 2007)."""
    return deviations(pf) * 1.04 / math.sqrt(2**precision)


def hyperloglog_precision(eps_rel: float, pf: float) -> int:
    """Return the least precision p with a relative error of at most `eps_rel`.

    Raises:
        ValueError: there is none up to 21.
    """
    registers = (deviations(pf) * 1.04 / check_share("eps_rel", eps_rel)) ** 2
    precision = max(math.ceil(math.log2(registers)), LEAST_PRECISION)
    if precision > MOST_PRECISION:
        least = hyperloglog_error(MOST_PRECISION, pf)
        raise ValueError(f"eps_rel={eps_rel}, pf={pf}: HyperLogLog reaches {least:.2g} at most; count exactly instead")
    return precision


def kll_rank_error(k: int, pf: float) -> float:
    """Return the error of a rank as a share of all values: 2.296/k^0.9021 at 99 %.

    The constants are those that the DataSketches library measured (Karnin, Lang and Liberty 2016 prove the order);
    other probabilities are taken from a normal distribution of the same 99 %.
    """
    return float(_KLL_FACTOR / k**_KLL_POWER * deviations(pf) / deviations(_KLL_PF))


def kll_size(eps: float, pf: float) -> int:
    """Return the least k with a rank error of at most `eps`.

    Raises:
        ValueError: there is none up to 65535.
    """
    ratio = _KLL_FACTOR * deviations(pf) / deviations(_KLL_PF) / check_share("eps", eps)
    k: int = max(math.ceil(ratio ** (1 / _KLL_POWER)), LEAST_K)
    if k > MOST_K:
        raise ValueError(f"eps={eps}, pf={pf}: KLL reaches {kll_rank_error(MOST_K, pf):.2g} at most; sort instead")
    return k


def around(estimate: Any, relative: float) -> Any:
    """Return the half width around an estimate that holds the truth, if the estimate is wrong by at most so much of it.

    |ŷ − y| ≤ e·y puts y between ŷ/(1 + e) and ŷ/(1 − e). Works on numbers and on Spark's columns.
    """
    return estimate * (relative / (1 - relative))


def sampled_sum_error(squares: Any, rate: float, most: float, pf: float, root: Callable[[Any], Any] = math.sqrt) -> Any:
    """Return the error of Σx, estimated as Σ x/r of a Bernoulli sample (Horvitz and Thompson), however few values.

    Bernstein's inequality with V = Q·(1 − r)/r, Q = Σx², and its upper bound from the sample, √Q ≤ (a + √(a² + 4Q̂))/2
    with a = M·√(2·ln(2/pf)/r) (Maurer 2003 on sums of what is not negative); each takes half of pf.

    Args:
        squares: Q̂ = Σ x²/r of the sample; a number or a column of Spark's.
        rate: r, above 0 and at most 1.
        most: M, largest |x|; a count has x = 1.
        pf: as above.
        root: square root of such numbers.
    """
    if rate >= 1:
        return squares * 0.0
    return _bernstein(squares, most / rate, (1 - rate) / rate, most * max(rate, 1 - rate) / rate, most, pf, root)


def difference_error(estimate: Any, whole: Any, k: int, pf: float, root: Callable[[Any], Any] = math.sqrt) -> Any:
    """Return the error of a count that is what k sampled values leave of a whole, at a rate of k/whole or more.

    That is what a theta sketch's difference is (Dasgupta, Lang, Rhodes and Thaler 2016); exact while the whole is at
    most k, which the caller has to see to. As `sampled_sum_error`, without its factor 1 − r.
    """
    scale = whole / k
    return _bernstein(estimate, scale, scale, scale, 1.0, pf, root)


def difference_size(eps: float, pf: float) -> int:
    """Return the least log2 k whose `difference_error` is at most `eps` of the whole, however large that is.

    As a share of the whole the error depends on k alone, and is largest where nothing was retracted.

    Raises:
        ValueError: there is none up to 26.
    """
    check_share("eps", eps)
    for log_k in range(LEAST_LOG_K, MOST_LOG_K + 1):
        if difference_error(1.0, 1.0, 2**log_k, pf) <= eps:
            return log_k
    least = difference_error(1.0, 1.0, 2**MOST_LOG_K, pf)
    raise ValueError(f"eps={eps}, pf={pf}: theta sketches reach {least:.2g} at most; count exactly instead")


def _bernstein(squares: Any, scale: Any, variance: Any, step: Any, most: float, pf: float, root: Any) -> Any:
    """√(2·L·variance·Q + (step·L/3)²) + step·L/3 with L = ln(4/pf), Q at its upper bound; see `sampled_sum_error`.

    Args:
        squares: Q̂.
        scale: M/r.
        variance: of the sum per Q.
        step: largest summand.
        most: M.
        pf: probability that it fails.
        root: square root.
    """
    spread = root(squares * 0.0 + scale * (most * 2 * math.log(2 / check_share("pf", pf))))  # a column, if one is given
    square_root = (root(squares * 4.0 + spread * spread) + spread) / 2
    tail = math.log(4 / pf)
    linear = step * (tail / 3)
    return root(square_root * square_root * variance * (2 * tail) + linear * linear) + linear


def sampled_mean_error(size: Any, low: float, high: float, pf: float, root: Callable[[Any], Any] = math.sqrt) -> Any:
    """Return the error of a mean of a sample: (high − low)·√(ln(2/pf)/2n) (Hoeffding 1963, also without replacement).

    Args:
        size: n, values in the sample, above 0; a number or a column of Spark's.
        low: least possible value.
        high: greatest possible value.
        pf: as above.
        root: square root of such numbers.
    """
    return (high - low) * math.sqrt(math.log(2 / check_share("pf", pf)) / 2) / root(size)
