"""Tells how pools stand, on the topic `pools`: for those who look, and never in the way of a division."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

from configs.errors import SettingsError
from configs.sections import Kafka
from models.pool.state import PoolState
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.publisher import Publisher
from tidecast.messages import MessageError, encode

WAIT_S = 0.5
"""Longest wait for a topic that the client does not know, and for the broker: a division is due each second."""
AGAIN_S = 10.0
"""Seconds after which it is tried again where the broker has not taken it."""


class PoolTelling:
    """Sends a pool's state when what jobs have or miss is another, and else every so often."""

    def __init__(self, kafka: Kafka, every_s: float) -> None:
        """Take the broker's settings; connects when there is something to tell."""
        self._kafka, self._every_s = kafka, every_s
        self._publisher: Publisher | None = None
        self._told: dict[str, PoolState] = {}
        self._failed, self._failed_at = "", -math.inf

    def tell(self, states: Mapping[str, PoolState], there: Collection[str], now: float) -> str:
        """Send what is to be told.

        Args:
            states: of pools that were divided, or cannot be, by name.
            there: names of all pools that there are; of others that were told of it is said that they are gone.
            now: epoch seconds.

        Returns:
            Why the broker does not take it; "" where it does. What was not sent is sent with the next state.
        """
        gone = {name: PoolState(name, now, "gone") for name in self._told if name not in there}
        due = {name: state for name, state in states.items() if self._is_due(state)} | gone
        if not due or 0 <= now - self._failed_at < AGAIN_S:
            return self._failed
        try:
            if self._publisher is None:
                self._publisher = Publisher(self._kafka, max_block_ms=int(1000 * WAIT_S))
            for name, state in due.items():
                self._publisher.send_bytes("pools", name.encode(), encode(state))
                self._told[name] = state
            self._publisher.flush(WAIT_S)
        except (BrokerError, SettingsError, MessageError) as error:
            self._failed, self._failed_at = f"not told how pools stand: {error}", now
            return self._failed
        self._told = {name: state for name, state in self._told.items() if name in there}
        self._failed = ""
        return ""

    def _is_due(self, state: PoolState) -> bool:
        before = self._told.get(state.pool)
        if before is None or _news(state) != _news(before):
            return True
        # Where the clock was set back, too: nothing would be told until it shows that time again.
        return not 0 <= state.wall_time - before.wall_time < self._every_s


def _news(state: PoolState) -> object:
    """What of a state is told at once: what jobs have and why, and whether it is too small."""
    shares = [(share["job"], share["granted"], share["granted_replay"], share["codes"]) for share in state.shares]
    return replace(state, wall_time=0.0, usable=0.0, hour_core_s=0.0, day_core_s=0.0, short_from=None, shares=shares)
