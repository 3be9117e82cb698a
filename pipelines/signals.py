"""What SIGTERM and ctrl-C do to a process of ours: they set an event, after which it ends its work in order."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDING = (signal.SIGTERM, signal.SIGINT)


def event_of_signals() -> threading.Event:
    """Return an event that SIGTERM and ctrl-C set from now on, until the process ends.

    Raises:
        ValueError: not called from the main thread.
    """
    stop = threading.Event()
    for name in _ENDING:
        signal.signal(name, lambda *_: stop.set())
    return stop


@contextmanager
def stop_on_signals(stop: threading.Event) -> Iterator[None]:
    """Set the event on SIGTERM and ctrl-C while the `with` block runs; the handlers before are put back after it.

    Raises:
        ValueError: not called from the main thread.
    """
    before = {name: signal.signal(name, lambda *_: stop.set()) for name in _ENDING}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def keep_sigterm_from_jvm() -> None:
    """Let every process that this one starts from now on ignore SIGTERM, Spark's JVM above all.

    Where all processes of a command get the signal, this one ends its query first.
    """
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN))
