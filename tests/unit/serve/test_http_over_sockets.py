"""The HTTP endpoint as it runs, a process on a port: what strangers, broken and slow clients do to it."""

import json
import os
import socket
import sys
import urllib.error
import urllib.request
from collections import Counter
from contextlib import ExitStack

import pytest

from configs.settings import load
from models.forecast.baselines.naive import Naive
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.fast.swapping import swap_model
from pipelines.serve.http import process
from pipelines.serve.http.app import CONNECTIONS, HEAD_BYTES
from pipelines.serve.http.process import ADDRESS, TOKEN, HttpEndpoint
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, raw
from tests.fakes.waiting import PATIENCE_S, wait_until

pytestmark = pytest.mark.study

JOB = "word_count"
ASK = f"GET /jobs/{JOB}/forecast HTTP/1.1\r\nHost: x\r\n"
LESS_PATIENT = """
import pipelines.serve.http.app as app
from pipelines.serve.http.process import main
app.PATIENCE_S = 2.0  # nobody is answered before the first look where slow ones have all connections
main()
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """(host and port, token) of an endpoint over a store with one forecast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDECAST_VAR", str(tmp_path_factory.mktemp("var")))
        patch.setenv("TIDECAST_TRAINING__STEP_S", str(STEP))
        patch.setattr(process, "child_command", lambda: [sys.executable, "-c", LESS_PATIENT, str(os.getpid())])
        settings = load()
        with Store.open(settings.store_dir) as store:
            core = Core(store, STEP, {JOB}, epoch=7)
            core.process([IncomingSample(raw(JOB, BEGIN + i, 5.0)) for i in range(30)])
            swap_model(core, prepare_model(core.windows, JOB, f"{JOB}-forecaster", "1", pack_model(Naive(TASK))))
            endpoint = HttpEndpoint(settings, Counter())
            try:
                wait_until((settings.store_dir / ADDRESS).exists, "the endpoint")
                modes = [(settings.store_dir / name).stat().st_mode & 0o777 for name in (ADDRESS, TOKEN)]
                assert modes == [0o600, 0o600]
                host, _, port = (settings.store_dir / ADDRESS).read_text().removeprefix("http://").partition(":")
                yield (host, int(port)), (settings.store_dir / TOKEN).read_text(), endpoint
            finally:
                endpoint.close()


def asked(where, head, seconds=30.0):
    """The answer's status line; empty where the connection was closed without one."""
    with socket.create_connection(where, timeout=seconds) as client:
        try:
            client.sendall(head if isinstance(head, bytes) else head.encode())
            return client.recv(1 << 16).partition(b"\r\n")[0].decode()
        except ConnectionError:
            return ""


def good(where, token):
    request = urllib.request.Request(
        "http://{}:{}/jobs/{}/forecast".format(*where, JOB), headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["version"] == BEGIN + 29


@pytest.mark.parametrize(
    "name", ["", "Bearer ", "Bearer x", "Basic {}", "bearer", "Bearer {}x", "Bearer \xff\xfe", "{}"]
)
def test_without_the_token_nothing_is_said(running, name):
    where, token, _ = running
    head = f"{ASK}Authorization: {name.format(token)}\r\n\r\n".encode("latin-1")
    assert asked(where, head).startswith("HTTP/1.1 401")
    assert good(where, token)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * (HEAD_BYTES + 10) + b" HTTP/1.1\r\n",
        ASK.encode() + b"A: " + b"x" * (HEAD_BYTES + 10),
        ASK.encode() + b"A: b\r\n" * HEAD_BYTES,
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
        b"GET /jobs/%00%ff/forecast HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_and_the_others_are_answered(running, head):
    where, token, endpoint = running
    status = asked(where, head)
    assert status == "" or status.split()[1] in {"400", "401", "404", "405", "431"}
    assert good(where, token) and endpoint.process.poll() is None


def test_who_sends_nothing_or_slowly_or_dribbles_is_let_go_and_does_not_keep_others_out(running):
    where, token, endpoint = running
    with ExitStack() as stack:
        dribbling = stack.enter_context(socket.create_connection(where, timeout=30))  # behind a good request
        dribbling.sendall(f"{ASK}Authorization: Bearer {token}\r\n\r\n".encode())
        assert dribbling.recv(1 << 16).startswith(b"HTTP/1.1 200")
        dribbling.sendall(b"GET /hea")
        slow = [stack.enter_context(socket.create_connection(where, timeout=30)) for _ in range(CONNECTIONS + 50)]
        for i, one in enumerate(slow):
            try:
                one.sendall(ASK.encode()[: i % len(ASK)])
            except ConnectionError:
                continue

        def answered():
            try:
                return good(where, token)
            except (urllib.error.URLError, OSError):
                return False

        wait_until(answered, "an answer for one who asks", every_s=0.2)
        for one in [dribbling, *slow]:
            one.settimeout(PATIENCE_S)
            try:
                while one.recv(4096):
                    pass
            except ConnectionError:
                continue
    assert endpoint.process.poll() is None and good(where, token)
