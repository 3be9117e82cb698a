"""The embedded stack against real processes: what it starts, what it says, and that nothing of it is left."""

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from configs.settings import load
from pipelines.spark import class_archive, java
from pipelines.stack import processes, state
from pipelines.stack.context import StackError
from pipelines.stack.ports import PortError
from pipelines.stack.services import spark
from pipelines.stack.services.kafka import broker_jars
from pipelines.stack.stack import Stack
from pipelines.stack.state import end_recorded_stack
from tests.fakes.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.integration

# A child that leaves its session and ignores SIGTERM, as badly behaved ones do; it says so by a file.
STRAY = (
    "import os, pathlib, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    pathlib.Path(sys.argv[1]).touch()\n"
    "time.sleep(300)\n"
)
OWNER = f"""
import sys, time
from pathlib import Path
from configs.settings import load
from pipelines.stack.services import kafka
from pipelines.stack.stack import Stack
kafka.java_command = lambda binary: [sys.argv[4]]
stack = Stack(load(var=Path(sys.argv[1])), sys.argv[2].split())
stack.start()
if sys.argv[3] == "detach":
    stack.spawn("job", ["sleep", "300"])
    stack.detach()
else:
    away = Path(sys.argv[1]) / "away"
    stack.spawn("stray", [sys.executable, "-c", {STRAY!r}, str(away)])
    while not away.exists():
        time.sleep(0.02)
    print(stack.id, *(p.pid for p in stack.processes.values()), flush=True)
    time.sleep(300)
"""


JAVA = f"""#!/bin/sh
case "$1" in *.Kafka) exec {sys.executable} -m http.server --bind 127.0.0.1 "${{TIDECAST_KAFKA__BOOTSTRAP##*:}}";; esac
"""
"""In place of a broker's Java: a server, after an end at once where its data are to be formatted."""
SPARK_CLASS = f"""#!/bin/sh
case "$1" in *.Master) exec {sys.executable} -m http.server --bind "$3" "$5";; esac
echo "not understood: $*"
exit 1
"""
"""In place of Spark's script: its master is a server, and its worker ends at once, as with a wrong option."""


def survivors(stack_id: str, sessions: list[int]) -> list[psutil.Process]:
    return processes.find_processes(sessions, stack_id)


@pytest.fixture(scope="module")
def brokers(broker, broker_var):
    """The stack of the broker that all tests use."""
    return state.running(broker_var)


@pytest.fixture(scope="module")
def stack(tmp_path_factory, broker):
    settings = load(var=tmp_path_factory.mktemp("var"), kafka=broker.model_dump())
    with Stack(settings, {"spark"}) as running:
        yield running
        sessions = [p.pid for p in running.processes.values()]
    assert survivors(running.id, sessions) == []
    assert state.read(settings.var_dir) is None


def test_listens_on_the_loopback_only(stack, brokers):
    mine = {p.pid for one in (stack, brokers) for p in processes.find_processes([], one.id)}
    listening = [c.laddr.ip for c in psutil.net_connections("inet") if c.pid in mine and c.status == psutil.CONN_LISTEN]
    assert len(listening) >= 6  # broker, controller, master, worker, and the two pages of Spark
    assert all(ip.removeprefix("::ffff:") == "127.0.0.1" for ip in listening)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_broker_and_daemons_of_spark_map_their_class_archives(stack, brokers):
    pids = {name: stack.processes[name].pid for name in ("spark-master", "spark-worker")}
    archives = dict.fromkeys(pids, class_archive.archive_path())
    archives["broker"] = class_archive.broker_archive_path(broker_jars())
    pids["broker"], _ = brokers.processes["broker"]
    for name, archive in archives.items():
        assert archive.is_file(), "`make setup` writes it"
        assert str(archive) in Path(f"/proc/{pids[name]}/maps").read_text(), name


def test_children_are_told_the_addresses(stack, tmp_path):
    out = tmp_path / "told"
    script = (
        "import sys, configs.settings as s; told = s.load(); "
        "open(sys.argv[1], 'w').write(f'{told.kafka.bootstrap} {told.spark.master} {told.var_dir}')"
    )
    child = stack.spawn("child", [sys.executable, "-c", script, str(out)])
    assert child.wait(PATIENCE_S) == 0, child.last_lines()
    assert out.read_text() == f"{stack.settings.kafka.bootstrap} {stack.settings.spark.master} {stack.settings.var_dir}"
    found = state.running(stack.settings.var_dir)
    assert found is not None and found.id == stack.id and {"spark-master", "spark-worker"} <= set(found.living())


def test_second_stack_on_the_same_folder_is_refused(stack):
    with pytest.raises(StackError, match=rf"is in use by process {os.getpid()} "):
        Stack(load(var=stack.settings.var_dir), {"broker"})


def test_killed_owner_leaves_nothing(tmp_path):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), "", "hold"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert owner.stdout is not None and owner.stderr is not None
        told, _, _ = select.select([owner.stdout], [], [], PATIENCE_S)
        assert told, f"the owner says nothing within {PATIENCE_S:g} s"
        line = owner.stdout.readline().split()
        assert line, owner.stderr.read()
        stack_id, sessions = line[0], [int(pid) for pid in line[1:]]
        assert len(survivors(stack_id, sessions)) >= 3  # stray, the stray's child, keeper
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
    wait_until(lambda: not survivors(stack_id, sessions), "the end of what it started", every_s=0.1)


