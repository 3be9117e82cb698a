"""Ends a server on SIGTERM and ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Set the event on SIGTERM and ctrl-C while the `with` block runs; the handlers before are put back after it.

    Raises:
        ValueError: not called from the main thread.
    """
    before = {name: signal.signal(name, lambda *_: stop.set()) for name in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
