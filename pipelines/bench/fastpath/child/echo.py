"""A bare echo on a Unix socket, the floor under the fast path: `python -m pipelines.bench.fastpath.child.echo PATH`."""

from __future__ import annotations

import gc
import socket
import sys


def serve_echo(path: str) -> None:
    """Listen on a new Unix socket and send back whatever comes, to one client after the other; never returns.

    Raises:
        OSError: the path exists, is too long for a socket or not writable, or a client broke off.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(1)
        gc.freeze()
        while True:
            client, _ = listening.accept()
            with client:
                while data := client.recv(1 << 18):
                    client.sendall(data)


if __name__ == "__main__":
    serve_echo(sys.argv[1])
