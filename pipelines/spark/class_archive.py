"""The class archive (AppCDS) of this computer's Spark JVMs: classes are mapped from a file instead of parsed anew."""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import distribution
from pathlib import Path

from configs.settings import ROOT
from pipelines.spark import jars, java

FOLDER = ROOT / "var" / "class-archive"
# A file that fits no longer is left unused; Java's own words about that would stand in everybody's output.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def class_path() -> list[str]:
    """Return the jars of the Kafka connector and of Delta, in the order in which every JVM of this computer has them.

    An archive fits a JVM only where the class path begins as the writer's did, so all have the same.

    Raises:
        JarsError: the jars are missing.
        OSError: the list of jars cannot be read.
    """
    return [*jars.jar_paths("connector"), *jars.jar_paths("delta")]


def archive_path() -> Path:
    """Return the path of the archive for this Java, PySpark, class path and Spark configuration; it need not exist.

    It is `var/class-archive/<hash>.jsa` of the checkout, whatever `var` is set to. Starts Java once per process.

    Raises:
        JavaError: no usable Java.
        JarsError: the jars are missing.
        OSError: Java's `release` file or the list of jars cannot be read.
    """
    home = java.find_java().home
    release, pyspark = home / "release", Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    parts = [
        str(home),
        release.read_text() if release.is_file() else "",
        str(pyspark),
        str(pyspark.stat().st_mtime_ns),  # Java refuses an archive of jars that were installed again
        os.environ.get("SPARK_CONF_DIR", ""),  # the class path begins with it
        *class_path(),
    ]
    return FOLDER / f"{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}.jsa"


def use_option() -> str:
    """Return the JVM options that make driver and executors use the archive; "" while there is none.

    Raises:
        JavaError, JarsError, OSError: as `archive_path`.
    """
    archive = archive_path()
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto {_SILENT}" if archive.is_file() else ""


def write_option(target: Path) -> str:
    """Return the JVM options that make a JVM write all classes it has loaded to `target` when it ends."""
    return f"-XX:ArchiveClassesAtExit={target} {_SILENT}"
