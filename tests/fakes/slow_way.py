"""A slow way to a real broker: a TCP proxy that holds each request back, and in whose answers the broker is itself."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def slow_way(bootstrap: str, delay_s: float) -> Iterator[str]:
    """Yield an address behind which a broker without encryption takes each request `delay_s` later."""
    host, port = bootstrap.rsplit(":", 1)
    with socket.create_server((host, 0)) as listener:
        own = listener.getsockname()[1]
        # Clients go on to the address that the broker states of itself: a string, and four bytes of port.
        stated, instead = (host.encode() + number.to_bytes(4, "big") for number in (int(port), own))

        def serve() -> None:
            with suppress(OSError):  # the listener was shut
                while True:
                    client = listener.accept()[0]
                    broker = socket.create_connection((host, int(port)))
                    _carry(client, broker, delay_s, stated, stated)
                    _carry(broker, client, 0.0, stated, instead)

        threading.Thread(target=serve, daemon=True).start()
        yield f"{host}:{own}"
        listener.shutdown(socket.SHUT_RDWR)


def _carry(source: socket.socket, sink: socket.socket, delay_s: float, old: bytes, new: bytes) -> None:
    """Pass on messages, four bytes of length before each, until an end closes; in a thread of its own."""

    def carry() -> None:
        with source, sink, suppress(OSError):
            messages = source.makefile("rb")
            while head := messages.read(4):
                body = messages.read(int.from_bytes(head, "big"))
                time.sleep(delay_s)
                sink.sendall(head + body.replace(old, new))
            sink.shutdown(socket.SHUT_RDWR)  # so that the other direction ends, too

    threading.Thread(target=carry, daemon=True).start()
