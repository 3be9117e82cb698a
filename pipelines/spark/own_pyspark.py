"""This environment's PySpark and Python, whatever a cluster's gateway has put into the variables that name them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

LAUNCHER_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""Options of the short-lived JVM in which Spark's scripts put together how the one that stays is started."""
_ANSWERS_S = 30


def use_own_pyspark() -> None:
    """Set SPARK_HOME and PYSPARK_PYTHON of this process to those of this environment, for Spark on this computer.

    PYSPARK_PYTHON stays where it starts a Python of this environment, as a launcher of it does. SPARK_LAUNCHER_OPTS is
    set too, where it is not.

    Raises:
        RuntimeError: PySpark is not installed.
    """
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("pyspark is not installed in this environment. Run `make setup`.")
    # PySpark trusts a SPARK_HOME of another release, and workers of another Python lack PySpark or our packages.
    os.environ["SPARK_HOME"] = str(found.submodule_search_locations[0])
    if not _is_ours(os.environ.get("PYSPARK_PYTHON", "")):
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", LAUNCHER_JAVA)


def _is_ours(python: str) -> bool:
    if python in ("", sys.executable):
        return bool(python)
    try:
        asked = subprocess.run(
            [python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, timeout=_ANSWERS_S
        )
    except (OSError, ValueError, subprocess.SubprocessError):  # ValueError: what it prints is no text
        return False
    return asked.stdout.strip() == sys.prefix
