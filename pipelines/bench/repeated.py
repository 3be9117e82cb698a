"""What is done now and then beside a measurement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(act: Callable[[], object], every_s: float, after_s: float = 0.0) -> Iterator[None]:
    """Call a function from a thread every so many seconds while the block runs; the last call has ended after it.

    Args:
        act: the function.
        every_s: seconds from one call to the next, and to the first.
        after_s: seconds in which it is not called at all.
    """
    over = threading.Event()

    def watch() -> None:
        over.wait(after_s)
        while not over.wait(every_s):
            act()

    thread = threading.Thread(target=watch, name="repeated", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
