"""The running stack of a `var` folder, written to `var/stack.json`: its processes and where its services are."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from configs.settings import Settings
from pipelines.stack import processes
from pipelines.stack.addresses import with_addresses
from pipelines.stack.began import began_s, boot_id
from pipelines.stack.context import StackError
from pipelines.stack.private import write_private


@dataclass(frozen=True)
class StackState:
    """A stack as `var/stack.json` describes it.

    Attributes:
        id: value of the environment variable that marks its processes.
        started: epoch seconds at which this was written.
        detached: left running by `up`; otherwise it ends with the process that started it.
        processes: pid (also session id) and when it began (`began_s`), by name.
        addresses: where a person finds each service, by part.
        environment: variables that its children are given.
        boot: of the computer, since which the processes began; "": they began so many seconds since 1970, as where an
            earlier release wrote it.
    """

    id: str
    started: float
    detached: bool
    processes: dict[str, tuple[int, float]]
    addresses: dict[str, str]
    environment: dict[str, str]
    boot: str = field(default_factory=boot_id)

    def living(self) -> list[str]:
        """List the names of its processes that still run: same boot, same pid, begun within 1 s of it, no zombie."""
        return [name for name, (pid, created) in self.processes.items() if _lives(pid, created, self.boot)]

    def sessions(self) -> dict[str, int]:
        """Return the sessions that are its own, by name: of those that still run, and of those that have ended.

        The latter's may have members whose environment shows no marker. Their number is nobody else's: the system gives
        none again that is a session's, and without the boot's id nothing is known of it.
        """
        living, known = self.living(), self.boot != "" and self.boot == boot_id()
        return {
            name: pid for name, (pid, _) in self.processes.items()
            if name in living or (known and not psutil.pid_exists(pid))
        }  # fmt: skip


def path(var: Path) -> Path:
    """Return the path of the file in which a `var` folder's stack is described."""
    return var / "stack.json"


def read(var: Path) -> StackState | None:
    """Read `stack.json` of a `var` folder; it may describe a stack that has died since.

    Returns None where there is no such file, or one that is no JSON or not of the expected form.

    Raises:
        OSError: the file is there and cannot be read.
    """
    try:
        raw: dict[str, Any] = json.loads(path(var).read_text())
        known = {name: (pid, at) for name, (pid, at) in raw["processes"].items()}
        return StackState(**{"boot": "", **raw, "processes": known})
    except (FileNotFoundError, AttributeError, ValueError, TypeError, KeyError):
        return None


def running(var: Path) -> StackState | None:
    """Read the state of a `var` folder's stack if at least one of its processes still runs; None otherwise.

    Raises:
        OSError: `stack.json` is there and cannot be read.
    """
    state = read(var)
    return state if state is not None and state.living() else None


def write(var: Path, state: StackState) -> None:
    """Replace `stack.json` of a `var` folder atomically; its owner alone may read it.

    Raises:
        OSError: it cannot be written, or there is no such folder.
    """
    write_private(path(var), json.dumps(asdict(state), indent=1))


def lock(var: Path) -> IO[str] | None:
    """Reserve a `var` folder, created if need be, for one stack, without waiting.

    Returns:
        The open file `stack.lock`; closing it, or the end of this process, frees the folder. None if another stack has
        it.

    Raises:
        OSError: the folder or the file cannot be created, or the file system knows no locks.
    """
    var.mkdir(parents=True, exist_ok=True)
    file = (var / "stack.lock").open("a+")  # not "w": whoever asks in vain leaves in it who has it
    if not _take(file, fcntl.LOCK_EX):
        file.close()
        return None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def is_reserved(var: Path) -> bool:
    """Return whether a process has reserved a `var` folder now (`lock`)."""
    try:
        with (var / "stack.lock").open() as file:
            return not _take(file, fcntl.LOCK_SH)
    except OSError:  # there is none
        return False


def holder(var: Path) -> int | None:
    """Return the process that reserved a `var` folder last (`lock`), which may have ended; None: that is not known."""
    try:
        return int((var / "stack.lock").read_text())
    except (OSError, ValueError):
        return None


def end_recorded_stack(var: Path) -> list[str]:
    """End the stack of a `var` folder, whichever process started it, and delete `var/stack.json`.

    Its processes get SIGTERM, and SIGKILL after `GRACE_S` (8) seconds; blocks for 13 s at most.

    Returns:
        Names of the processes that ran, or of whose sessions something did; empty where none did.

    Raises:
        StackError: some are still alive after SIGKILL; `stack.json` stays.
        OSError: `stack.json` cannot be read or deleted; as PermissionError, the stack belongs to another user.
    """
    known = read(var)
    if known is None:
        return []
    sessions = known.sessions()
    ran = [name for name, session in sessions.items() if processes.find_processes([session])]
    pids = list(sessions.values())
    if survivors := processes.end_processes(lambda: processes.find_processes(pids, known.id), leaders=pids):
        named = ", ".join(processes.describe(survivors))
        raise StackError(
            f"still alive after SIGKILL: {named}. They wait for a disk or a network share: once it answers again, try "
            "`make down` again."
        )
    path(var).unlink(missing_ok=True)
    return ran


def with_stack_addresses(settings: Settings) -> Settings:
    """Copy the settings with the addresses of the stack that runs on their `var`, where they name none of their own.

    Returns:
        The settings as given if no stack runs.
    """
    state = running(settings.var_dir)
    return settings if state is None else with_addresses(settings, state.environment)


def _take(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        file.close()
        raise OSError(error.errno, error.strerror, file.name) from None
    return True


def _lives(pid: int, created: float, boot: str) -> bool:
    try:
        process = psutil.Process(pid)
        began = began_s(pid) if boot else process.create_time()
        same = boot in ("", boot_id()) and abs(began - created) < 1
        return bool(same and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
