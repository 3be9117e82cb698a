"""A registry that answers, and refuses."""

import http.server
import threading

import pytest

from configs.settings import load
from pipelines.registry import RegistryError
from pipelines.registry.tracking import open_store

pytestmark = pytest.mark.integration


@pytest.fixture
def registry(request):
    """The address of a server that gives each question the same answer."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(request.param)

        do_POST = do_GET

        def log_message(self, *_): ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
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


def test_it_is_asked_again_for_seconds_and_not_for_minutes(settings, monkeypatch):
    monkeypatch.delenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", raising=False)
    open_store(settings)
    import mlflow.environment_variables as of

    assert of.MLFLOW_HTTP_REQUEST_MAX_RETRIES.get() == 3
