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
READS, HAS_NONE, SEES = "may read the experiment", "nobody has made a model", "may list models and read none"
EXPERIMENT = {"experiment": {"experiment_id": "7", "name": "tidecast"}}
LISTED = {HAS_NONE: {}, SEES: {"registered_models": [{"name": "orders-forecaster"}]}}
LOGINS = "MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD .* MLFLOW_TRACKING_TOKEN"


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
            lists = request.param in LISTED and "/search" in self.path
            if lists or request.param == READS or (request.param in LISTED and "/experiments/" in self.path):
                said = json.dumps(LISTED[request.param] if lists else EXPERIMENT).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)
            else:
                self.send_error(403 if request.param in LISTED else request.param)

        def do_POST(self):
            self.send_error(request.param if isinstance(request.param, int) else 403)

        def log_message(self, *_): ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.heard = heard
        ends_within_s = 0.01
        threading.Thread(target=server.serve_forever, args=(ends_within_s,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(("registry", "words"), [
    (500, r"check mlflow\.tracking_uri"), (401, LOGINS), (403, LOGINS),
], indirect=["registry"])  # fmt: skip
def test_it_is_named_with_what_helps(registry, words, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")  # three take 12 s
    with pytest.raises(RegistryError, match=rf"MLflow at {registry}(.|\n)*{words}"):
        open_store(load(var=tmp_path, mlflow={"tracking_uri": registry}))


@pytest.mark.parametrize("registry", [HAS_NONE], indirect=True)
def test_a_user_whom_mlflow_forbids_to_ask_for_what_nobody_has_made_finds_no_model(registry, tmp_path):
    asking = Registry(load(var=tmp_path, mlflow={"tracking_uri": registry}))
    assert asking.champion_version("orders") is None
    asking.refuse_foreign("orders", trains=True)


@pytest.mark.parametrize("registry", [SEES], indirect=True)
def test_a_model_that_there_is_is_not_taken_for_none_by_a_user_who_may_not_read_it(registry, tmp_path):
    asking = Registry(load(var=tmp_path, mlflow={"tracking_uri": registry}))
    with pytest.raises(RegistryError, match=rf"(.|\n)*{LOGINS}"):
        asking.champion_version("orders")


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
    remedy = f"Set {', '.join(LOGIN)} of a user who may, or MLFLOW_TRACKING_TOKEN"
    named = rf"MLflow at {registry}: (.|\n)*{remedy}\. This training counts for nothing"
    with pytest.raises(RegistryError, match=named), store.run("orders", "test"):
        pass
