"""A store's writer, or a reader of it, in a process of its own that does as a test says."""

from __future__ import annotations

import ast
import contextlib
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pipelines.store import Reader, Store, StoredRecord
from tests.fakes.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
ERROR = "error: "
SET = ("/model/j/hyper", "/model/j/scaler", "/model/j/weights")
ROOMY = "Store.open(folder, map_bytes=1 << 30)"
"""A writer's opening with more room than a quick machine fills in the time that a test takes; the file is sparse."""
ENOUGH = "enough"
"""A file in the store's folder: readers have seen what they wanted to, and the writer beside them ends."""
BRISK, PACE_S, SLOW_S = 4000, 0.0001, 0.002
"""A writer's rest beside readers: one that the system suspends inside a read keeps every page that is freed since.

After so many puts it rests longer, so that the file stays small however long a reader is kept from the processor.
"""


class Refused(Exception):
    """The process could not do it; the text is the error's name and words."""


class StoreProcess:
    """`do` evaluates an expression over `store` and answers what it is, or raises Refused; `start` does not wait.

    A process that has ended raises EOFError; one that does not answer, or does not end, is killed and fails the test.
    """

    def __init__(self, opening: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.fakes.store_process", opening, str(folder)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._asked, self._said = "its opening", bytearray()
        self.answer()

    def start(self, expression: str) -> None:
        assert self.process.stdin
        self._asked = expression
        self.process.stdin.write(expression.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        line = self._line()
        if line.startswith(ERROR):
            raise Refused(line.removeprefix(ERROR))
        return ast.literal_eval(line)

    def _line(self) -> str:
        assert self.process.stdout
        out, deadline = self.process.stdout.fileno(), time.monotonic() + PATIENCE_S
        while b"\n" not in self._said:
            if not select.select([out], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.kill()
                raise AssertionError(f"no answer to {self._asked} within {PATIENCE_S:g} s")
            if not (some := os.read(out, 1 << 16)):
                raise EOFError(f"the process ended before it answered to {self._asked}: {self.process.wait()}")
            self._said += some
        line, _, self._said = self._said.partition(b"\n")
        return line.decode()

    def do(self, expression: str) -> Any:
        self.start(expression)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin and self.process.stdout
        try:
            if kind is not None:
                self.process.kill()  # it may be at something without end
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()  # which ends it
            self.process.wait(PATIENCE_S)
        finally:
            self.kill()
            self.process.stdout.close()


def value_of(key: str, version: int) -> bytes:
    """What any whole object of this key and version holds; its size varies from bytes to several pages."""
    return f"{key}@{version}|".encode() * (1 + version * 37 % 400)


def flood(store: Store) -> None:
    """Events, sets and persistent puts without end, each told on standard output once it was acknowledged."""
    newest = store.get("/sample/j/1s")
    version = 0 if newest is None else newest.version
    store.declare("/model/j", SET)
    while True:
        version += 1
        with store.event() as event:
            for key in ("/sample/j/1s", "/state/j/1s", "/forecast/j/1s"):
                event.put(key, value_of(key, version), version)
            event.set_meta("cursor", str(version).encode())
            event.outbox(str(version).encode())
        _say(("event", version))
        if version % 5 == 0:
            store.put_set("/model/j", {key: value_of(key, version) for key in SET}, version, "persistent")
            _say(("set", version))
        if version % 3 == 0:
            store.put("/decision/j", value_of("/decision/j", version), version, "persistent")
            _say(("decision", version))
        if version % 16 == 0:
            store.mark_sent([number for number, entry in store.outbox()])


def in_time(what: str) -> Iterator[int]:
    """0, 1, 2, ... until that takes longer than a test may: then it fails with these words."""
    deadline, number = time.monotonic() + PATIENCE_S, 0
    while time.monotonic() < deadline:
        yield number
        number += 1
    raise AssertionError(f"{what}: not within {PATIENCE_S:g} s")


def paced(folder: Path, brisk: int = 1) -> Iterator[int]:
    """Versions from 0 on, until the readers have seen enough; a rest after every `brisk` of them."""
    for version in in_time("the readers have not seen enough"):
        if (folder / ENOUGH).exists():
            return
        yield version
        if version % brisk == 0:
            time.sleep(PACE_S if version < BRISK else SLOW_S)


def put_log(store: Store, folder: Path) -> list[tuple[int, int, int]]:
    """(start, end, version) of each put, at an uneven pace, on the clock that all processes share."""
    log = []
    for version in paced(folder, 7):
        start = time.monotonic_ns()
        store.put("/a/x", b"%d" % version, version)
        log.append((start, time.monotonic_ns(), version))
    return log


def alternate(store: Store, folder: Path) -> None:
    """Put /hot v, then /durable v, then both v + 1, and so on."""
    for version in paced(folder):
        store.put("/hot", b"1", version)
        store.put("/durable", b"1", version, "persistent")


def get_log(reader: Reader, folder: Path, changes: int) -> list[tuple[int, int, int]]:
    """(start, end, version read) of gets until so often another version was read; -1 stands for none.

    Of gets in a row that read the same version, the first and the last say all about order that the others could.
    """
    log: list[tuple[int, int, int]] = []
    for _ in in_time(f"{changes} versions read"):
        start = time.monotonic_ns()
        record = reader.get("/a/x")
        found = (start, time.monotonic_ns(), -1 if record is None else record.version)
        if len(log) > 1 and log[-1][2] == log[-2][2] == found[2]:
            log.pop()
        changes -= not log or log[-1][2] != found[2]
        log.append(found)
        if changes < 0:
            break
    (folder / ENOUGH).touch()
    return log


def swap(store: Store, folder: Path) -> int:
    """Put the set again and again, its members all of one version; how often."""
    for version in paced(folder):
        store.put_set("/model/j", dict.fromkeys(SET, b"%d" % version), version)
    return version


def torn(reader: Reader, reads: int, apart: bool) -> tuple[int, int]:
    """(reads, how many mixed two versions): by snapshots, so many; or by gets apart, until so many were mixed."""
    mixed = 0
    for done in in_time(f"{reads} reads"):
        if (mixed if apart else done) == reads:
            break
        found: dict[str, StoredRecord | None]
        found = {key: reader.get(key) for key in SET} if apart else reader.snapshot("/model/j")
        mixed += len({record and record.value for record in found.values()}) > 1
    return done, mixed


def _say(said: object) -> None:
    line = f"{ERROR}{type(said).__name__}: {said!s}" if isinstance(said, Exception) else repr(said)
    os.write(1, (" ".join(line.splitlines()) + "\n").encode())


def _lines() -> Iterator[str]:
    while line := sys.stdin.readline():
        yield line


if __name__ == "__main__":
    try:
        names = {**globals(), "folder": Path(sys.argv[2]), "resource": resource}
        names["store"] = eval(sys.argv[1], names)
        _say("open")
    except Exception as error:
        _say(error)
        sys.exit(1)
    for line in _lines():
        try:
            _say(eval(line, names))
        except Exception as error:
            _say(error)
