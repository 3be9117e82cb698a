"""The running stack of a `var` folder, written to `var/stack.json`: its processes and where its services are."""

from __future__ import annotations

import fcntl
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from configs.settings import Settings
from pipelines.stack.addresses import filled


@dataclass(frozen=True)
class StackState:
    """A stack as it was when it had started."""

    id: str
    started: float  # epoch seconds
    detached: bool  # left running by `up`; otherwise it ends with the process that started it
    processes: dict[str, tuple[int, float]]  # name: pid (also its session), creation time
    addresses: dict[str, str]
    environment: dict[str, str]  # what its children are told

    def living(self) -> list[str]:
        """Names of its processes that still run."""
        return [name for name, (pid, created) in self.processes.items() if _lives(pid, created)]


def path(var: Path) -> Path:
    """Where the state is written."""
    return var / "stack.json"


def read(var: Path) -> StackState | None:
    """The state, if a stack of this folder runs or has run; None if there is none or it cannot be read."""
    try:
        raw: dict[str, Any] = json.loads(path(var).read_text())
        return StackState(**{**raw, "processes": {name: (pid, at) for name, (pid, at) in raw["processes"].items()}})
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def running(var: Path) -> StackState | None:
    """The state of the stack that runs now, or None."""
    state = read(var)
    return state if state is not None and state.living() else None


def write(var: Path, state: StackState) -> None:
    """Write it whole or not at all."""
    new = path(var).with_suffix(".new")
    new.write_text(json.dumps(asdict(state), indent=1))
    new.replace(path(var))


def lock(var: Path) -> IO[str] | None:
    """Reserve the folder for one stack for as long as the file stays open; None if another process has it."""
    var.mkdir(parents=True, exist_ok=True)
    file = (var / "stack.lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def addressed(settings: Settings) -> Settings:
    """Fill in the addresses of the running stack where the settings name none of their own."""
    state = running(settings.var_dir)
    return settings if state is None else filled(settings, state.environment)


def _lives(pid: int, created: float) -> bool:
    try:
        process = psutil.Process(pid)
        return bool(abs(process.create_time() - created) < 1 and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
