"""What an executor starts for its Python workers: has the driver's fork server make it, or makes it itself.

`spark.python.daemon.module` names this module. Importing PySpark and Arrow takes a second of CPU, which a new executor
would pay in its first task, with a batch waiting for it; the fork server has paid it before.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

ADDRESS = "TIDECAST_FORK_SERVER"
"""Environment variable of executors: path of the Unix socket of a fork server on their own computer."""


class Garbage:
    """In place of `gc` in PySpark's daemon, which has each worker look through all it holds after each of its tasks.

    A tenth of a second and more where a task has imported Pandas and SciPy, or torch. What was imported stays, so that
    it is looked through once.
    """

    def __init__(self) -> None:
        self._known = 0

    def collect(self) -> None:
        """Collect garbage; among what is there when modules have been added, only this time."""
        gc.collect()
        if len(sys.modules) != self._known:
            gc.freeze()
            self._known = len(sys.modules)


def hand_over(address: str) -> bool:
    """Let a fork server make a worker daemon of this process's streams, environment and folder, and wait for its end.

    Returns:
        False at once where no server answers.
    """
    with suppress(OSError), socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [b"\0"], [0, 1, 2])
        server.sendall(json.dumps([dict(os.environ), os.getcwd(), sys.argv]).encode())
        server.shutdown(socket.SHUT_WR)
        server.recv(1)  # nothing is ever sent: the daemon holds the other end until it is gone
        return True
    return False


def filled(packs: Iterable[Any], stream: Any) -> Iterator[Any]:
    """Yield what a keyed step in Python hands PySpark to write of each key, without those that have no rows.

    It makes a batch of Arrow of each, also of no rows, which most jobs in a micro-batch of the autoscaler have. Such a
    batch takes nearly as long to make, and the JVM to read, as one with a decision. Where one is left out, what others
    have sent goes to the JVM: a lone decision would wait in the buffer for the end of the micro-batch.

    Args:
        packs: for each key a list of one pair, an iterator of rows and their type; each is made as it is asked for.
        stream: that PySpark writes what is yielded to, before it asks for more.
    """
    for [(rows, kind)] in packs:
        if made := list(rows):
            yield [(iter(made), kind)]
        else:
            stream.flush()


def import_all() -> None:
    """Import what every worker needs, before workers are forked: PySpark leaves pyarrow to them, one by one.

    It does so because pyarrow may start threads; no hang was ever seen. Pandas stays out: the managed job does not need
    it, and it would more than double the time.
    """
    import pyarrow.ipc  # noqa: F401  # with NumPy; PySpark's own modules import it in their functions only
    import pyspark.daemon
    import pyspark.sql.pandas.serializers
    import pyspark.sql.pandas.types
    import pyspark.worker

    garbage: Any = Garbage()
    garbage.collect()
    pyspark.daemon.gc = garbage  # type: ignore[attr-defined]
    steps: Any = pyspark.sql.pandas.serializers.TransformWithStateInPySparkRowSerializer
    write = steps.dump_stream
    steps.dump_stream = lambda self, packs, stream: write(self, filled(packs, stream), stream)


def main() -> None:
    """Serve an executor's demands for Python workers until it closes the standard input."""
    address = os.environ.get(ADDRESS)
    if address and hand_over(address):
        return
    import_all()
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
