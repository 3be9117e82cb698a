import os
import sys
from pathlib import Path

import pyspark
import pytest

from pipelines.spark import jars, session
from pipelines.spark.own_pyspark import use_own_pyspark


@pytest.fixture
def program(tmp_path):
    """Make a program that stands for Python; what it runs is given."""

    def made(line):
        path = tmp_path / "python3.6"
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)
        return str(path)

    return made


@pytest.fixture(autouse=True)
def gateway(monkeypatch):
    """The environment of a cluster's gateway, which is as it was afterwards."""
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3.5")
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python3.6")
    for name in ("JAVA_HOME", "SPARK_LOCAL_IP", "SPARK_LOCAL_DIRS", "SPARK_LAUNCHER_OPTS"):
        monkeypatch.setenv(name, os.environ.get(name, ""))


@pytest.mark.parametrize("line", [None, "echo /opt/python3.6", "exit 1", r"printf '\377'"])
def test_a_gateways_spark_and_python_are_not_used(program, monkeypatch, line):
    if line is not None:
        monkeypatch.setenv("PYSPARK_PYTHON", program(line))
    use_own_pyspark()
    assert os.environ["SPARK_HOME"] == str(Path(pyspark.__file__).parent)
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def test_a_launcher_of_this_environment_is_kept(program, monkeypatch):
    launcher = program(f'exec {sys.executable} "$@"')
    monkeypatch.setenv("PYSPARK_PYTHON", launcher)
    use_own_pyspark()
    assert os.environ["PYSPARK_PYTHON"] == launcher


def test_options_of_the_launchers_jvm_are_a_persons_own_where_there_are_some(monkeypatch):
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "-Dhttps.proxyHost=proxy")
    use_own_pyspark()
    assert os.environ["SPARK_LAUNCHER_OPTS"] == "-Dhttps.proxyHost=proxy"
    monkeypatch.delenv("SPARK_LAUNCHER_OPTS")
    use_own_pyspark()
    assert "-XX:TieredStopAtLevel=1" in os.environ["SPARK_LAUNCHER_OPTS"]


def test_sessions_of_this_computer_and_who_resolves_jars_take_their_own(monkeypatch, tmp_path):
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setattr(session.jars, "jar_paths", lambda group: [])
    monkeypatch.setattr(session.class_archive, "use_option", lambda: "")
    monkeypatch.setattr(session, "_build", lambda *_: os.environ["SPARK_HOME"])
    assert session.local_session("here") == str(Path(pyspark.__file__).parent)
    monkeypatch.setenv("SPARK_HOME", "/opt/spark-3.5")
    monkeypatch.setattr(jars, "_LOG", tmp_path / "jars.log")

    def launched(**_):
        raise OSError(os.environ["SPARK_HOME"])

    monkeypatch.setattr("pyspark.java_gateway.launch_gateway", launched)
    own = Path(pyspark.__file__).parent
    with pytest.raises(jars.JarsError, match=rf"(?s){own}.*Dhttps\.proxyHost.*spark\.jars\.ivySettings"):
        jars.resolve_jars()
