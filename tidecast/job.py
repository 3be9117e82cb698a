"""What the agent's threads know of the job together."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from tidecast.clock import WALL, Clock
from tidecast.connection.outbox import Outbox
from tidecast.guard import Limits, Seen
from tidecast.messages import Reject
from tidecast.outcomes import Tracker
from tidecast.spark.actuator import Actuator
from tidecast.spark.sensors import Curve, HeavyStage, Offsets, Partition


@dataclass
class Job:
    """One job under the agent's eyes. `lock` guards what several threads change together: mode, target, tracker.

    `prefix` stands before the names of Tidecast's own topics.

    `ends` are the newest sampled end offsets of its topics, `committed` the end offsets of its last finished batch
    (None before one), `executors` the cores of every registered executor by id. `granted` is the widest mode that
    `attach` allows, `found` the executors that were there when the agent took over. `heard_at` is the wall time of the
    autoscaler's last sign of life, `handed_back` whether its silence was answered (`tidecast.contact`).
    """

    name: str
    granted: str
    clock: Clock | None
    limits: Limits
    actuator: Actuator
    outbox: Outbox
    topics: tuple[str, ...]
    lost_contact_s: float = 60.0
    mode: str = "observe"
    prefix: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)
    stop: threading.Event = field(default_factory=threading.Event)
    seen: Seen = field(default_factory=Seen)
    tracker: Tracker = field(default_factory=Tracker)
    curves: dict[Partition, Curve] = field(default_factory=dict)
    heavy: HeavyStage = field(default_factory=HeavyStage)
    ends: Offsets = field(default_factory=dict)
    committed: Offsets | None = None
    executors: dict[str, int] = field(default_factory=dict)
    owns_executors: bool = False
    found: int = 0
    heard_at: float = 0.0
    handed_back: bool = False

    @property
    def time(self) -> Clock:
        """The job's clock; the wall's while a replay's has not been announced."""
        return self.clock or WALL

    def ceiling(self) -> int | None:
        """Tasks of the stage that takes the time; before a batch has shown it, the partitions of the topics."""
        return self.heavy.tasks() or len(self.ends) or None

    def live(self) -> list[str]:
        """Executors that are there to stay."""
        return [i for i in self.executors if i not in self.actuator.asked]

    def cores(self) -> int:
        """Cores of the executors that are there to stay."""
        return sum(cores for i, cores in self.executors.items() if i not in self.actuator.asked)

    def leaving(self) -> list[str]:
        """Executors that were asked to leave and are still there."""
        return [i for i in self.executors if i in self.actuator.asked]

    def pending(self) -> int | None:
        """Executors asked for and not yet registered; None while somebody else owns the target."""
        if not self.owns_executors or self.actuator.target is None:
            return None
        return max(0, self.actuator.target - len(self.live()))

    def reject(self, record: Reject) -> None:
        """Put a record that cannot be accepted where a person can find it."""
        self.outbox.send("rejects", record.topic, record)
