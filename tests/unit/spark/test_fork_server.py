"""Real processes: the fork server's, an executor's worker daemon, and a worker that it forks."""

import os
import socket
import subprocess
import sys

import psutil
import pytest

from configs.settings import ROOT
from pipelines.spark import fork_server
from pipelines.spark.worker_daemon import ADDRESS, hand_over
from tests.fakes.waiting import PATIENCE_S, wait_until


def listens(address):
    """Whether somebody does: the socket's file is there a moment before."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
            return True
    except (FileNotFoundError, ConnectionRefusedError):
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    address, process = fork_server.start(tmp_path_factory.mktemp("server"))
    wait_until(lambda: listens(address), "the fork server")
    yield address, process
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    assert not os.path.exists(address)


def test_what_a_worker_needs_is_imported_before_pandas_is_not_and_pysparks_daemon_has_our_garbage():
    told = (
        "import sys; from pipelines.spark.worker_daemon import import_all; import_all(); print(*sys.modules)\n"
        "import pyspark.daemon; print(pyspark.daemon.gc)"
    )
    known = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=ROOT)
    modules, garbage = known.stdout.splitlines()
    loaded = set(modules.split())
    assert {"pyspark.worker", "pyarrow.lib", "numpy"} <= loaded and "pandas" not in loaded
    assert "Garbage" in garbage


def daemon_of(address):
    """As Spark starts it: the port on standard output, the end by the standard input."""
    env = {**os.environ, ADDRESS: str(address), "PYTHON_WORKER_FACTORY_SECRET": "secret"}
    command = [sys.executable, "-m", "pipelines.spark.worker_daemon", "pyspark.worker"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=ROOT)


def parents_of_worker(port):
    """Process ids, the nearest first, of a worker that a daemon forks; it says its number first, and waits."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as worker:
        return [one.pid for one in psutil.Process(int.from_bytes(worker.recv(4), "big")).parents()]


def end(daemon):
    daemon.stdin.close()
    daemon.stdout.close()
    return daemon.wait(PATIENCE_S)


def test_an_executors_workers_come_from_the_server_and_end_with_it(server):
    address, process = server
    daemons = [daemon_of(address) for _ in range(2)]
    for daemon in daemons:
        assert process.pid in parents_of_worker(int.from_bytes(daemon.stdout.read(4), "big"))
    assert len(psutil.Process(process.pid).children()) == 2
    assert [end(daemon) for daemon in daemons] == [0, 0]
    wait_until(lambda: not psutil.Process(process.pid).children(), "the end of the workers' parents")


def test_who_says_nothing_of_use_ends_nothing(server):
    address, process = server
    for nonsense in (b"", b"\0", b"\0not json"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
            client.sendall(nonsense)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
    assert process.poll() is None and oct(os.stat(address).st_mode & 0o777) == "0o600"


def test_without_a_server_an_executor_makes_its_own(tmp_path):
    assert not hand_over(str(tmp_path / "nobody"))
    daemon = daemon_of(tmp_path / "nobody")
    assert parents_of_worker(int.from_bytes(daemon.stdout.read(4), "big"))[0] == daemon.pid
    end(daemon)


def test_a_path_too_long_for_a_socket_is_said_and_ends_the_server_alone(tmp_path):
    command = [sys.executable, "-m", "pipelines.spark.fork_server", str(tmp_path / ("x" * 120))]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0 and "imports for itself" in done.stderr
