"""A way that is cut keeps its connections, and lets nothing pass until it is healed."""

import socket
import threading
from contextlib import suppress

import pytest

from pipelines.bench.site.way import Way
from pipelines.stack.ports import HOST


@pytest.fixture
def way():
    """To a server that answers in capitals, to all who come."""
    server = socket.create_server((HOST, 0))

    def answer(client):
        with client, suppress(OSError):
            while said := client.recv(100):
                client.sendall(said.upper())

    def serve():
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=[client], daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    made = Way([server.getsockname()[1]])
    yield made
    made.close()
    server.close()


def ask(client, text):
    client.sendall(text)
    return client.recv(100)


def test_what_was_said_while_it_was_cut_is_heard_when_it_is_healed(way):
    with socket.create_connection((HOST, way.ports[0]), timeout=10) as client:
        assert ask(client, b"before") == b"BEFORE"
        way.cut()
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            ask(client, b"meanwhile")
        with socket.create_connection((HOST, way.ports[0]), timeout=0.3) as late, pytest.raises(TimeoutError):
            ask(late, b"late")
        way.heal()
        client.settimeout(10)
        assert client.recv(100) == b"MEANWHILE"


def test_nobody_is_there_when_it_leads_nowhere_or_is_closed(way):
    free = socket.create_server((HOST, 0))
    nowhere = Way([free.getsockname()[1]])
    free.close()
    with socket.create_connection((HOST, nowhere.ports[0]), timeout=10) as client:
        assert ask(client, b"anybody?") == b""
    nowhere.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, nowhere.ports[0]), timeout=10)
