"""Imported by Python itself at the start of a process under libfaketime: 0.9.10 fails where a process sleeps.

`time.sleep` waits until a moment of the steady clock (clock_nanosleep), which libfaketime takes for one of the wall
clock, though told to leave the steady one alone, and answers EINVAL. Locks wait by another call.
"""

import threading
import time
from typing import SupportsIndex


def _sleep(seconds: float | SupportsIndex, /) -> None:
    threading.Event().wait(float(seconds))


time.sleep = _sleep
