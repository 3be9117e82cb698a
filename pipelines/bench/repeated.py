"""What is done now and then beside a measurement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(act: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call a function from a thread every so many seconds while the block runs; the last call has ended after it."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(every_s):
            act()

    thread = threading.Thread(target=watch, name="repeated", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
