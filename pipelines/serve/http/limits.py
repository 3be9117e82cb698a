"""What one client of the HTTP endpoint may take: so many connections in all, so long a head, so long a time."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 128
"""At once; a further one is closed before it is read. A process usually may have 1,024 descriptors."""
HEAD_BYTES = 16_384
PATIENCE_S = 10.0
"""A connection on which no request is being answered is closed after so long; one that is not read, after two."""


class Limited(H11Protocol):
    """uvicorn's own waits for ever for the rest of a head, and takes as many connections as there are descriptors."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, and look after it."""
        super().connection_made(transport)
        self._seen: Any = None
        if len(self.connections) > CONNECTIONS:
            transport.abort()
        else:
            self._later = self.loop.call_later(PATIENCE_S, self._look)

    def _look(self) -> None:
        cycle = self.cycle
        if cycle is None or cycle.response_complete or cycle is self._seen:
            self.transport.abort()
        else:
            self._seen = cycle
            self._later = self.loop.call_later(PATIENCE_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if hasattr(self, "_later"):
            self._later.cancel()
        super().connection_lost(exc)
