"""A store's writer, or a reader of it, in a process of its own that does as a test says."""

from __future__ import annotations

import ast
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from pipelines.store import Reader, Record, Store

ROOT = Path(__file__).parents[2]
ERROR = "error: "
SET = ("/model/j/hyper", "/model/j/scaler", "/model/j/weights")
ROOMY = "Store.open(folder, map_bytes=1 << 30)"
"""A writer's opening with more room than a quick machine fills in the time that a test takes; the file is sparse."""
PACE_S = 0.0001
"""A writer's rest beside readers: one that the system suspends inside a read keeps every page that is freed since."""


class Refused(Exception):
    """The process could not do it; the text is the error's name and words."""


class StoreProcess:
    """`do` evaluates an expression over `store` and answers what it is, or raises Refused; `start` does not wait."""

    def __init__(self, opening: str, folder: Path) -> None:
        command = [sys.executable, "-m", "tests.fakes.store_process", opening, str(folder)]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answer()

    def start(self, expression: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if line.startswith(ERROR):
            raise Refused(line.removeprefix(ERROR).strip())
        return ast.literal_eval(line) if line else None

    def do(self, expression: str) -> Any:
        self.start(expression)
        return self.answer()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()  # the end of its input ends it


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
            store.sent([number for number, entry in store.outbox()])


def put_log(store: Store, count: int) -> list[tuple[int, int, int]]:
    """(start, end, version) of each put, at an uneven pace, on the clock that all processes share."""
    log = []
    for version in range(count):
        start = time.monotonic_ns()
        store.put("/a/x", b"%d" % version, version)
        log.append((start, time.monotonic_ns(), version))
        if version % 7 == 0:
            time.sleep(PACE_S)
    return log


def alternate(store: Store) -> None:
    """Put /hot v, then /durable v, then both v + 1, without end."""
    version = 0
    while True:
        version += 1
        store.put("/hot", b"1", version)
        store.put("/durable", b"1", version, "persistent")
        time.sleep(PACE_S)


def get_log(reader: Reader, last: int) -> list[tuple[int, int, int]]:
    """(start, end, version read) of gets until the version `last` was read; -1 stands for none.

    Of gets in a row that read the same version, the first and the last say all about order that the others could.
    """
    log: list[tuple[int, int, int]] = []
    while not log or log[-1][2] < last:
        start = time.monotonic_ns()
        record = reader.get("/a/x")
        found = (start, time.monotonic_ns(), -1 if record is None else record.version)
        if len(log) > 1 and log[-1][2] == log[-2][2] == found[2]:
            log.pop()
        log.append(found)
    return log


def swap(store: Store, seconds: float) -> int:
    """Put the set again and again, its members all of one version; how often."""
    version, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        version += 1
        store.put_set("/model/j", dict.fromkeys(SET, b"%d" % version), version)
        time.sleep(PACE_S)
    return version


def torn(reader: Reader, seconds: float, apart: bool) -> tuple[int, int]:
    """(reads, how many mixed two versions): by one snapshot, or by gets apart."""
    reads, mixed, until = 0, 0, time.monotonic() + seconds
    while time.monotonic() < until:
        found: dict[str, Record | None]
        found = {key: reader.get(key) for key in SET} if apart else reader.snapshot("/model/j")
        reads += 1
        mixed += len({record and record.value for record in found.values()}) > 1
    return reads, mixed


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
