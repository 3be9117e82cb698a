"""What goes on beside the autoscaler's query: contracts, pools, and what was learned."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from configs.policies import BY_PEAKS, LEARNED
from configs.settings import Settings
from models.policy.catalogue import entry
from pipelines.kafka.signing import Signer, unread_on_executors
from pipelines.scale.artifact_sync import ArtifactSource, ArtifactSync, SyncedArtifacts
from pipelines.scale.contracts import AcceptedContracts, accepted_file, make_contract_watch
from pipelines.scale.learned import Learned, agent_source, rehearsal_source
from pipelines.scale.pool.division import PoolDivision
from pipelines.scale.pool.grants import Grants, grants_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 1.0
"""Seconds between two reads of the contracts' folder."""
UNSIGNED = (
    "executors cannot read the file of signing keys, so that agents would refuse what they decide. It has to be "
    "there by the same path, readable by the user as whom executors run (docs/deploy.md)."
)
END_S = 5.0
"""Seconds that a look or a division which has begun may take to its end."""


class BesideQuery(NamedTuple):
    """What goes on until the end.

    Attributes:
        learned: where the workers find synced agents and calibrators.
        writers: threads that write contracts and grants.
    """

    learned: Learned
    writers: list[threading.Thread]

    def end(self) -> None:
        """Wait, up to END_S (5 s) each, until contracts and grants are written no more; `stop` is set."""
        for writer in self.writers:
            writer.join(END_S)


def begin(settings: Settings, checkpoint: Path, stop: threading.Event) -> BesideQuery:
    """Accept contracts, divide pools and bring what was learned to the workers, now and until `stop` is set.

    The contracts' folder is read every LOOK_S (1 s), the registry every `autoscaler.alias_poll_s` s.

    Raises:
        OSError: the file of accepted contracts cannot be written.
    """
    accepted = AcceptedContracts(accepted_file(checkpoint))
    watch = make_contract_watch(settings, accepted)
    report(watch.update())
    division = PoolDivision(settings, accepted.all, Grants(grants_file(checkpoint)))
    report(division.tick())  # before the first decision, so that no job has more than its pool gives it
    writers = [begin_to_repeat(tick, stop) for tick in (watch.update, division.tick)]
    learned = {}
    for name, source in _sources(settings).items():
        report([f"looking for every job's {source.what}; until one has come, decisions are made without it"])
        folder = checkpoint.with_name(f"{checkpoint.name}.{name}")
        begin_to_repeat(ArtifactSync(source, accepted.all, folder, settings.autoscaler.alias_poll_s).sync, stop)
        learned[name] = SyncedArtifacts(folder, source.read)
    return BesideQuery(Learned(**learned), writers)


def warm_up_registry(settings: Settings) -> None:
    """Ask the registry once, in threads that nobody waits for: its client takes seconds to import."""

    def ask(source: ArtifactSource) -> None:
        with suppress(Exception):  # it is asked again, and told, once it matters
            source.champions()

    for source in _sources(settings).values():
        threading.Thread(target=ask, args=(source,), daemon=True).start()


def _sources(settings: Settings) -> dict[str, ArtifactSource]:
    policy = settings.autoscaler.policy
    return {
        **({"agents": agent_source(settings)} if policy in LEARNED else {}),
        **({"rehearsals": rehearsal_source(settings)} if policy in BY_PEAKS or entry(policy).stricter else {}),
    }


class ExecutorsKeys:
    """Whether executors can read the file of signing keys, asked beside the query: they may come late, or never.

    Attributes:
        problem: where they cannot, with the remedy; empty where they can, and until it is known.
    """

    def __init__(self) -> None:
        """Nothing is asked yet."""
        self.problem = ""

    def ask(self, spark: SparkSession, signer: Signer, executors: int, stop: threading.Event) -> None:
        """Begin to ask, in a thread that nobody waits for, which sets `stop` where one cannot; needs a file."""
        threading.Thread(target=self._ask, args=(spark, signer, executors, stop), daemon=True).start()

    def _ask(self, spark: SparkSession, signer: Signer, executors: int, stop: threading.Event) -> None:
        try:
            unread = unread_on_executors(spark, signer, executors)
        except Exception as error:  # of the query, too, if it is not that this one ends
            if not stop.is_set():
                report([f"whether executors can read the signing keys is not known: {type(error).__name__}: {error}"])
            return
        if unread:
            self.problem = f"{UNSIGNED} {' '.join(unread)}"
            stop.set()


def begin_to_repeat(tick: Callable[[], list[str]], stop: threading.Event) -> threading.Thread:
    """Begin a thread that calls `tick` every LOOK_S (1 s) until `stop` is set, and prints what it returns or raises."""
    thread = threading.Thread(target=_repeat, args=(tick, stop), daemon=True)
    thread.start()
    return thread


def _repeat(tick: Callable[[], list[str]], stop: threading.Event) -> None:
    """Tick until the end; what goes wrong in one tick is reported and does not end the next."""
    before = ""
    while not stop.wait(LOOK_S):
        try:
            report(tick())
            before = ""
        except Exception as error:
            if (problem := f"{type(error).__name__}: {error}") != before:
                report([problem])
            before = problem


def report(lines: list[str]) -> None:
    """Print lines, each as one of the autoscaler."""
    for line in lines:  # which may repeat the name of a file that is no text
        print(f"autoscaler: {line}".encode(errors="backslashreplace").decode(), flush=True)
