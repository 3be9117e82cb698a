import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pyspark.sql
import pytest

from configs.contract import Contract
from configs.planning import Executors
from configs.settings import load
from pipelines.spark import java, query_session, session
from tests.fakes.waiting import PATIENCE_S


class Builder:
    """Builds a session that takes ctrl-C for itself, as a SparkContext does."""

    def appName(self, name):
        return self

    master = appName
    takes = staticmethod(bool)

    def getOrCreate(self):
        self.takes()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return "session"


@pytest.fixture
def stop():
    """A process's own answer to ctrl-C."""

    def handler(*_): ...

    before = signal.signal(signal.SIGINT, handler)
    yield handler
    signal.signal(signal.SIGINT, before)


def test_a_process_that_stops_cleanly_on_ctrl_c_still_does_with_a_session(monkeypatch, stop):
    monkeypatch.setattr(pyspark.sql, "SparkSession", SimpleNamespace(builder=Builder()))
    monkeypatch.setattr(java, "find_java", lambda: java.Java(Path("/java"), 17))
    monkeypatch.setenv("JAVA_HOME", "")
    assert session._build("quick", "local[1]", {}) == "session"
    assert signal.getsignal(signal.SIGINT) is stop


@pytest.mark.parametrize(("master", "said"), [("yarn", True), ("local[1]", False)])
def test_an_application_that_yarn_does_not_start_is_said(monkeypatch, stop, capsys, master, said):
    builder, told, say = Builder(), threading.Event(), session._say_waiting
    builder.takes = (lambda: told.wait(PATIENCE_S)) if said else (lambda: told.wait(0.2))
    monkeypatch.setattr(pyspark.sql, "SparkSession", SimpleNamespace(builder=builder))
    monkeypatch.setattr(java, "find_java", lambda: java.Java(Path("/java"), 17))
    monkeypatch.setattr(session, "_say_waiting", lambda: say() or told.set())
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setattr(session, "ACCEPTED_S", 0.02)
    session._build("slow", master, {})
    assert ("Is its queue full?" in capsys.readouterr().err) is said is told.is_set()


@pytest.fixture
def on_yarn(monkeypatch, tmp_path):
    """Settings of a job on YARN, in a process that names no Python; and the options with which it is built."""
    built = {}
    monkeypatch.setattr(session, "_build", lambda app, master, options: built.update(options))
    monkeypatch.setattr(session.jars, "jar_paths", lambda group: [])
    monkeypatch.setenv("PYSPARK_PYTHON", "")
    monkeypatch.delenv("PYSPARK_PYTHON")
    return load(spark={"master": "yarn"}, var=tmp_path), built


def test_executors_elsewhere_start_the_drivers_python_unless_another_is_named(monkeypatch, on_yarn):
    settings, _ = on_yarn
    session.cluster_session("orders", settings, Contract(job="orders"))
    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    session.cluster_session("orders", settings, Contract(job="orders"))
    assert os.environ["PYSPARK_PYTHON"] == "./environment/bin/python"


@pytest.mark.parametrize(("grows", "most"), [(True, "6"), (False, "2")])
def test_spark_itself_adds_executors_only_where_it_may(on_yarn, grows, most):
    settings, built = on_yarn
    contract = Contract(job="orders", executors=Executors(min=2, max=6, cores=2))
    session.cluster_session("orders", settings, contract, grows=grows)
    assert built["spark.dynamicAllocation.maxExecutors"] == most
    assert built["spark.dynamicAllocation.initialExecutors"] == "2"
    assert (built["spark.cores.max"], built["spark.executor.maxNumFailures"]) == ("12", "12")  # the agent may
    assert built["spark.executor.failuresValidityInterval"] == "1h"


@pytest.mark.parametrize("python_state", [True, False])
def test_a_query_with_state_in_python_hands_on_its_rows_in_small_parts(monkeypatch, python_state):
    built = {}
    monkeypatch.setattr(session, "_build", lambda app, master, options: built.update(options))
    monkeypatch.setattr(session, "class_archive", SimpleNamespace(use_option=str, class_path=list))
    monkeypatch.setattr(session, "_on_loopback", lambda settings: {})
    query_session.query_session("serving", load(), 2, "", python_state=python_state)
    assert ("spark.buffer.size" in built) is python_state


def test_a_query_of_ours_on_a_cluster_shows_no_pages_and_a_job_some_that_end_no_stage(monkeypatch, tmp_path):
    built = {}
    context = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: SimpleNamespace(set=lambda *_: None)))
    made = SimpleNamespace(sparkContext=context, conf=context._jsc.hadoopConfiguration())
    monkeypatch.setattr(session, "_build", lambda app, master, options: built.update({app: options}) or made)
    monkeypatch.setattr(session.jars, "jar_paths", lambda group: [])
    monkeypatch.setenv("PYSPARK_PYTHON", "python")
    settings = load(spark={"master": "yarn"}, var=tmp_path)
    query_session.query_session("autoscaler", settings, 2, "yarn")
    session.cluster_session("orders", settings, Contract(job="orders"))
    assert built["autoscaler"]["spark.ui.enabled"] == "false" and "spark.ui.enabled" not in built["orders"]
    assert built["orders"]["spark.ui.killEnabled"] == "false"


@pytest.mark.parametrize("master", ["local[2]", "spark://127.0.0.1:7077", "yarn"])
def test_files_of_a_job_on_this_computer_stay_there_whatever_hadoop_is_told(monkeypatch, tmp_path, master):
    built = {}
    monkeypatch.setattr(session, "_build", lambda app, master, options: built.update(options))
    monkeypatch.setattr(session.jars, "jar_paths", lambda group: [])
    for name in ("SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS", "PYSPARK_PYTHON"):
        monkeypatch.setenv(name, "")
    settings = load(spark={"master": master}, var=tmp_path)
    session.cluster_session("orders", settings, Contract(job="orders"), stock_starts=True)
    assert built.get("spark.hadoop.fs.defaultFS") == (None if master == "yarn" else "file:///")
