"""Whether a path without a scheme is the same file for Spark as for Python, and how a file is written whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def other_file_system(spark: SparkSession) -> str:
    """Return where Spark looks for a path without a scheme, as `hdfs://namenode:8020`; "": where Python does.

    Mostly it is what core-site.xml in HADOOP_CONF_DIR names, as on YARN.
    """
    jvm: Any = spark._jvm
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    default = jvm.org.apache.hadoop.fs.FileSystem.getDefaultUri(conf)
    return "" if default.getScheme() == "file" else str(default.toString())


def refuse_other_file_system(spark: SparkSession, error: type[ValueError]) -> None:
    """Raise this error where a path without a scheme is not the same file for Spark as for Python.

    Args:
        spark: the session that writes there.
        error: of the caller.
    """
    if other := other_file_system(spark):
        raise error(
            f"for Spark a path without a scheme is on {other} (fs.defaultFS), for Python on a mounted file system, so "
            "neither finds what the other writes. Give paths of a file system that is mounted on all nodes, and "
            'before this call spark.conf.set("fs.defaultFS", "file:///"); what is on the other one has to be copied'
        )


def write_whole(path: Path, text: str) -> None:
    """Put a file in place of the one before: all of it or nothing, also where the computer fails meanwhile.

    Raises:
        OSError: it cannot be written; the one before stands then.
    """
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
