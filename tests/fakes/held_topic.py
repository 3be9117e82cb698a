"""A topic of which a test says what its broker has: offsets of partitions, and records in spans of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelines.backfill.held import HeldPartition, HeldTopic


@dataclass(frozen=True)
class NotedTopic(HeldTopic):
    """Stamps of the first record that a span has, by partition; what was asked for is noted."""

    stamps: dict[int, float] = field(default_factory=dict)
    asked: list[dict[int, tuple[int, int]]] = field(default_factory=list)

    def first_stamps(self, spans):
        self.asked.append(dict(spans))
        return {number: at for number, at in self.stamps.items() if number in spans}


def noted(*parts: tuple[int, int, int], stamps: dict[int, float] | None = None, name: str = "orders") -> NotedTopic:
    """A topic with partitions from 0 on: first offset that is kept, of the range's begin, and of its end."""
    return NotedTopic(None, name, dict(enumerate(HeldPartition(*part) for part in parts)), stamps or {})
