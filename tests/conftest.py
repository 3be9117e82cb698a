"""Fixtures that several rooms' tests share: a clean environment, one SparkSession, one real broker."""

from __future__ import annotations

import gc
import logging
import os
import sys
import uuid
from collections.abc import Generator, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
from _pytest.pathlib import import_path
from hypothesis import HealthCheck, settings

from configs.sections import Kafka
from pipelines.stack.ports import bypass_proxies
from tests.order import WITH_SESSION, room, turn, unit_of_work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small networks on busy cores: waiting threads cost most
bypass_proxies(os.environ)
# typer builds all commands from their signatures each time that one of them is called; they stay the same.
pytest.MonkeyPatch().setattr(typer.main, "get_command", cache(typer.main.get_command))
if not hasattr(sys.modules["__main__"], "__file__"):
    # A worker of pytest-xdist has no main file, by which PySpark takes it for a doctest and ends it. What it spawns
    # loads that file: an empty one, for this one brings pytest and hypothesis.
    sys.modules["__main__"].__file__ = str(Path(__file__).with_name("__init__.py"))

# Hypothesis measures examples against a fifth of a second, and how fast it draws them; that judges the machine.
settings.register_profile("any machine", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

SPARK = {
    # Compiling takes longer than running.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.retainedExecutions": "20",  # of large plans many fill the heap, and nobody looks at them
    # What Spark checks of its own work, each time that a rule has changed a plan and for every file of a checkpoint.
    "spark.sql.lightweightPlanChangeValidation": "false",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # What must hold of columns, under each name that they have: of plans with many names this is reckoned for long.
    "spark.sql.constraintPropagation.enabled": "false",
    # Where in Python a column was made, for error texts that no test reads: eight calls to the JVM for each.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    # A driver's pages, and plans in words for them: nobody opens them.
    "spark.ui.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "2",
    "spark.databricks.delta.history.metricsEnabled": "false",
}
"""Options of every session that a test starts; the ring's are as a person's are."""
LONG_LIVED, HEAP = "-XX:ReservedCodeCacheSize=240m -Xms1400m -Xmn700m", "1400m"
"""Of the JVM of the shared session: where C1 compiles alone, 48 MiB are reserved, which a few files of tests fill; and
plans of many tests fill the heap of a task."""
POLITE, HURRIED = 10, 5
"""How far tests give way to the ring, and those that use the session, who take longest of the others."""
NO_DATA = "spark.sql.streaming.noDataMicroBatches.enabled"
EVENT_PARTITIONS = 4
"""Of a test's topics: each costs a task, a producer or a transaction in every batch."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of what the fast path has to bear is tried."""
    parser.addoption(
        "--full-size", action="store_true", help="tests marked `sized` take all their seeds: docs/fastpath.md"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test marked `sized(quick, full)` runs for so many seeds."""
    for mark in metafunc.definition.iter_markers("sized"):
        metafunc.parametrize("seed", range(mark.args[metafunc.config.getoption("--full-size")]))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Garbage is not looked for while nearly nothing but what stays is made, later not in that, and more seldom."""
    gc.disable()
    gc.set_threshold(20_000, 20, 20)
    try:
        _import_by_turns(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        # pytest attaches itself to every logger that keeps its words to itself, thrice per test, and torch has sixty.
        for logger in logging.Logger.manager.loggerDict.values():
            if isinstance(logger, logging.Logger):
                logger.propagate = True


def _import_by_turns(config: pytest.Config) -> None:
    """Import the test files, each worker from another one on, so that what one has compiled the others find.

    On a fresh clone rewriting the asserts takes 10 s of CPU, which all workers would do at once; Python's own files
    likewise. What cannot be imported is told when it is collected.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    worker, workers = int(os.environ["PYTEST_XDIST_WORKER"][2:]), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    folders = [folder for folder in map(Path, config.args) if folder.is_dir()]
    files = sorted(file for folder in folders for file in folder.rglob("test_*.py") if "site" not in file.parts)
    begin = len(files) * worker // workers
    for file in files[begin:] + files[:begin]:
        with suppress(Exception, pytest.skip.Exception):
            import_path(file.absolute(), root=config.rootpath, consider_namespace_packages=False)


def pytest_sessionfinish() -> None:
    """All that is left ends with the process: pytest would look through it five times, a third of a second each."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first (tests/order.py)."""
    items.sort(key=lambda item: turn(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file is one worker's, and so is each chain of them (tests/order.py)."""
    from xdist.scheduler import LoadFileScheduling

    class OneStart(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit_of_work(super()._split_scope(nodeid))

    return OneStart(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Whoever is not the ring gives way to it: it measures latencies, and the other workers share its cores."""
    polite = HURRIED if room(item.path) in WITH_SESSION else POLITE
    if not item.get_closest_marker("ring") and (now := os.nice(0)) < polite:
        os.nice(polite - now)


@pytest.fixture(scope="session", autouse=True)
def own_var(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No setting of the person who runs the tests reaches them; what they write goes to a folder that is forgotten."""
    var = tmp_path_factory.mktemp("var")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TIDECAST_")]:
            patch.delenv(name)
        patch.setenv("TIDECAST_VAR", str(var))
        options = " ".join(f"--conf {name}={value}" for name, value in SPARK.items())
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{options} pyspark-shell")
        yield var


@pytest.fixture(scope="session")
def forking_python(own_var: Path) -> Iterator[str]:
    """A Python that forks what Spark starts for operators with state, also for processes that a test starts."""
    from tests.fakes.forked_python import forked_python

    with forked_python(own_var) as python:
        yield python


@pytest.fixture(scope="session")
def spark(forking_python: str) -> Iterator[SparkSession]:
    """The session of a DAG task, with Delta and the Kafka connector."""
    from pipelines.spark.options import COMMON
    from pipelines.spark.session import local_session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", forking_python)
        patch.setitem(COMMON, "spark.python.daemon.module", "tests.fakes.worker_daemon")
        # Operators with state ask the JVM four times per group, which by TCP is more work than the answer.
        patch.setitem(COMMON, "spark.python.unix.domain.socket.enabled", "true")
        patch.setenv("SPARK_SUBMIT_OPTS", LONG_LIVED)
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"--driver-memory {HEAP} {os.environ['PYSPARK_SUBMIT_ARGS']}")
        session = local_session("tests", cores=2, delta=True)
    session.conf.set("spark.sql.shuffle.partitions", "1")  # a task and a state store less per operator
    yield session
    session.stop()


@pytest.fixture
def one_partition(spark: SparkSession) -> Iterator[SparkSession]:
    """The session for small data: its shuffles have one partition, and no last micro-batch is without records."""
    spark.conf.set(NO_DATA, "false")
    yield spark
    spark.conf.unset(NO_DATA)


@pytest.fixture(scope="session")
def all_workers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the workers of a run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def schema(all_workers: Path) -> Path:
    """The database of an MLflow store without our experiment, one for all workers; a new one takes seconds to make."""
    from configs.settings import load
    from pipelines.registry import Registry
    from tests.fakes.unsynced import leave_unsynced

    leave_unsynced()
    settings = load(var=all_workers / "schema", mlflow={"experiment": "none of ours"})
    Registry(settings)  # it waits for the worker that makes it
    return settings.var_dir / "mlflow" / "mlflow.db"


@pytest.fixture(scope="session")
def broker_var(all_workers: Path) -> Path:
    """The `var` folder of the stack whose broker all workers use."""
    return all_workers / "broker"


@pytest.fixture(scope="session")
def broker(own_var: Path, broker_var: Path) -> Iterator[Kafka]:
    """A real broker with Tidecast's topics; `empty_topics` gives a test topics of its own on it."""
    from tests.fakes.shared_broker import shared_broker

    with shared_broker(broker_var) as kafka:
        yield kafka


@pytest.fixture
def empty_topics(broker: Kafka) -> Kafka:
    """The broker with topics under a prefix of this test's own, so that all who take part have to mind it."""
    from pipelines.kafka.topics import create_topics

    own = broker.model_copy(update={"prefix": f"{uuid.uuid4().hex[:8]}.", "event_partitions": EVENT_PARTITIONS})
    create_topics(own)
    return own
