"""A registry that answers, and refuses."""

import base64
import http.server
import json
import threading

import pytest

from configs.settings import load
from pipelines.registry import Registry, RegistryError
from pipelines.registry.tracking import LOGIN, open_store

pytestmark = pytest.mark.integration
READS = "may read the experiment"


@pytest.fixture
def heard():
    """What the server was told in the header of logins."""
    return set()


@pytest.fixture
def registry(request, heard):
    """The address of a server that gives each question the same answer, or lets who asks read and not write."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.heard.add(self.headers.get("Authorization"))
            if request.param == READS:
                said = json.dumps({"experiment": {"experiment_id": "7", "name": "tidecast"}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)
            else:
                self.send_error(request.param)

        def do_POST(self):
            self.send_error(403 if request.param == READS else request.param)

        def log_message(self, *_): ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.heard = heard
        ends_within_s = 0.01
        threading.Thread(target=server.serve_forever, args=(ends_within_s,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(("registry", "words"), [
    (500, r"check mlflow\.tracking_uri"), (401, "MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD"),
    (403, "MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD"),
], indirect=["registry"])  # fmt: skip
def test_it_is_named_with_what_helps(registry, words, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")  # three take 12 s
    with pytest.raises(RegistryError, match=rf"MLflow at {registry}(.|\n)*{words}"):
        open_store(load(var=tmp_path, mlflow={"tracking_uri": registry}))


@pytest.mark.parametrize("registry", [401], indirect=True)
def test_a_login_in_its_address_is_used_and_not_repeated(registry, heard, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    for name in LOGIN:  # set first, so that they are as they were in the end
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    address = registry.replace("//", "//bob:p%40ss@")
    with pytest.raises(RegistryError, match=f"MLflow at {registry}") as refused:
        open_store(load(var=tmp_path, mlflow={"tracking_uri": address}))
    assert heard == {f"Basic {base64.b64encode(b'bob:p@ss').decode()}"}
    assert "bob" not in str(refused.value) and "ss@" not in repr(refused.value)


def test_it_is_asked_again_for_seconds_and_not_for_minutes(settings, monkeypatch):
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    open_store(settings)
    import mlflow.environment_variables as of

    assert of.MLFLOW_HTTP_REQUEST_MAX_RETRIES.get() == 3


@pytest.mark.parametrize("registry", [READS], indirect=True)
def test_a_login_that_may_read_and_not_write_is_told_so_in_a_training(registry, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    store = Registry(load(var=tmp_path, mlflow={"tracking_uri": registry}))
    named = rf"MLflow at {registry}: (.|\n)*Set {', '.join(LOGIN)} of a user who may\. This training counts for nothing"
    with pytest.raises(RegistryError, match=named), store.run("orders", "test"):
        pass
