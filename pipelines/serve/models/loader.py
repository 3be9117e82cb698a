"""The thread that looks for new champions and makes them ready, so that the serving thread only has to swap."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from models.forecast.core.forecaster import Forecaster
from pipelines.registry import Champion, RegistryError
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import ReadyModel, prepare_model
from pipelines.serve.step.windows import Windows
from pipelines.store import Corrupt, StoreError

log = logging.getLogger(__name__)
CLOSE_S, OPEN_S = 2.0, 30.0
"""Seconds for which `close` waits for a look-up, which may hang, and for the registry's packages to be imported: a
process that ends in the middle of that may be aborted."""
AGAIN_S = 30.0
"""Wall seconds after which a champion that could not be fetched or made ready is tried again."""
PASSING = (RegistryError, StoreError, OSError, MemoryError)
"""What may pass: a registry that was away, a disk or memory that was full; `ModelSetError` may stand for the last."""


class ChampionSource(Protocol):
    """A source of champions (models to serve): `pipelines.registry.Registry`, or a test's stand-in."""

    def champions(self) -> Mapping[str, Champion]:
        """Return the champion by job, for every job that has one, in one look-up.

        Raises:
            RegistryError: the registry does not answer.
        """

    def model_name(self, job: str) -> str:
        """Return the name under which the job's model is registered."""

    def fetch(self, job: str, version: str) -> tuple[Forecaster, bytes | None]:
        """Return a version's forecaster, and the torch.export archive of its network or None.

        Raises:
            RegistryError: the version cannot be read from the registry.
        """


class Loader:
    """Thread that looks for new champions, checks and warms them; what is ready waits in `ready` to be swapped in.

    A version that cannot serve is printed and not tried again; one that cannot be fetched, or for which disk, memory or
    store had no room, is tried again after `AGAIN_S`, and printed where it fails for another reason than before. One
    that holds what serves already changes nothing.
    """

    def __init__(
        self, windows: Windows, champions: Callable[[], ChampionSource], jobs: Collection[str], every_s: float,
        wake: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """Make a loader; `start` starts it.

        Args:
            windows: on which a model is warmed.
            champions: opens the registry, in the loader's thread: that takes seconds.
            jobs: those that have windows or may get some, asked for with every look.
            every_s: between two looks, wall seconds.
            wake: called from this thread when something is ready.
        """
        self._windows, self._open, self._jobs = windows, champions, jobs
        self._every_s, self._wake = every_s, wake
        self.ready: deque[ReadyModel] = deque()
        self.serving: dict[str, tuple[str, tuple[str, str, str]]] = {}
        """Version and digests of what is in service by job, or is ready to be."""
        self.damage: Corrupt | None = None
        """What a job's windows could not be read for, which no other look cures."""
        self._refused: dict[str, Champion] = {}
        self._offered: dict[str, Champion] = {}
        self._later: dict[str, tuple[Champion, float, str]] = {}
        """Champion that could not be fetched by job, when it is tried again, and what was printed of it."""
        self._stop, self._opened = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="loader", daemon=True)

    def start(self) -> None:
        """Start the thread, which looks at once and then every `every_s` seconds.

        Raises:
            RuntimeError: it was started before.
        """
        self._thread.start()

    def close(self) -> None:
        """Tell the thread to end and wait up to 2 s for it; a look-up that takes longer is left behind.

        Up to 30 s more while it still opens the registry.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._opened.wait(OPEN_S)
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        source: ChampionSource | None = None
        reported = ""
        while not self._stop.is_set():
            try:
                source = source or self._open_champions()
                champions = source.champions()
                for job in sorted(self._jobs):
                    if job in champions and not self._stop.is_set():
                        self._look(source, job, champions[job])
                reported = ""
            except (RegistryError, StoreError) as error:
                if str(error) != reported:  # once, not every two seconds
                    print(f"serving: {error}", flush=True)
                    reported = str(error)
            except Exception:  # the champions in service go on, and the next look may succeed
                log.exception("serving: looking for champions failed")
            self._stop.wait(self._every_s)

    def _open_champions(self) -> ChampionSource:
        try:
            return self._open()
        finally:
            self._opened.set()

    def _look(self, source: ChampionSource, job: str, champion: Champion) -> None:
        if champion in (self._refused.get(job), self._offered.get(job)):
            return
        failed, again, reported = self._later.get(job, (None, 0.0, ""))
        if champion == failed and time.monotonic() < again:
            return
        version = champion.version
        try:
            model_set = pack_model(*source.fetch(job, version))
            if (version, model_set.digests) == self.serving.get(job):
                self._offered[job] = champion
                return
            ready = prepare_model(self._windows, job, source.model_name(job), version, model_set)
        except Corrupt as error:
            self.damage = error
            return
        except Exception as error:  # whatever an artifact may hold, the other jobs get their champions
            what = f"serving {job}: {error if isinstance(error, RegistryError) else repr(error)}"
            if isinstance(error, PASSING) or isinstance(error.__context__, MemoryError):
                self._later[job] = champion, time.monotonic() + AGAIN_S, what
                if what != reported:  # once, not every half minute for as long as nobody trains again
                    print(f"{what}; the present champion stays, trying again every {AGAIN_S:g} s", flush=True)
            else:
                self._refused[job] = champion
                print(f"{what}; the present champion stays", flush=True)
            return
        self._refused.pop(job, None)
        self._later.pop(job, None)
        self._offered[job], self.serving[job] = champion, (version, model_set.digests)
        self.ready.append(ready)
        self._wake()
