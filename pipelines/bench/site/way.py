"""A way to servers that can be cut or hindered: a port before each of theirs, through which nothing or less passes."""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from pipelines.bench.planned_faults.due import MOST_RESENT, resent_after_s
from pipelines.stack.ports import HOST

CHUNK = 1 << 16
LENGTH = 4
"""Bytes before each of a Kafka broker's messages that tell its length."""


class Way:
    """Ports of the loopback that lead to others; while it is cut, connections stay, and hear nothing.

    Attributes:
        ports: one for each target, in their order.
    """

    def __init__(self, targets: Sequence[int], of_broker: bool = False) -> None:
        """Open it, in a thread of its own.

        Args:
            targets: ports of the loopback; a connection to one that does not listen is closed.
            of_broker: whether they are Kafka brokers without encryption, which clients follow to the address that a
                broker states of itself: on the way that becomes the way's own.

        Raises:
            OSError: no port is free.
        """
        self.ports: tuple[int, ...] = ()
        self._targets, self._of_broker = tuple(targets), of_broker
        self._bytes_s, self._lost, self._free_at = math.inf, 0.0, 0.0
        self._random = random.Random(0)
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

    def hinder(self, bytes_s: float, lost: float) -> None:
        """Let so many bytes/s pass from now on, both directions together, and lose such a share of the packets.

        What TCP makes of a loss is a stall until the packet was sent again (`resent_after_s`).

        Args:
            bytes_s: above 0; infinite: as many as come.
            lost: 0 to 1.
        """
        self._bytes_s, self._lost = bytes_s, lost

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
            there_as, here_as = (HOST.encode() + at.to_bytes(4, "big") for at in (target, self._port_of(target)))
            answers = (there_as, here_as) if self._of_broker else None
            await asyncio.gather(self._pass_on(reader, back), self._pass_on(there, writer, answers))

        return lead

    def _port_of(self, target: int) -> int:
        return self.ports[self._targets.index(target)]

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, restated: tuple[bytes, bytes] | None = None
    ) -> None:  # fmt: skip
        with suppress(OSError, asyncio.IncompleteReadError):
            while data := await self._read(reader):
                await self._passes.wait()
                await self._hold_back(len(data))
                writer.write(data.replace(*restated) if restated else data)
                await writer.drain()
        writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> bytes:
        """What comes next; of a broker a whole message, as an address could lie across two pieces."""
        if not self._of_broker:
            return await reader.read(CHUNK)
        head = await reader.readexactly(LENGTH)
        return head + await reader.readexactly(int.from_bytes(head, "big"))

    async def _hold_back(self, size: int) -> None:
        """Wait for the turn of so many bytes on a narrow way, and for those that are sent again on a lossy one."""
        now = self._loop.time()
        if self._bytes_s < math.inf:
            self._free_at = max(self._free_at, now) + size / self._bytes_s
            await asyncio.sleep(self._free_at - now)
        if self._lost > 0:
            await asyncio.sleep(resent_after_s(self._lost, [self._random.random() for _ in range(MOST_RESENT)]))

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        own = asyncio.current_task()
        for task in asyncio.all_tasks() - {own}:
            task.cancel()
        await asyncio.sleep(0)
