"""A registry that fills up, or goes away, in the middle of a training: named, and what serves stays."""

import errno
import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

import httpx
import numpy as np
import pytest

from configs.settings import ROOT, load
from configs.topology import load_topology
from models.forecast.baselines.naive import Naive
from models.placement.learned.past import twin_past
from models.placement.performance.model import train_performance
from models.placement.performance.windows import parts_in_time
from models.placement.plan.measured import Block, Placement
from pipelines.bench.chaos.disks import fill_disk, free_disk, small_disk
from pipelines.bench.site.ports import free_ports
from pipelines.registry import Registry, RegistryError
from pipelines.registry.placements import PerformanceRegistry
from pipelines.registry.tracking import as_training_error
from pipelines.train.placement.run import spaces_of
from tests.fakes.forecasters import TASK, put
from tests.fakes.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("elsewhere")]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a file system")
STAYS = "This training counts for nothing, and what serves goes on serving; train again"


@pytest.fixture
def mounted(tmp_path_factory, schema):
    """Settings whose `var`, with an embedded registry, is on a file system of its own."""
    folder = tmp_path_factory.mktemp("small")
    with small_disk(folder):
        (folder / "mlflow").mkdir()
        (folder / "mlflow" / "mlflow.db").write_bytes(schema.read_bytes())
        yield load(var=folder)


@root_only
def test_a_full_disk_under_a_forecaster_is_named_and_the_next_training_is_registered(mounted):
    registry = Registry(mounted)
    registry.set_champion("orders", put(registry, "orders", Naive(TASK)))
    fill_disk(mounted.var_dir)
    with pytest.raises(RegistryError, match=rf"{mounted.var_dir}(.|\n)*Make room there. {STAYS}"):
        put(registry, "orders", Naive(TASK, seasonal=False))
    assert registry.champion_version("orders") == "1" and registry.load("orders").kind == "seasonal_naive"
    free_disk(mounted.var_dir)
    registry.set_champion("orders", put(registry, "orders", Naive(TASK, seasonal=False)))
    assert registry.load("orders").kind == "last_value"


@root_only
def test_a_disk_that_fills_while_a_performance_model_is_written_leaves_the_old_one(mounted):
    topology = load_topology("adverts", ROOT / "configs" / "topologies")
    block = Block(tuple(topology.operators), "east", 3, 1.5, 1.5)
    space = spaces_of(topology, Placement((block,), 3.0, 1.5, True))[0]
    train, stop, _ = parts_in_time(twin_past(space, 1 + 0.5 * np.sin(np.arange(60.0) / 9), seed=0))
    model = train_performance(train, stop, int(space.slots.max()), seed=0, epochs=1)
    registry = PerformanceRegistry(mounted)

    def register(full=False):
        with registry.run("adverts", "performance") as run:
            if full:
                fill_disk(mounted.var_dir)
            return registry.register(run, "adverts", model, space, "# A card", {})

    registry.set_champion("adverts", register())
    said = registry.load("adverts", space).predict(stop.seen)
    with pytest.raises(RegistryError, match=rf"{mounted.var_dir}(.|\n)*Make room there. {STAYS}"):
        register(full=True)
    assert (registry.load("adverts", space).predict(stop.seen) == said).all()
    free_disk(mounted.var_dir)
    registry.set_champion("adverts", register())
    assert registry.load("adverts", space).predict(stop.seen).shape == said.shape


def of_files():
    return OSError(errno.EROFS, "Read-only file system", "artifacts/model")  # a mount whose files are open stays


def of_the_database():
    from mlflow.exceptions import MlflowException  # with it comes all of MLflow, for workers that only collect, too

    return MlflowException("(sqlite3.OperationalError) attempt to write a readonly database\n[SQL: INSERT INTO runs]")


@pytest.mark.parametrize("raised", [of_files, of_the_database])
def test_a_store_that_has_become_read_only_is_named(raised):
    named = rf"MLflow at sqlite:///var/m.db: .* Mount it for writing. {STAYS}"
    with pytest.raises(RegistryError, match=named), as_training_error("sqlite:///var/m.db"):
        raise raised()


def test_what_goes_wrong_in_a_training_for_another_reason_is_passed_on():
    with pytest.raises(FileNotFoundError), as_training_error("sqlite:///var/m.db"):
        raise FileNotFoundError(errno.ENOENT, "No such file", "lake")


@contextmanager
def server(folder, port):
    """MLflow's server, on the store in a folder, without the process that `mlflow server` is beside it."""
    command = [
        sys.executable, "-m", "uvicorn", "--host", "127.0.0.1", "--port", str(port), "mlflow.server.fastapi_app:app",
    ]  # fmt: skip
    named, store = "_MLFLOW_SERVER_", f"sqlite:///{folder}/mlflow.db"
    own = os.environ | {
        f"{named}FILE_STORE": store, f"{named}REGISTRY_STORE": store, f"{named}SERVE_ARTIFACTS": "true",
        f"{named}ARTIFACT_ROOT": "mlflow-artifacts:/", f"{named}ARTIFACT_DESTINATION": str(folder / "artifacts"),
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    }  # fmt: skip
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=own, start_new_session=True)

    def answers():
        assert process.poll() is None, (folder / "server.log").read_text()  # another may have its port
        try:
            return httpx.get(f"http://127.0.0.1:{port}/health", timeout=3).status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_until(answers, "MLflow's server", 300, every_s=0.5)
        yield process
    finally:
        with suppress(ProcessLookupError):  # a test has ended it
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def test_a_server_that_hangs_or_ends_in_a_training_is_named_and_the_champion_is_there_when_it_is_back(
    tmp_path_factory, schema, monkeypatch
):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")  # three take 12 s, each time
    folder, (port,) = tmp_path_factory.mktemp("served"), free_ports(1)
    (folder / "mlflow.db").write_bytes(schema.read_bytes())
    uri = f"http://127.0.0.1:{port}"
    named = rf"MLflow at {uri}: (.|\n)*mlflow.tracking_uri names it. {STAYS}"
    with server(folder, port) as process:
        registry = Registry(load(var=folder / "var", mlflow={"tracking_uri": uri}))
        registry.set_champion("orders", put(registry, "orders", Naive(TASK)))
        with (
            monkeypatch.context() as patch,
            pytest.raises(RegistryError, match=named),
            registry.run("orders", "test") as run,
        ):
            os.killpg(process.pid, signal.SIGSTOP)
            patch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")
            run.metrics({"loss": 1.0})
        os.killpg(process.pid, signal.SIGCONT)
        assert registry.load("orders").kind == "seasonal_naive" and len(registry.versions("orders")) == 1
        registry.set_champion("orders", put(registry, "orders", Naive(TASK, seasonal=False)))
        assert registry.load("orders").kind == "last_value"
        with pytest.raises(RegistryError, match=named), registry.run("orders", "test") as run:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
            run.metrics({"loss": 1.0})
