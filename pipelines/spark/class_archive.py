"""Where the executors' class archive (AppCDS) lies: it halves the time in which an executor registers, and its CPU."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

from configs.settings import ROOT
from pipelines.spark import jars, java

_FOLDER = ROOT / "var" / "class-archive"


def path() -> Path:
    """The archive for this Java, Spark and class path; whether it exists is another question.

    A JVM that finds another Java or class path than the archive's goes on without it: a mistake costs speed alone.
    """
    home = java.find().home
    release = home / "release"
    parts = [str(home), release.read_text() if release.is_file() else "", version("pyspark"), *jars.paths("connector")]
    return _FOLDER / f"executor-{hashlib.sha256('|'.join(parts).encode()).hexdigest()[:16]}.jsa"


def use_option() -> str:
    """What an executor's JVM is told: empty while there is no archive."""
    archive = path()
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto" if archive.is_file() else ""


def write_option(target: Path) -> str:
    """What makes an executor's JVM write an archive of all it has loaded when it ends."""
    return f"-XX:ArchiveClassesAtExit={target} -Xlog:cds=off -Xlog:cds+dynamic=off"
