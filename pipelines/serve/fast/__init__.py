"""The fast path: store, socket and log about one loop."""
