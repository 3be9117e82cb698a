"""A registry that answers, and refuses."""

import base64
import http.server
import threading

import pytest

from configs.settings import load
from pipelines.registry import RegistryError
from pipelines.registry.tracking import LOGIN, open_store

pytestmark = pytest.mark.integration


@pytest.fixture
def heard():
    """What the server was told in the header of logins."""
    return set()


@pytest.fixture
def registry(request, heard):
    """The address of a server that gives each question the same answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.heard.add(self.headers.get("Authorization"))
            self.send_error(request.param)

        do_POST = do_GET

        def log_message(self, *_): ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.heard = heard
        threading.Thread(target=server.serve_forever, daemon=True).start()
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
