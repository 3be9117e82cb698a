"""The embedded stack: its parts started together, checked, written down, and ended as a whole."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from pathlib import Path

import yaml

from configs.errors import without_logins
from configs.settings import ROOT, Settings
from pipelines.spark import java, usable_paths
from pipelines.stack import addresses, ports, private, processes, state
from pipelines.stack.context import AbandonedError, Probe, StackContext, StackRunsError
from pipelines.stack.keeper import Keeper
from pipelines.stack.parts import PARTS, child_environment
from pipelines.stack.processes import GRACE_S, Process

TRANSIENT = frozenset({"broker", "spark", "airflow"})  # what they hold belongs to one run; tables and models outlive it


class Stack:
    """The embedded services of one `var` folder; a part whose address is in the settings is used there, not started.

    As a context manager it starts on entry and stops everything on exit.

    ```python
    with Stack(settings, {"broker", "spark"}) as stack:
        stack.spawn("job", [sys.executable, "-m", "pipelines.jobs.word_count", "--run-dir", "..."])
    ```

    Attributes:
        id: value of the environment variable that marks every process of the stack.
        settings: the given ones with every address filled in.
        addresses: where a person finds each service (URL, `host:port` or path), by part.
    """

    def __init__(
        self,
        settings: Settings,
        parts: Collection[str] = ("broker", "spark", "airflow", "mlflow"),
        fresh: Collection[str] = TRANSIENT,
        dags: Path = ROOT / "dags",
        given: Mapping[str, str] | None = None,
    ) -> None:
        """Lock the `var` folder, choose ports and addresses, and write `var/settings.yaml`; no service is started yet.

        Only the keeper is: a small process that ends the services if this process dies.

        Args:
            settings: addresses, ports, sizes.
            parts: which of `PARTS` are needed.
            fresh: parts that start empty; the others keep what an earlier stack left under `var`.
            dags: Airflow's DAG folder.
            given: variables of every process that overrule those which a part sets itself, as Airflow's database.

        Raises:
            ValueError: an unknown part.
            StackRunsError: a stack runs on the folder already.
            StackError: a service named in the settings accepts no connection.
            SettingsError: Spark or Kafka cannot be told of the checkout's folder, or of `var`.
            JavaError: no usable Java.
            PortError: a port named in the settings is not free.
            RuntimeError: PySpark is not installed.
            OSError: `var` cannot be written.
        """
        if unknown := set(parts) - PARTS.keys():
            raise ValueError(f"parts={sorted(unknown)}: unknown. They are {', '.join(sorted(PARTS))}.")
        self.id = uuid.uuid4().hex
        own = addresses.configured_addresses(settings)
        self._embedded = [part for part in PARTS if part in parts and part not in own]
        usable_paths.refuse_unusable(settings.var_dir, "broker" in self._embedded)
        var = settings.var_dir
        self._lock = state.lock(var)
        try:
            if self._lock is None or state.running(var) is not None:
                raise StackRunsError(var, state.holder(var) if self._lock is None else None)
            found = java.find_java()
            chosen = ports.choose_ports(settings.ports, [name for p in self._embedded for name in PARTS[p].ports])
            addresses.check_reachable(settings, parts)
            (var / "log").mkdir(parents=True, exist_ok=True)
            self._context = context = StackContext(
                id=self.id, settings=settings, java=found, ports=chosen, fresh=frozenset(fresh), dags=dags,
                given=given or {}, secret=secrets.token_hex(64), keeper=Keeper(self.id, var / "log" / "keeper.log"),
            )  # fmt: skip
            named = {addresses.environment_variable(p): context.fill(PARTS[p].address) for p in self._embedded}
            context.environment |= child_environment(context) | named
            self.settings = addresses.with_addresses(settings, context.environment)
            file = Path(context.environment["TIDECAST_FILE"])  # options of a command included, for every child to read
            private.write_private(file, yaml.safe_dump(self.settings.model_dump(mode="json"), sort_keys=False))
            self.addresses = {part: context.fill(PARTS[part].page) for part in self._embedded}
            self.addresses |= {part: without_logins(own[part]) for part in parts if part in own}
        except BaseException:
            self._unlock()
            raise
        self._guests: list[str] = []

    def __enter__(self) -> Stack:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def processes(self) -> Mapping[str, Process]:
        """Every process by name, ended ones included (but not commands that a part's start ran to their end)."""
        return self._context.processes

    def start(self, on_ready: Callable[[str, float], None] = lambda part, seconds: None) -> None:
        """Start all parts at once, wait until each is healthy, and write `var/stack.json`; after a failure call `stop`.

        Args:
            on_ready: called with each part that is up and the seconds since this began, in threads of its own; what it
                raises counts as a failure of the part.

        Raises:
            StackError: a part failed or was not ready in time (120 s, Airflow 300 s a process); the message names it
                and shows its last log lines. The other parts are given up.
            ProcessError, JarsError, PackageNotFoundError: a program, jars or a package are missing, or the keeper is
                gone.
            AbandonedError: `stop` was called before.
            OSError: `var` cannot be written.
        """
        begin = time.monotonic()

        def run(part: str) -> None:
            PARTS[part].start(self._context)
            on_ready(part, time.monotonic() - begin)

        # The UI brings its store along.
        parts = [part for part in self._embedded if part != "mlflow" or "mlflow_ui" not in self._embedded]
        with ThreadPoolExecutor(max_workers=len(PARTS)) as pool:
            futures = [pool.submit(run, part) for part in parts]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:  # also when this thread was interrupted
                if not all(future.done() and future.exception() is None for future in futures):
                    self._context.abandoned.set()
        _raise_cause(futures)
        self._write()

    def spawn(
        self, name: str, argv: list[str], env: Mapping[str, str] | None = None, probe: Probe | None = None
    ) -> Process:
        """Start a further process that ends with the stack, without waiting for it; adds it to `var/stack.json`.

        Args:
            name: key in `processes`; the log is `var/log/NAME.log`.
            argv: the program and its arguments.
            env: variables beyond this process's and the stack's (addresses, Java, Spark).
            probe: returns whether it is ready; only `respawn` waits for that.

        Raises:
            AbandonedError: the stack was stopped, or its start failed.
            ProcessError: the program cannot be executed, or the keeper (ends the stack if this process dies) is gone.
            OSError: the log or `var/stack.json` cannot be written.
        """
        process = self._context.spawn(name, argv, env, probe)
        if name not in self._guests:
            self._guests.append(name)
        self._write()
        return process

    def respawn(self, name: str, timeout_s: float = 120) -> Process:
        """Start an ended process again with the same arguments and wait until its probe, if any, returns True.

        Raises:
            KeyError: nothing was ever started under the name.
            StackError: it ended, or was not ready within `timeout_s`; the message shows its last 15 log lines.
            AbandonedError, ProcessError, OSError: the stack was stopped, its keeper is gone, or a file is not writable.
        """
        process = self._context.respawn(name)
        self._context.await_ready(name, timeout_s)
        self._write()
        return process

    def end(self, name: str, grace_s: float = GRACE_S) -> int:
        """Terminate one process, kill what is left of its session after `grace_s` seconds, and return its exit status.

        The status is negative for the signal that ended it. The process stays in `processes`, for `respawn`.

        Raises:
            KeyError: nothing was started under the name.
            subprocess.TimeoutExpired: it still runs 10 s after SIGKILL.
        """
        process = self.processes[name]
        code = process.stop(grace_s)
        self._context.keeper.forget(process.pid)
        return code

    def detach(self) -> None:
        """Leave everything running when this process ends; `down` ends it.

        Rewrites `var/stack.json`, ends the keeper and gives up the folder's lock.
        """
        self._write(detached=True)
        self._context.keeper.release()
        self._unlock()

    def stop(self) -> None:
        """End everything: first what `spawn` started, the newest first, then the services, then whatever is left.

        Each gets SIGTERM, and SIGKILL `GRACE_S` (8) seconds later. Deletes `var/stack.json`, unless a child of these
        processes survives, and gives up the folder's lock; may be called again.

        Raises:
            subprocess.TimeoutExpired: a process still runs 10 s after SIGKILL, or the keeper 30 s after its end was
                asked for.
            OSError: `var/stack.json` cannot be deleted.
        """
        self._context.abandoned.set()
        for name in reversed(self._guests):
            self.end(name)
        survivors = processes.end_processes(
            lambda: processes.find_processes(pid for p in self.processes.values() for pid in p.session()),
            leaders=[p.pid for p in self.processes.values() if p.running()],
        )
        for process in self.processes.values():
            process.wait(10)
            self._context.keeper.forget(process.pid)
        self._context.keeper.end()
        if not survivors:
            state.path(self.settings.var_dir).unlink(missing_ok=True)
        self._unlock()

    def _write(self, detached: bool = False) -> None:
        known = {name: (p.pid, p.created) for name, p in self.processes.items()}
        now = state.StackState(self.id, time.time(), detached, known, self.addresses, self._context.environment)
        state.write(self.settings.var_dir, now)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()


def _raise_cause(futures: Collection[Future[None]]) -> None:
    errors = [error for future in futures if (error := future.exception()) is not None]
    if errors:  # some were given up because of another
        raise min(errors, key=lambda error: isinstance(error, AbandonedError))
