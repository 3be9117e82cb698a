"""The class archives (AppCDS) of this computer's JVMs: classes are mapped from a file instead of parsed anew.

One is of Spark's drivers, executors and daemons, another of the broker and Kafka's tools.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import distribution
from pathlib import Path

from configs.settings import ROOT
from pipelines.spark import jars, java

FOLDER = ROOT / "var" / "class-archive"
# A file that fits no longer is left unused; Java's own words about that would stand in everybody's output.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def class_path() -> list[str]:
    """Return the jars of the Kafka connector and of Delta, in the order in which every JVM of this computer has them.

    An archive fits a JVM only where the class path begins as the writer's did, so all of Spark have the same.

    Raises:
        JarsError: the jars are missing.
        OSError: the list of jars cannot be read.
    """
    return [*jars.jar_paths("connector"), *jars.jar_paths("delta")]


def archive_path() -> Path:
    """Return the path of Spark's archive for this Java, PySpark, class path and Spark configuration; it need not exist.

    It is `var/class-archive/<hash>.jsa` of the checkout, whatever `var` is set to. Starts Java once per process.

    Raises:
        JavaError: no usable Java.
        JarsError: the jars are missing.
        OSError: Java's `release` file or the list of jars cannot be read.
    """
    # The class path begins with the folder of the configuration.
    return FOLDER / _file_name([os.environ.get("SPARK_CONF_DIR", ""), *class_path()])


def broker_archive_path(jar_paths: Sequence[str]) -> Path:
    """Return the path of the broker's archive for this Java, PySpark and class path; it need not exist.

    It is `var/class-archive/broker/<hash>.jsa`, as `archive_path` has it.

    Args:
        jar_paths: the class path, in order.

    Raises:
        JavaError, OSError: as `archive_path`.
    """
    return FOLDER / "broker" / _file_name(jar_paths)


def use_option() -> str:
    """Return the JVM options that make drivers, executors and daemons use Spark's archive; "" while there is none.

    Raises:
        JavaError, JarsError, OSError: as `archive_path`.
    """
    return " ".join(use_options(archive_path()))


def use_options(archive: Path) -> list[str]:
    """Return the JVM options, one by one, that make a JVM use an archive; none while there is none."""
    return [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto", *_SILENT.split()] if archive.is_file() else []


def write_option(target: Path) -> str:
    """Return the JVM options that make a JVM write all classes it has loaded to `target` when it ends."""
    return f"-XX:ArchiveClassesAtExit={target} {_SILENT}"


def replace_archive(archive: Path, fresh: Path) -> None:
    """Put a complete new archive in its place, and remove those of other versions beside it.

    Raises:
        OSError: the folder cannot be written.
    """
    fresh.replace(archive)
    for other in archive.parent.glob("*.jsa"):
        if other != archive:
            other.unlink()


def _file_name(class_path: Sequence[str]) -> str:
    home = java.find_java().home
    release, pyspark = home / "release", Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    parts = [
        str(home),
        release.read_text() if release.is_file() else "",
        str(pyspark),
        str(pyspark.stat().st_mtime_ns),  # Java refuses an archive of jars that were installed again
        *class_path,
    ]
    return f"{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}.jsa"
