"""What an alert asks of the metrics, declared once: computed here for webhooks, written as PromQL for Prometheus."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from models.alerts.metric import BY_NAME, Sample

Labels = tuple[tuple[str, str], ...]
"""Names and values of labels, sorted by name."""
_SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "==": operator.eq}
_TARGET = "instance"
"""Label that Prometheus adds: who was asked. Values of two followers are not compared with each other."""


@dataclass(frozen=True)
class Comparison:
    """A metric's values against a number, or against those of another metric where the labels of both agree.

    Attributes:
        metric: name of the metric.
        sign: of the comparison.
        limit: a number, or the name of the other metric; its labels have to be among those left to this one.
        where: labels that the values must have.
        times: what the other metric is multiplied by.
        age: whether the metric is a time, of which the seconds that have passed since are compared.
    """

    metric: str
    sign: Literal[">", ">=", "<", "<=", "=="]
    limit: float | str
    where: Labels = ()
    times: float = 1.0
    age: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels by which its values differ."""
        fixed = dict(self.where)
        return tuple(name for name in BY_NAME[self.metric].labels if name not in fixed)

    @property
    def promql(self) -> str:
        """The comparison as an expression of PromQL, which keeps the values for which it holds."""
        where = ",".join(f'{name}="{value}"' for name, value in self.where)
        read = f"{'time() - ' if self.age else ''}{self.metric}{f'{{{where}}}' if where else ''}"
        if not isinstance(self.limit, str):
            return f"{read} {self.sign} {self.limit:g}"
        limit = self.limit if self.times == 1 else f"({self.times:g} * {self.limit})"
        return f"{read} {self.sign} on ({_on(self.labels, self._limit_labels)}) {limit}"

    def holding(self, samples: Mapping[str, Sequence[Sample]], now: float) -> dict[Labels, float]:
        """Return the values for which it holds, by their labels without those of `where`.

        Args:
            samples: values by the name of their metric.
            now: epoch seconds.
        """
        found = {}
        limits = self._limits(samples)
        for sample in samples.get(self.metric, ()):
            if any(sample.labels.get(name) != value for name, value in self.where):
                continue
            value = now - sample.value if self.age else sample.value
            limit = limits.get(_picked(sample.labels, self._limit_labels))
            if limit is not None and _SIGNS[self.sign](value, limit):
                found[_picked(sample.labels, self.labels)] = value
        return found

    @property
    def _limit_labels(self) -> tuple[str, ...]:
        return BY_NAME[self.limit].labels if isinstance(self.limit, str) else ()

    def _limits(self, samples: Mapping[str, Sequence[Sample]]) -> dict[Labels, float]:
        if not isinstance(self.limit, str):
            return {(): self.limit}
        of = samples.get(self.limit, ())
        return {_picked(one.labels, self._limit_labels): self.times * one.value for one in of}


@dataclass(frozen=True)
class Condition:
    """Comparisons that hold together, where the labels that they share agree; the first one's values are told."""

    all: tuple[Comparison, ...]

    @property
    def promql(self) -> str:
        """The condition as an expression of PromQL."""
        first, *others = self.all
        return " ".join(
            [first.promql, *(f"and on ({_on(first.labels, other.labels)}) {other.promql}" for other in others)]
        )

    def holding(self, samples: Mapping[str, Sequence[Sample]], now: float) -> dict[Labels, float]:
        """Return the first comparison's values for which all hold, by their labels; arguments as in `Comparison`."""
        first, *others = self.all
        found = first.holding(samples, now)
        for other in others:
            shared = [name for name in first.labels if name in other.labels]
            there = {_picked(dict(labels), shared) for labels in other.holding(samples, now)}
            found = {labels: value for labels, value in found.items() if _picked(dict(labels), shared) in there}
        return found


def _on(labels: Sequence[str], others: Sequence[str]) -> str:
    return ", ".join([*(name for name in labels if name in others), _TARGET])


def _picked(labels: Mapping[str, str], names: Iterable[str]) -> Labels:
    return tuple(sorted((name, labels[name]) for name in names))
