"""Distances between two samples of features as distributions: MMD, and CMMD given class labels. All differentiable.

Gretton et al., "A Kernel Two-Sample Test", JMLR 13 (2012); Long et al., "Deep Transfer Learning with Joint Adaptation
Networks", ICML 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Bandwidths of the Gaussians, as multiples of the median distance."""
LEAST_CLASS = 4
"""A class with fewer samples than this on either side is left out."""
_LEAST_BANDWIDTH = 1e-6

Kernel = Callable[[Tensor, Tensor], Tensor]
"""(n, d) and (m, d) samples to (n, m) values in [0, 1], 1 where samples are equal."""


class DiscrepancyError(ValueError):
    """Samples whose shapes do not fit; the message says what was expected."""


@dataclass(frozen=True)
class Gaussians:
    """k(a, b) = mean over `bandwidths` s of exp(−‖a − b‖²/(2s²))."""

    bandwidths: tuple[float, ...]

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        """Return the (n, m) kernel values between (n, d) and (m, d) samples."""
        squared = squared_distances(a, b)
        return torch.stack([torch.exp(-squared / (2 * s * s)) for s in self.bandwidths]).mean(dim=0)


def squared_distances(a: Tensor, b: Tensor) -> Tensor:
    """Return the (n, m) squared distances ‖a − b‖² of (n, d) and (m, d) samples.

    They are computed from differences: exactly 0 between equal samples, with a finite gradient there.
    """
    return ((a[:, None, :] - b[None, :, :]) ** 2).sum(dim=-1)


def median_distance(pooled: Tensor) -> float:
    """Return the median of the N(N − 1)/2 pairwise distances in (N, d) samples, without a gradient; 0 if N < 2."""
    apart = torch.pdist(pooled.detach())
    return float(torch.quantile(apart.double(), 0.5)) if len(apart) else 0.0


def around_median(a: Tensor, b: Tensor) -> Gaussians:
    """Return the kernel whose bandwidths are `FACTORS` times the median distance in both samples together.

    Args:
        a: (n, d) features.
        b: (m, d) features.

    Returns:
        The kernel; its bandwidths carry no gradient.
    """
    middle = max(median_distance(torch.cat([a, b])), _LEAST_BANDWIDTH)
    return Gaussians(tuple(factor * middle for factor in FACTORS))


def mmd2_biased(a: Tensor, b: Tensor, kernel: Kernel) -> Tensor:
    """Return the biased estimate of MMD² = mean k(a, a') + mean k(b, b') − 2·mean k(a, b) over all pairs.

    Args:
        a: (n, d) features, n ≥ 1.
        b: (m, d) features, m ≥ 1.
        kernel: such as `around_median` returns.

    Returns:
        A scalar with a gradient; ≥ 0 up to rounding, 0 on equal multisets.

    Raises:
        DiscrepancyError: a sample is empty or not two-dimensional, or d differs.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not len(a) or not len(b):
        raise DiscrepancyError(
            f"samples of shapes {tuple(a.shape)} and {tuple(b.shape)}: (n, d) and (m, d) with n, m ≥ 1 are expected"
        )
    return kernel(a, a).mean() + kernel(b, b).mean() - 2 * kernel(a, b).mean()


def quartiles(labels: Tensor) -> Tensor:
    """Return the (3,) quartiles of (N,) labels, which are the edges of the classes of source and target."""
    return torch.quantile(labels, torch.tensor([0.25, 0.5, 0.75], dtype=labels.dtype))


def classes(labels: Tensor, edges: Tensor) -> Tensor:
    """Return the (N,) class, 0 to 3, of every label: the number of edges at or under it."""
    return torch.bucketize(labels, edges, right=True)


def cmmd2(
    a: Tensor, b: Tensor, class_a: Tensor, class_b: Tensor, kernel: Kernel, least: int = LEAST_CLASS
) -> tuple[Tensor, int]:
    """Return CMMD²: the mean over classes of MMD²(a, b) (`mmd2_biased`) within the class.

    It compares the features given the class; how frequent the classes are does not matter. A class with fewer than
    `least` samples on either side is left out.

    Args:
        a: (n, d) features.
        b: (m, d) features.
        class_a: (n,) class per sample.
        class_b: (m,) class per sample, of the same label intervals.
        kernel: such as `around_median` returns.
        least: samples a class needs on either side, at least 1.

    Returns:
        CMMD² as a scalar with a gradient, and how many classes it rests on; with none it is 0.

    Raises:
        DiscrepancyError: samples and classes differ in number, or the features' shapes do not fit.
    """
    if len(class_a) != len(a) or len(class_b) != len(b):
        raise DiscrepancyError(
            f"{len(a)} and {len(b)} samples with {len(class_a)} and {len(class_b)} classes: one class each is expected"
        )
    parts = [(a[class_a == c], b[class_b == c]) for c in torch.unique(class_a)]
    terms = [mmd2_biased(x, y, kernel) for x, y in parts if min(len(x), len(y)) >= least]
    return torch.stack(terms).mean() if terms else (a.sum() + b.sum()) * 0.0, len(terms)
