"""Find a Java that Spark and Kafka run on; `python -m pipelines.spark.java` installs one where there is none."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from configs.errors import CorrectableError

SUPPORTED = (17, 21)
_WANTED = " or ".join(map(str, SUPPORTED))
_MODULE = "jdk.incubator.vector"
_FOLDERS = (
    "/usr/lib/jvm", "/opt", "/opt/java", "/usr/java", "/Library/Java/JavaVirtualMachines", "~/.sdkman/candidates/java",
    "~/.jdks", "/opt/homebrew/opt", "/usr/local/opt",
)  # fmt: skip
"""The last two are Homebrew's, which puts its Java neither on PATH nor beside those of macOS."""
REMEDY = (
    "Install a full JRE, e.g. `apt-get install openjdk-17-jre-headless`, `dnf install java-21-openjdk-headless` or "
    "`brew install openjdk@17`, or set JAVA_HOME to one."
)


class JavaError(CorrectableError, RuntimeError):
    """No usable Java; the message lists the ones found, why each does not do, and the remedy."""


@dataclass(frozen=True)
class Java:
    """A Java that can run everything: `home` is its JAVA_HOME, `version` its major number, 17 or 21."""

    home: Path
    version: int

    @property
    def binary(self) -> str:
        """The `java` program."""
        return str(self.home / "bin" / "java")


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first Java (17 or 21, with all modules) of those that JAVA_HOME, PATH and the usual folders hold.

    Starts each candidate in this order until one does, at most 30 s each; what was found of one is kept in the process.

    Args:
        environment: where JAVA_HOME and PATH are looked up, instead of this process's.

    Raises:
        JavaError: there is none; names every Java seen and why it does not do.
    """
    env = os.environ if environment is None else environment
    refused: list[str] = []
    seen: set[Path] = set()
    for home, origin in _homes(env):
        if home in seen:
            continue
        seen.add(home)
        version, fault = _probe(home)
        if fault is None:
            return Java(home, version)
        refused.append(f"{origin} {home}: {fault}")
    looked = "\n  ".join(refused) or "nothing in JAVA_HOME, PATH and the usual folders"
    raise JavaError(f"Java {_WANTED} is needed and was not found:\n  {looked}\n{REMEDY}")


def install_java() -> Java:
    """Install a headless JRE 17, or 21 if that fails, by apt as root, and return it; blocks until apt is done.

    Raises:
        JavaError: no apt, not root, apt failed, or what it installed does not do; the message says what to install.
    """
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise JavaError(f"Java {_WANTED} cannot be installed from here (that takes apt and root). {REMEDY}")
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    commands = [["apt-get", "update", "-qq"]]
    commands += [
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", f"openjdk-{v}-jre-headless"] for v in SUPPORTED
    ]
    printed = ""
    for command in commands:
        done = subprocess.run(command, env=quiet, capture_output=True, text=True)
        printed += done.stdout[-1000:] + done.stderr[-1000:]
        if done.returncode == 0 and "install" in command:
            _probe.cache_clear()
            return find_java()
    raise JavaError(f"apt could not install Java {_WANTED}:\n{printed[-2000:]}\n{REMEDY}")


def _homes(env: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    if home := env.get("JAVA_HOME"):
        yield Path(home), "JAVA_HOME"
    if program := shutil.which("java", path=env.get("PATH", "")):
        yield Path(program).resolve().parent.parent, "on PATH,"
    for folder in _FOLDERS:
        for pattern in ("bin/java", "*/bin/java", "*/Contents/Home/bin/java"):
            for program_path in sorted(Path(folder).expanduser().glob(pattern)):
                yield program_path.resolve().parent.parent, "found"


@functools.lru_cache(maxsize=64)
def _probe(home: Path) -> tuple[int, str | None]:
    """Version of the Java at `home` (0 if unknown), and what is wrong with it, or None."""
    program = home / "bin" / "java"
    if not os.access(program, os.X_OK):
        return 0, "has no bin/java that can be run"
    try:
        modules = _ask(program, "--list-modules").stdout
        match = re.search(r"^java\.base@(\d+)", modules, re.M)
        # Java 8 knows no modules.
        old = None if match else re.search(r'version "(?:1\.)?(\d+)', _ask(program, "-version").stderr)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 0, f"does not start ({error})"
    if match is None:
        return 0, f"version {old[1]}, which is not supported" if old else "does not say its version"
    version = int(match[1])
    if version not in SUPPORTED:
        return version, f"version {version}, which is not supported"
    if _MODULE not in modules:
        return version, f"version {version}, but lacks the module {_MODULE}, which Spark needs"
    return version, None


def _ask(program: Path, option: str) -> subprocess.CompletedProcess[str]:
    # In a process group of its own ctrl-C does not end it, so that an interrupted command finds no lack of Java.
    return subprocess.run([program, option], capture_output=True, text=True, timeout=30, process_group=0)


def main() -> int:
    """Find Java, or install it by apt as root; returns the exit status: 1 where both fail, with the error on stderr."""
    try:
        find_java()
    except JavaError as missing:
        print(f"{missing}\ninstalling Java with apt" if os.geteuid() == 0 else missing, file=sys.stderr)
        try:
            install_java()
        except JavaError as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
