"""What follows once a replay's range is read, in a thread of its own: other replays go on being paced meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tidecast.orders import ReplayOrder

log = logging.getLogger("tidecast")

WAIT_S = 5.0
"""How long a driver that ends waits for one; a publication that it cuts short is repeated by the next agent."""


class Closing:
    """Publishes or compares a replay, once.

    Attributes:
        then: of the order that it was begun for: publish or compare.
    """

    def __init__(self, order: ReplayOrder, act: Callable[[ReplayOrder], str | None], begin: Callable[[], None]) -> None:
        """Begin it.

        Args:
            order: of which all is read.
            act: publishes or compares; the text that it returns is told.
            begin: called in the thread before, for what belongs to a thread, such as Spark's pool.
        """
        self.then = order.then
        self._text = ""
        self._error: Exception | None = None
        self._thread = threading.Thread(
            target=self._run,
            args=(order, act, begin),
            name=f"tidecast-{order.job}-{order.then}-{order.id}",
            daemon=True,
        )
        self._thread.start()

    @property
    def going_on(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    @property
    def failed(self) -> bool:
        """Whether it has ended by an error."""
        return self._error is not None

    def result(self) -> str:
        """Return what it told, once it has ended.

        Raises:
            Exception: what it has failed with.
        """
        if self._error is not None:
            raise self._error
        return self._text

    def wait(self) -> None:
        """Wait up to WAIT_S for its end."""
        self._thread.join(WAIT_S)

    def _run(self, order: ReplayOrder, act: Callable[[ReplayOrder], str | None], begin: Callable[[], None]) -> None:
        try:
            begin()
            self._text = act(order) or ""
        except Exception as error:
            log.debug("%s: to %s replay %s failed", order.job, order.then, order.id, exc_info=True)
            self._error = error
