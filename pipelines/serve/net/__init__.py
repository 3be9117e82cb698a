"""The fast path's socket: the wire format, its server and its client."""
