"""Reading a store from another process than its writer's."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import Closed
from pipelines.store.reading.reads import Reads

LOOK_NS = 20_000_000
"""How often a reader looks whether the writer has begun an environment anew."""


class Reader(Reads):
    """Reads what the writer of `folder` commits; made by `Reader.open`. Its calls may come from any thread.

    Open at most one per folder and process, none in the writer's process (the writer reads itself), and open it after
    a fork, not before.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = threading.RLock()
        self._closed = False
        self._open()

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open for reading; the size of the map is the writer's.

        Raises:
            StoreError: no writer has made the store yet.
            Corrupt: a file is damaged.
            OtherSchema: another release wrote the store.
        """
        return cls(Path(folder))

    def close(self) -> None:
        """Give the reader's slots back."""
        with self._reading:
            self._closed = True
            self.hot.close()
            self.durable.close()

    def _open(self) -> None:
        found = self._found()
        self.durable = LmdbEnvironment(self._folder / "durable", 0, writer=False)
        try:
            self.hot = LmdbEnvironment(self._folder / "hot", 0, writer=False)
        except BaseException:
            self.durable.close()
            raise
        try:
            self.hot.check_schema()
        except BaseException:
            self.hot.close()
            self.durable.close()
            raise
        self._known: dict[str, tuple[LmdbEnvironment, bytes]] = {}
        self._inodes = found
        self._looked = time.monotonic_ns()

    def _found(self) -> tuple[int, ...]:
        """What the files are now; none where one is missing, because the writer is about to make it."""
        try:
            return tuple((self._folder / name / "data.mdb").stat().st_ino for name in ("durable", "hot"))
        except FileNotFoundError:
            return ()

    def _locate(self, key: str) -> tuple[LmdbEnvironment, bytes] | None:
        found = self._known.get(key)
        if found is None:
            for env in (self.hot, self.durable):
                with env.read() as txn:
                    prefix = env.key_id(txn, key)
                if prefix is not None:
                    found = self._known[key] = env, prefix
                    break
        return found

    def _look(self) -> None:
        if self._closed:
            raise Closed("the reader was closed")
        now = time.monotonic_ns()
        if now - self._looked < LOOK_NS:
            return
        self._looked = now
        found = self._found()
        if found and found != self._inodes:
            self.hot.close()
            self.durable.close()
            self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
