"""Services on the loopback, and those of other containers, which no proxy of a company reaches."""

import http.server
import os
import subprocess
import sys
import threading

import httpx
import pytest

from configs.settings import ROOT
from pipelines.cli.app import main
from pipelines.stack.context import page_probe
from pipelines.stack.ports import bypass_proxies

DEAD = "http://127.0.0.1:1"


@pytest.fixture
def page():
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/README.md"
        server.shutdown()


@pytest.fixture
def bare(monkeypatch):
    """This process's environment without proxies, put back as it was whatever is done to it."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")
    return monkeypatch


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_a_command_reaches_the_loopback_past_a_proxy(bare, page, name):
    bare.setenv(name, DEAD)
    bare.setattr(sys, "argv", ["tidecast", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert page_probe(page)() and httpx.get(page).is_success


@pytest.mark.parametrize(("given", "spared"), [
    ({"http_proxy": DEAD}, "127.0.0.1,localhost"),
    ({"https_proxy": DEAD, "no_proxy": "10.0.0.0/8, localhost"}, "10.0.0.0/8,localhost,127.0.0.1"),
    ({"http_proxy": DEAD, "NO_PROXY": "a", "no_proxy": "b"}, "b,127.0.0.1,localhost"),
    ({"HTTPS_PROXY": DEAD, "NO_PROXY": ".example.com"}, ".example.com,127.0.0.1,localhost"),
])  # fmt: skip
def test_hosts_that_were_spared_stay_so(given, spared):
    environment = dict(given)
    bypass_proxies(environment)
    assert environment == {**given, "no_proxy": spared, "NO_PROXY": spared}


@pytest.mark.parametrize("given", [
    {}, {"http_proxy": ""}, {"no_proxy": "a.example.com"}, {"http_proxy": DEAD, "no_proxy": "*"},
])  # fmt: skip
def test_where_no_proxy_is_used_nothing_changes(given):
    environment = dict(given)
    bypass_proxies(environment)
    assert environment == given


def test_a_containers_check_asks_no_proxy(bare, page):
    """An engine hands its own proxies to every container; that a page answers is to be known of the page itself."""
    bare.setenv("http_proxy", DEAD)
    done = subprocess.run([sys.executable, ROOT / "docker" / "health.py", page], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
