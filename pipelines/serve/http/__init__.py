"""The fast path over HTTP: a process of its own that only reads."""
