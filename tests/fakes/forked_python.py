"""A Python that forks what Spark starts for every operator with state, instead of starting it.

Before a query's first batch the driver's JVM runs `MODULE` once per such operator, in a Python of its own, which takes
a second to import PySpark. `forked_python` gives a program that stands for Python there: it hands streams and
environment to a process that has imported all and forks; whatever else it is to run it becomes.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from configs.settings import ROOT

MODULE = "pyspark.sql.streaming.transform_with_state_driver_worker"
AUTOSCALER = "pipelines.scale.stateful"
"""What the operator of its query brings, which every fork would import anew: the policies, and the Kafka client."""
LAUNCHER = """#!{python} -IS
import array, os, sys
if sys.argv[1:] != ["-m", {module!r}]:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
import _socket as net  # what `socket` adds to it would take as long as Python itself
server = net.socket(net.AF_UNIX, net.SOCK_STREAM)
server.connect({address!r})
server.sendmsg([b"-"], [(net.SOL_SOCKET, net.SCM_RIGHTS, array.array("i", [1, 2]))])
server.sendall(b"\\0".join(name + b"=" + value for name, value in os.environb.items()))
server.shutdown(net.SHUT_WR)
server.recv(1)  # nothing is ever sent: the fork holds the other end until it is gone
"""


@contextmanager
def forked_python(folder: Path) -> Iterator[str]:
    """Path of the program, which lies in a folder and works until this ends."""
    address, program = str(folder / "fork"), folder / "python"
    program.write_text(LAUNCHER.format(python=sys.executable, module=MODULE, address=address))
    program.chmod(0o755)
    command = [sys.executable, "-m", "tests.fakes.forked_python", address]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None and server.stdout.readline() == b"ready\n"
        yield str(program)


def serve(address: str) -> None:
    """Fork for everyone who connects, until the standard input ends."""
    worker = importlib.import_module(MODULE)
    for name in ("pandas", "pyarrow", "pyspark.sql.streaming.proto.StateMessage_pb2"):
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the tests, which end this process
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        print("ready", flush=True)
        importlib.import_module(AUTOSCALER)  # while a JVM starts; who connects meanwhile waits
        while True:
            ready, _, _ = select.select([0, listener], [], [])
            if 0 in ready:
                return
            client, _ = listener.accept()
            with client:
                if os.fork() == 0:
                    _become(client, worker)


def _become(client: socket.socket, worker: Any) -> NoReturn:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _, streams, _, _ = socket.recv_fds(client, 1, 2)
        told = b"".join(iter(lambda: client.recv(65536), b""))
        os.environb.clear()
        os.environb.update(one.split(b"=", 1) for one in told.split(b"\0"))  # type: ignore[arg-type]
        for number, stream in enumerate(streams, 1):
            os.dup2(stream, number)
        with worker.get_sock_file_to_executor() as file:
            worker.main(file, file)
        sys.stdout.flush()
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1])
