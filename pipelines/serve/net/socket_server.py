"""The Unix socket's side of the serving loop: connections, frames in, answers out. No thread, no waiting."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from configs.errors import CorrectableError
from pipelines.serve.net.wire import Answer, Put, Refused, Request, WireError, encode_frame, read_request, take_frames

BATCH = 32
"""Waiting puts that share a transaction, at most."""
CLIENTS = 512
"""Connections at once, at most; half of the descriptors that a process usually may have."""
_READ = 1 << 18
_UNREAD = 8 << 20
"""A client that has left so many bytes of answers unread is cut off: the loop waits for nobody."""

Puts = Callable[[Sequence[bytes]], Sequence[Answer]]
Read = Callable[[Request], Answer]


class SocketError(CorrectableError, RuntimeError):
    """The socket cannot be opened; the message names the path and the remedy."""


@dataclass(eq=False)
class Connection:
    """One client of the socket.

    Attributes:
        socket: non-blocking.
        coming: bytes received that are no whole frame yet.
        going: bytes of answers not sent yet.
        ending: whether it is closed once `going` is sent.
        refused: its last answer, after which nothing more is read; None while it is served.
    """

    socket: socket.socket
    coming: bytearray = field(default_factory=bytearray)
    going: bytearray = field(default_factory=bytearray)
    ending: bool = False
    refused: Refused | None = None


class SocketServer:
    """Listens on a Unix socket for one loop, without a thread and without waiting.

    The loop calls what the selector's keys hold as data (`data(mask)` returns frames) and gives all frames of a round
    to `answer_frames`.
    """

    def __init__(self, path: Path, selector: selectors.BaseSelector, puts: Puts, read: Read) -> None:
        """Listen at `path`, for this user only, and register with the selector; a dead server's socket is replaced.

        Args:
            path: at most 107 bytes; its folder is made.
            selector: of the loop.
            puts: takes up to 32 samples (JSON) and returns as many answers.
            read: answers any other request.

        Raises:
            SocketError: the path is too long, or a server answers there.
            OSError: it cannot be opened for another reason.
        """
        self._path, self._selector, self._puts, self._read = path, selector, puts, read
        self._listening = _listen(path)
        selector.register(self._listening, selectors.EVENT_READ, self._accept)
        self.clients: set[Connection] = set()
        self._paused = False

    def close(self) -> None:
        """Cut off every client (answers not sent are lost), stop listening, and remove the socket's path; call it once.

        Raises:
            OSError: the path cannot be removed; one that is gone already is fine.
        """
        for connection in list(self.clients):
            self._drop(connection)
        if not self._paused:
            self._selector.unregister(self._listening)
        self._listening.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def _accept(self, mask: int) -> list[tuple[Connection, bytes]]:
        try:
            client, _ = self._listening.accept()
        except (BlockingIOError, ConnectionError):
            return []
        except OSError:  # no descriptor is left: accept nobody until `resume`
            self._pause()
            return []
        client.setblocking(False)
        connection = Connection(client)
        self.clients.add(connection)
        self._selector.register(client, selectors.EVENT_READ, lambda mask: self._ready(connection, mask))
        if len(self.clients) >= CLIENTS:
            self._pause()
        return []

    def _pause(self) -> None:
        self._paused = True
        self._selector.unregister(self._listening)

    def resume(self) -> None:
        """Accept connections again if that was paused for want of room and there is room now; called every 0.1 s."""
        if self._paused and len(self.clients) < CLIENTS:
            self._paused = False
            self._selector.register(self._listening, selectors.EVENT_READ, self._accept)

    def _ready(self, connection: Connection, mask: int) -> list[tuple[Connection, bytes]]:
        """The frames that have come from a client."""
        if mask & selectors.EVENT_WRITE:
            self._flush(connection)
        if not mask & selectors.EVENT_READ or connection.refused is not None:
            return []
        try:
            data = connection.socket.recv(_READ)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return []
        connection.coming += data
        frames: list[bytes] = []
        try:
            while fresh := take_frames(connection.coming):
                frames += fresh
        except WireError as error:  # where the next frame begins is lost
            connection.refused = Refused(error.code, str(error))
            if not frames:
                self._dismiss(connection, connection.refused)
        return [(connection, frame) for frame in frames]

    def answer_frames(self, frames: Sequence[tuple[Connection, bytes]]) -> None:
        """Answer requests in their order; up to 32 puts in a row go to `puts` together. Never waits for a client.

        A frame that is no request is answered by a `Refused`. Answers that a client does not read yet are buffered;
        above 8 MiB it is cut off.

        Args:
            frames: (connection, body of a frame), as the selector's callbacks return them.

        Raises:
            ValueError: `puts` gives another number of answers than it got samples.
            Exception: what `puts` or `read` raises; the rest is not answered then.
        """
        waiting: list[tuple[Connection, bytes]] = []
        for connection, frame in frames:
            try:
                request = read_request(frame)
            except WireError as error:
                self._settle(waiting)
                self._send(connection, Refused(error.code, str(error)))
                continue
            if isinstance(request, Put):
                waiting.append((connection, request.sample))
            if len(waiting) == BATCH or not isinstance(request, Put):
                self._settle(waiting)
            if not isinstance(request, Put):
                self._send(connection, self._read(request))
        self._settle(waiting)
        for connection in dict.fromkeys(connection for connection, _ in frames):
            if connection.refused is not None:  # after the answers to what came before
                self._dismiss(connection, connection.refused)

    def _settle(self, waiting: list[tuple[Connection, bytes]]) -> None:
        if waiting:
            answers = self._puts([sample for _, sample in waiting])
            for (connection, _), answer in zip(waiting, answers, strict=True):
                self._send(connection, answer)
            waiting.clear()

    def _send(self, connection: Connection, answer: Answer) -> None:
        if connection not in self.clients:
            return
        try:
            connection.going += encode_frame(answer)
        except WireError as error:
            connection.going += encode_frame(Refused(error.code, str(error)))
        self._flush(connection)

    def _dismiss(self, connection: Connection, refused: Refused) -> None:
        """Send a client its last answer, and close the connection once that is sent."""
        connection.ending = True
        self._send(connection, refused)

    def _flush(self, connection: Connection) -> None:
        try:
            while connection.going:
                del connection.going[: connection.socket.send(connection.going)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(connection)
            return
        if len(connection.going) > _UNREAD or (connection.ending and not connection.going):
            self._drop(connection)
            return
        # What nobody reads any more would wake the loop for ever.
        reads = 0 if connection.refused is not None else selectors.EVENT_READ
        events = reads | (selectors.EVENT_WRITE if connection.going else 0)
        key = self._selector.get_key(connection.socket)
        if key.events != events:
            self._selector.modify(connection.socket, events, key.data)

    def _drop(self, connection: Connection) -> None:
        if connection in self.clients:
            self.clients.discard(connection)
            self._selector.unregister(connection.socket)
            connection.socket.close()


def _listen(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        probe.connect(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # of a server that was killed
    except OSError as error:
        raise SocketError(
            f"{path}: {error}. A socket's path has at most 107 bytes: give a shorter TIDECAST_VAR, or serving.store."
        ) from None
    else:
        raise SocketError(f"{path}: a server answers there already. End it, or give this one another serving.store.")
    finally:
        probe.close()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    before = os.umask(0o177)  # only this user may connect, from the first moment on
    try:
        listening.bind(str(path))
    finally:
        os.umask(before)
    listening.listen(64)
    return listening
