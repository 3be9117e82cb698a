"""All that a follower knows at a moment, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from configs.contract import Contract
from models.alerts.followed import Followed
from models.pool.state import PoolState


@dataclass(frozen=True)
class Ingested:
    """The newest ingest of a topic: when it began (epoch seconds), and records stored, refused and still waiting.

    `waiting` is None while the broker does not say.
    """

    began: float
    stored: int
    quarantined: int
    waiting: int | None = None


@dataclass(frozen=True)
class LakeSeen:
    """The lake on its disk: bytes and files by table, bytes that were added on the last day with any, and free ones."""

    size_bytes: Mapping[str, int]
    files: Mapping[str, int]
    growth_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class DriftSeen:
    """A job's newest reported drift: when it was reported (epoch seconds), and by what factor something changed."""

    reported: float
    factor: float


@dataclass(frozen=True)
class Knowledge:
    """What a follower knows.

    Attributes:
        jobs: what is known of each job with a contract's file, by name.
        contracts: those that can be read, or could last.
        wrong: jobs whose contract cannot be read.
        broker_up: whether the broker answers; None before the first look.
        ingests: newest ingests by topic.
        lake: None where there is none.
        drifts: by job.
        pools: as the autoscaler said last that they stand, by name.
        refused: refused records by who refused them.
        failed: messages that webhooks did not take, by host.
        unread: topics that cannot be read: what they told of jobs last is old, and is left out.
    """

    jobs: Mapping[str, Followed] = field(default_factory=dict)
    contracts: Mapping[str, Contract] = field(default_factory=dict)
    wrong: frozenset[str] = frozenset()
    broker_up: bool | None = None
    ingests: Mapping[str, Ingested] = field(default_factory=dict)
    lake: LakeSeen | None = None
    drifts: Mapping[str, DriftSeen] = field(default_factory=dict)
    pools: Mapping[str, PoolState] = field(default_factory=dict)
    refused: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
