"""What this computer needs for Tidecast, what of it is there, and how to get the rest."""

from __future__ import annotations

import math
import platform
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from configs.errors import without_logins
from configs.sections import Ports
from configs.settings import ROOT, Settings
from pipelines.spark import jars, java, usable_paths
from pipelines.stack import addresses, ports, state
from pipelines.stack.context import StackError
from pipelines.workers import usable_cores

_GIB = 1024**3
_MEMORY_GIB = 7.5  # a computer sold with 8
_DISK_GIB = 3.0  # what runs write; the environment is there when this is asked
_CORES = 2


@dataclass(frozen=True)
class Check:
    """One requirement, as checked on this computer.

    Attributes:
        name: what is needed.
        ok: whether it is met.
        found: what was found, in words.
        remedy: what to do if it is not met, where `found` does not say so.
    """

    name: str
    ok: bool
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        line = f"{'ok     ' if self.ok else 'missing'}  {self.name:10} {self.found}"
        return line if self.ok or not self.remedy else f"{line}\n{'':20}{self.remedy}"


def run_checks(settings: Settings) -> list[Check]:
    """Check the clone's folder, Python, packages, Java, jars, memory, disk, `var`, cores, ports, configured services.

    Takes about a second, and up to 5 s more for every host in the settings that does not answer.

    Raises:
        FileNotFoundError: there is no requirements.lock.
    """
    return [
        _clone(),
        _python(),
        _packages(ROOT / "requirements.lock"),
        _java(),
        _jars(),
        _memory(),
        _disk(settings.var_dir),
        _var(settings.var_dir, broker=not settings.kafka.bootstrap),
        _cores(),
        _ports(settings),
        _services(settings),
    ]


def _clone() -> Check:
    fault = usable_paths.clone_fault(ROOT)
    return Check("clone", not fault, fault or str(ROOT))


def _python() -> Check:
    found, right = f"{platform.python_version()} at {sys.executable}", sys.version_info[:2] == (3, 11)
    return Check("python", right, found, "Install Python 3.11, remove .venv, run `make setup`.")


def _packages(lock: Path) -> Check:
    """Installed versions against the lock; packages of other platforms (CUDA) may be absent."""
    wrong, count = [], 0
    for line in lock.read_text().splitlines():
        match = re.match(r"([A-Za-z0-9._-]+)==([^\s;]+)", line)
        if match is None:
            continue
        try:
            installed = version(match[1])
        except PackageNotFoundError:
            if not re.match(r"nvidia-|cuda-|triton", match[1]):
                wrong.append(f"{match[1]} is not installed")
            continue
        count += 1
        if installed.split("+")[0] != match[2]:  # torch's builds carry a local part: 2.13.0+cpu
            wrong.append(f"{match[1]} is {installed} instead of {match[2]}")
    found = f"{count} as in {lock.name}" if not wrong else "; ".join(wrong[:5])
    remedy = "Run `make setup` (remove .venv/.ready first if it finds nothing to do)."
    return Check("packages", not wrong, found, remedy)


def _java() -> Check:
    try:
        found = java.find_java()
    except java.JavaError as error:
        return Check("java", False, str(error).splitlines()[0], java.REMEDY)
    return Check("java", True, f"{found.version} at {found.home}")


def _jars() -> Check:
    fault = jars.describe_missing()
    return Check("jars", fault is None, fault or f"all groups in {jars.LIST}", "Run `make setup`.")


def _memory() -> Check:
    total = min(psutil.virtual_memory().total, _container_limit()) / _GIB
    remedy = f"At least {_MEMORY_GIB:.1f} GiB are needed. Fewer executors (the contract's maximum) need less."
    return Check("memory", total >= _MEMORY_GIB, f"{total:.1f} GiB", remedy)


def _container_limit() -> float:
    """Bytes; `max` reads as infinite."""
    try:
        return float(Path("/sys/fs/cgroup/memory.max").read_text().replace("max", "inf"))
    except OSError:
        return math.inf


def _disk(var: Path) -> Check:
    place = _first_that_is(var)
    free = shutil.disk_usage(place).free / _GIB
    return Check(
        "disk", free >= _DISK_GIB, f"{free:.1f} GiB free at {place}", f"Free {_DISK_GIB:.0f} GiB, or set TIDECAST_VAR."
    )


def _var(var: Path, broker: bool = True) -> Check:
    if broker and (fault := usable_paths.var_fault(var)):
        return Check("var", False, fault)
    place, remedy = _first_that_is(var), "Set TIDECAST_VAR to a folder that can be written."
    try:
        tempfile.TemporaryFile(dir=place).close()
    except OSError as error:
        return Check("var", False, f"{var}: {place} cannot be written: {error.strerror}", remedy)
    return Check("var", True, str(var))


def _first_that_is(var: Path) -> Path:
    return next(place for place in (var, *var.parents) if place.exists())


def _cores() -> Check:
    count = usable_cores()
    names = "TIDECAST_REPLAY__PEAK_RPS and TIDECAST_REPLAY__SPEED"
    remedy = f"With fewer than {_CORES} a live load outruns the services; lower {names}."
    return Check("cores", count >= _CORES, str(count), remedy)


def _ports(settings: Settings) -> Check:
    if state.running(settings.var_dir) is not None:
        return Check("ports", True, "in use by the running stack")
    named = [name for name in Ports.model_fields if getattr(settings.ports, name)]
    try:
        ports.choose_ports(settings.ports, named)
    except ports.PortError as error:
        return Check("ports", False, str(error), "Choose another port, or 0 for any free one.")
    return Check("ports", True, f"free: {', '.join(named)}" if named else "free ones will be chosen")


def _services(settings: Settings) -> Check:
    own = addresses.configured_addresses(settings)
    try:
        addresses.check_reachable(settings, own)
    except StackError as error:
        return Check("services", False, str(error))  # which says what helps
    yours = without_logins(", ".join(dict.fromkeys(own.values())))
    return Check("services", True, f"yours: {yours}" if own else "embedded, started when needed")
