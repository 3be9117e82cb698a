"""The processes that a measurement of the fast path starts."""
