"""The endpoint's process where it dies."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter

import psutil
import pytest

from configs.settings import load
from pipelines.serve.http import process as http_process
from pipelines.serve.http.process import ADDRESS, TOKEN, HttpEndpoint, pause_s


def wait_for(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("lived_s", "before_s", "pause"),
    [(0, 0, 1), (0, 1, 2), (0, 4, 8), (0, 40, 60), (0, 60, 60), (59, 8, 16), (60, 8, 1)],
)
def test_starts_again_ever_more_slowly_until_one_lives(lived_s, before_s, pause):
    assert pause_s(lived_s, before_s) == pause


def test_one_that_dies_is_started_again_with_the_same_token_and_that_is_said(tmp_path, monkeypatch, capsys):
    script = f"import time; open({str(tmp_path / 'fast' / 'http')!r}, 'w').close(); time.sleep(600)"
    monkeypatch.setattr(http_process, "child_command", lambda: [sys.executable, "-S", "-c", script])
    monkeypatch.setattr(http_process, "FIRST_S", 0.2)
    counts = Counter()
    settings = load(var=tmp_path)
    settings.store_dir.mkdir()
    endpoint = HttpEndpoint(settings, counts)
    try:
        address = settings.store_dir / ADDRESS
        wait_for(address.exists)
        token, first = (settings.store_dir / TOKEN).read_text(), endpoint.process
        first.kill()
        wait_for(lambda: endpoint.process.pid != first.pid and address.exists())
        assert counts == {"http restarts": 1} and (settings.store_dir / TOKEN).read_text() == token
        said = capsys.readouterr().out
        assert f"process {first.pid}, ended with status -9" in said and "serving.http_port" in said
    finally:
        endpoint.close()
    assert not psutil.pid_exists(endpoint.process.pid)


PARENT = """
import os, signal, sys, threading
from collections import Counter
from configs.settings import load
from pipelines.serve.http import process

process.child_command = lambda: [sys.executable, "-S", "-c", sys.argv[2]]
asked = threading.Event()
signal.signal(signal.SIGINT, lambda *_: asked.set())
settings = load(var=sys.argv[1])
endpoint = process.HttpEndpoint(settings, Counter())
asked.wait()
threading.Event().wait(0.5)  # a child that heard it, too, has ended meanwhile
endpoint.close()
"""


def test_ctrl_c_is_for_the_server_alone_which_ends_the_child(tmp_path):
    (store := tmp_path / "fast").mkdir()
    child = f"import os, time; open({str(store / 'http')!r}, 'w').write(str(os.getsid(0))); time.sleep(600)"
    command = [sys.executable, "-c", PARENT, str(tmp_path), child]
    server = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_for(lambda: (store / ADDRESS).exists() and (store / ADDRESS).read_text())
        assert (store / ADDRESS).read_text() == str(server.pid)  # of its session still, by which a stack ends it
        os.killpg(server.pid, signal.SIGINT)  # as a terminal does
        said, _ = server.communicate(timeout=60)
    finally:
        server.kill()
    assert (server.returncode, said) == (0, b"")


def test_one_that_the_system_refuses_to_start_is_tried_again(tmp_path, monkeypatch, capsys):
    commands = [[sys.executable, "-S", "-c", "pass"], ["/no/such/program"], ["/no/such/program"]]
    last = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    monkeypatch.setattr(http_process, "child_command", lambda: commands.pop(0) if commands else last)
    monkeypatch.setattr(http_process, "FIRST_S", 0.05)
    settings, counts = load(var=tmp_path), Counter()
    settings.store_dir.mkdir()
    endpoint = HttpEndpoint(settings, counts)
    try:
        wait_for(lambda: endpoint.process.args == last)
        assert endpoint.process.poll() is None and counts == {"http restarts": 1}
        said = capsys.readouterr().out
        assert said.count("cannot be started ([Errno 2]") == 2 and "trying again in 0.2 s" in said
    finally:
        endpoint.close()


def test_one_whose_server_was_killed_meanwhile_leaves_the_address_to_its_successor(tmp_path, monkeypatch):
    settings = load(var=tmp_path)
    settings.store_dir.mkdir()
    (settings.store_dir / TOKEN).write_text("token")
    (settings.store_dir / ADDRESS).write_text("http://127.0.0.1:1")
    monkeypatch.setattr(http_process, "load", lambda: settings)
    monkeypatch.setattr(sys, "argv", ["process", str(os.getpid())])  # not the parent of this one
    http_process.main()
    assert (settings.store_dir / ADDRESS).read_text() == "http://127.0.0.1:1"