def test_detached_stack_outlives_its_owner_until_down(tmp_path):
    program = tmp_path / "java"
    program.write_text(JAVA)
    program.chmod(0o755)
    command = [sys.executable, "-c", OWNER, str(tmp_path), "broker", "detach", str(program)]
    subprocess.run(command, check=True, timeout=2 * PATIENCE_S)
    found = state.running(tmp_path)
    assert found is not None
    sessions = [pid for pid, _ in found.processes.values()]
    try:
        assert found.living() == ["broker", "job"]
        assert state.with_stack_addresses(load(var=tmp_path)).kafka.bootstrap == found.addresses["broker"]
    finally:
        ended = end_recorded_stack(tmp_path)
    assert ended == ["broker", "job"]
    assert survivors(found.id, sessions) == []
    assert end_recorded_stack(tmp_path) == []


def test_failing_part_is_named_with_its_last_log_lines(tmp_path, monkeypatch):
    program = tmp_path / "home" / "bin" / "spark-class"
    program.parent.mkdir(parents=True)
    program.write_text(SPARK_CLASS)
    program.chmod(0o755)
    monkeypatch.setattr(spark, "spark_home", lambda: str(tmp_path / "home"))
    settings = load(var=tmp_path, spark={"worker_memory": "plenty"})
    stack = Stack(settings, {"spark"})
    with (
        pytest.raises(
            StackError, match=r"spark-worker ended with exit status 1(.|\n)*spark-worker\.log(.|\n)*--memory plenty"
        ),
        stack,
    ):
        pass
    assert processes.find_processes([], stack.id) == []
    Stack(load(var=tmp_path), ()).stop()  # the folder is free again


def test_port_in_use_is_told_before_anything_starts(tmp_path):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        with pytest.raises(PortError, match=rf"TIDECAST_PORTS__BROKER={port}.*process {os.getpid()}"):
            Stack(load(var=tmp_path, ports={"broker": port}), {"broker"})
    assert not (tmp_path / "log").exists()


def test_java_too_old_is_told_before_anything_starts(tmp_path, monkeypatch):
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho java.base@11.0.22\n")
    program.chmod(0o755)
    monkeypatch.setattr(java, "_FOLDERS", ())
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(java.JavaError, match=r"version 11, which is not supported(.|\n)*openjdk-17"):
        Stack(load(var=tmp_path), {"broker"})
    assert not (tmp_path / "log").exists()


def test_service_of_ones_own_that_does_not_answer_is_named(tmp_path):
    with pytest.raises(StackError, match=r"TIDECAST_KAFKA__BOOTSTRAP=127\.0\.0\.1:1: nothing accepts connections"):
        Stack(load(var=tmp_path, kafka={"bootstrap": "127.0.0.1:1"}), {"broker", "spark"})


def test_service_of_ones_own_is_used_and_not_started(stack, tmp_path):
    settings = load(var=tmp_path, kafka={"bootstrap": stack.settings.kafka.bootstrap})
    with Stack(settings, {"broker"}) as other:
        assert other.processes == {}
        assert other.addresses == {"broker": stack.settings.kafka.bootstrap}
        assert other.settings.kafka.bootstrap == stack.settings.kafka.bootstrap


def test_unknown_part_is_named():
    with pytest.raises(ValueError, match="brokr"):
        Stack(load(var=Path("unused")), {"brokr"})


def test_all_is_ended_where_the_keeper_was_killed(tmp_path):
    stack = Stack(load(var=tmp_path), ())
    first, second = stack.spawn("first", ["sleep", "300"]), stack.spawn("second", ["sleep", "300"])
    (keeper,) = {p.pid for p in processes.find_processes([], stack.id)} - {first.pid, second.pid}
    os.kill(keeper, signal.SIGKILL)
    # Its memory, by which it is found, is gone before its pipe is closed.
    wait_until(lambda: psutil.Process(keeper).status() == psutil.STATUS_ZOMBIE, "the end of the keeper")
    with pytest.raises(processes.ProcessError, match="was ended from outside"):
        stack.spawn("third", ["sleep", "300"])
    stack.stop()
    assert processes.find_processes([], stack.id) == []
    assert state.read(tmp_path) is None
    Stack(load(var=tmp_path), ()).stop()  # the folder is free again


def test_what_survives_is_named_and_the_stack_not_forgotten(tmp_path, monkeypatch):
    stack = Stack(load(var=tmp_path), ())
    stack.spawn("sleeper", ["sleep", "300"])
    me = psutil.Process()
    with monkeypatch.context() as patch:
        patch.setattr("pipelines.stack.processes.end_processes", lambda *args, **more: [me])
        with pytest.raises(StackError, match=rf"still alive.*{me.pid}.*"):
            end_recorded_stack(tmp_path)
        assert state.read(tmp_path) is not None
    stack.stop()
