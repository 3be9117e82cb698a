"""Whether a topic has got more partitions than a server follows: they are assigned once, at its start."""

from __future__ import annotations

import logging
import threading

from configs.sections import Kafka
from pipelines.kafka.broker import topic_offsets

log = logging.getLogger(__name__)
LOOK_S = 60.0
"""Wall seconds between two looks."""
CLOSE_S = 2.0


class PartitionWatch:
    """Thread that looks every `LOOK_S` s whether a topic has more partitions; it says so, sets an event, and ends."""

    def __init__(self, kafka: Kafka, topic: str, followed: int, grown: threading.Event) -> None:
        """Start the thread; the first look is after `LOOK_S` s.

        Args:
            kafka: connection settings.
            topic: name without the prefix.
            followed: number of partitions that the server follows.
            grown: set once there are more.
        """
        self._kafka, self._topic, self._followed, self._grown = kafka, topic, followed, grown
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="partitions", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Tell the thread to end and wait up to 2 s for it; a look-up that takes longer is left behind."""
        self._stop.set()
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        reported = ""
        while not self._stop.wait(LOOK_S):
            try:
                there = len(topic_offsets(self._kafka, self._topic))
            except Exception as error:  # an outage is waited out
                if str(error) != reported:
                    log.warning("serving: partitions of %s cannot be counted: %s", self._topic, error)
                reported = str(error)
                continue
            reported = ""  # the next outage is another one, and is told again
            if there > self._followed:
                print(
                    f"serving: topic {self._topic} has {there} partitions, of which {self._followed} are followed; "
                    "leaving, so that the next run follows all",
                    flush=True,
                )
                self._grown.set()
                return
