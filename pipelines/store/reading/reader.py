"""Reading a store from another process than its writer's."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from pipelines.store.disk.environment import LmdbEnvironment
from pipelines.store.disk.errors import Closed
from pipelines.store.reading.reads import Reads

LOOK_NS = 20_000_000
"""Least ns between two looks whether the writer has begun an environment anew."""


class Reader(Reads):
    """Read-only access from another process than the writer's; made by `Reader.open`, usable from any thread.

    Every call of a closed reader raises `Closed`. Open at most one per folder and process, none in the writer's process
    (the writer reads itself), and open it after a fork, not before.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = threading.RLock()
        self._closed = False
        self._open()

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open the store in `folder` for reading; the size of the map is the writer's.

        Raises:
            StoreError: no writer has made the store yet, or it cannot be opened.
            Corrupt: a file is damaged.
            OtherSchema: another release wrote the store.
        """
        return cls(Path(folder))

    def close(self) -> None:
        """Close both environments; later calls raise `Closed`."""
        with self._reading:
            self._closed = True
            self._files.close()

    def _open(self) -> None:
        found = self._found()
        with ExitStack() as files:
            self.durable = LmdbEnvironment(self._folder / "durable", 0, writer=False)
            files.callback(self.durable.close)
            self.hot = LmdbEnvironment(self._folder / "hot", 0, writer=False)
            files.callback(self.hot.close)
            self.hot.check_schema()
            self._files = files.pop_all()
        self._known: dict[str, tuple[LmdbEnvironment, bytes]] = {}
        self._inodes, self._looked = found, time.monotonic_ns()

    def _found(self) -> tuple[int, ...]:
        """What the files are now; none where one is missing, because the writer is about to make it."""
        try:
            return tuple((self._folder / name / "data.mdb").stat().st_ino for name in ("durable", "hot"))
        except FileNotFoundError:
            return ()

    def _locate(self, key: str) -> tuple[LmdbEnvironment, bytes] | None:
        for env in () if key in self._known else (self.hot, self.durable):
            with env.begin_read() as txn:
                prefix = env.key_id(txn, key)
            if prefix is not None:
                self._known[key] = env, prefix
                break
        return self._known.get(key)

    def _look(self) -> None:
        if self._closed:
            raise Closed("the reader was closed")
        if time.monotonic_ns() - self._looked < LOOK_NS:
            return
        self._looked, found = time.monotonic_ns(), self._found()
        if found and found != self._inodes:
            self._files.close()
            self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
