"""The fast path's socket: the wire format, who serves it, who asks."""
