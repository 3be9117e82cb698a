"""A job that starts again after an outage: the newest records first, and the gap as a replay into the same table."""

from tidecast.recovery.restart import Recovery, recover

__all__ = ["Recovery", "recover"]
