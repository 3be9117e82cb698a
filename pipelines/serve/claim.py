"""Who serves: each server claims an epoch, the offset of its claim on `control`; one that sees a later claim leaves.

Forecasts carry the epoch, and the autoscaler never goes back to an older one.
"""

from __future__ import annotations

import time

from configs.sections import Kafka
from pipelines.kafka.broker import Follower, Publisher, read_all
from tidecast.messages import Control, encode

TOPIC = "control"
KEY = "serving:epoch"


class Claim:
    """One server's claim."""

    def __init__(self, kafka: Kafka, publisher: Publisher, kept: int | None = None) -> None:
        """Claim; with `kept`, an epoch claimed before goes on unless another server has claimed since.

        Args:
            kafka: the broker.
            publisher: sends the claim.
            kept: epoch under which a store was written. A restart on it goes on under the same epoch, so that its
                forecasts have the bytes they would have had without the restart.
        """
        if kept is None or kept != _newest(kafka):
            said = encode(Control(job="serving", wall_time=time.time()))
            kept = int(publisher.send_bytes(TOPIC, KEY.encode(), said).get(timeout=30).offset)
        self.epoch = kept
        self._claims = Follower(kafka, [TOPIC])

    def lost(self) -> bool:
        """Whether another server has claimed since."""
        return any(r.key == KEY and r.offset > self.epoch for r in self._claims.poll(0))

    def close(self) -> None:
        """Look no more."""
        self._claims.close()


def _newest(kafka: Kafka) -> int | None:
    return max((record.offset for record in read_all(kafka, TOPIC) if record.key == KEY), default=None)
