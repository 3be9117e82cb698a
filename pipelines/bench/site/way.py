"""A way to servers that can be cut: a port before each of theirs, through which for a while nothing passes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from pipelines.stack.ports import HOST

CHUNK = 1 << 16


class Way:
    """Ports of the loopback that lead to others; while it is cut, connections stay, and hear nothing.

    Attributes:
        ports: one for each target, in their order.
    """

    def __init__(self, targets: Sequence[int]) -> None:
        """Open it, in a thread of its own.

        Args:
            targets: ports of the loopback; a connection to one that does not listen is closed.

        Raises:
            OSError: no port is free.
        """
        self.ports: tuple[int, ...] = ()
        self._loop, self._passes = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="way", daemon=True)
        self._thread.start()
        self._servers = asyncio.run_coroutine_threadsafe(self._open(targets), self._loop).result(30)

    def cut(self) -> None:
        """Let nothing pass from now on."""
        self._loop.call_soon_threadsafe(self._passes.clear)

    def heal(self) -> None:
        """Let pass what has waited, and what comes."""
        self._loop.call_soon_threadsafe(self._passes.set)

    def close(self) -> None:
        """End all connections, and listen no more."""
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _open(self, targets: Sequence[int]) -> list[asyncio.Server]:
        self._passes.set()
        servers = [await asyncio.start_server(self._leading_to(target), HOST, 0) for target in targets]
        self.ports = tuple(server.sockets[0].getsockname()[1] for server in servers)
        return servers

    def _leading_to(self, target: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._passes.wait()
            try:
                there, back = await asyncio.open_connection(HOST, target)
            except OSError:
                writer.close()
                return
            await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer))

        return lead

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._passes.wait()
                writer.write(data)
                await writer.drain()
        writer.close()

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        own = asyncio.current_task()
        for task in asyncio.all_tasks() - {own}:
            task.cancel()
        await asyncio.sleep(0)
