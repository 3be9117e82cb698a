"""Where the executors' class archive (AppCDS) lies: it halves the time in which an executor registers, and its CPU."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

from configs.settings import ROOT
from pipelines.spark import jars, java

_FOLDER = ROOT / "var" / "class-archive"


def archive_path() -> Path:
    """Return the path of the executors' class archive (AppCDS) for this Java, Spark and class path; it need not exist.

    It is `var/class-archive/executor-<hash>.jsa` of the checkout, whatever `var` is set to; the hash is of Java's home
    and `release` file, pyspark's version and the connector's jars. Starts Java once per process (see `find_java`).

    Raises:
        JavaError: no usable Java.
        JarsError: the jars of the Kafka connector are missing.
        OSError: Java's `release` file or the list of jars cannot be read.
    """
    home = java.find_java().home
    release = home / "release"
    parts = [
        str(home),
        release.read_text() if release.is_file() else "",
        version("pyspark"),
        *jars.jar_paths("connector"),
    ]
    return _FOLDER / f"executor-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}.jsa"


def use_option() -> str:
    """Return the JVM options that make an executor use the archive; "" while there is none.

    Raises:
        JavaError: no usable Java.
        JarsError: the jars of the Kafka connector are missing.
    """
    archive = archive_path()
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto" if archive.is_file() else ""


def write_option(target: Path) -> str:
    """Return the JVM options that make an executor write all classes it has loaded to `target` when it ends."""
    return f"-XX:ArchiveClassesAtExit={target} -Xlog:cds=off -Xlog:cds+dynamic=off"
