"""What is looked at now and then beside the topics: broker, lake and the drifts that the ingest has reported."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from configs.bounds import DAY_S
from configs.settings import Settings
from models.alerts.knowledge import DriftSeen, Ingested, LakeSeen
from pipelines.airflow.drifts import newest_drifts, reported_at
from pipelines.airflow.names import INGEST_DAG
from pipelines.airflow.rest import Orchestrator
from pipelines.ingest.columns import KINDS
from pipelines.kafka.broker import topic_offsets
from pipelines.kafka.connection import TopicError
from pipelines.lake import tables
from pipelines.lake.folder import Folder, lake_folder
from pipelines.lake.size import day_growth, table_size

ROUND_S = 15.0
"""Seconds between two rounds; one takes as long as the broker, the disk and Airflow need to answer."""
AIRFLOW_EVERY = 4
"""Rounds from one question to Airflow to the next."""
Offsets = Mapping[int, tuple[int, int]]


class Rounds:
    """A thread that looks every `ROUND_S` seconds; what it found stays until the next look.

    Attributes:
        broker_up: whether the broker answered; None before the first look.
        ingests: newest ingest by topic.
        lake: its size; None where there is none, or on HDFS.
        drifts: newest reported drift by job.
    """

    def __init__(self, settings: Settings, report: Callable[[str, str], None]) -> None:
        """Prepare to look; `report` is told what could not be looked at, as a subject and what is wrong with it."""
        self._settings, self._report = settings, report
        self.broker_up: bool | None = None
        self.ingests: Mapping[str, Ingested] = {}
        self.lake: LakeSeen | None = None
        self.drifts: Mapping[str, DriftSeen] = {}
        self._airflow = Orchestrator(settings) if settings.airflow.url else None
        self._origins: dict[str, tuple[int | None, tables.Origin | None]] = {}

    def run(self, stop: threading.Event) -> None:
        """Look again and again until `stop` is set; nothing that goes wrong in a look ends it."""
        for count in range(2**62):
            ends = self._ask_broker()
            self._look("lake", partial(self._look_at_lake, ends))
            if self._airflow is not None and count % AIRFLOW_EVERY == 0:
                self._look("airflow", self._ask_airflow)
            if stop.wait(ROUND_S):
                return

    def _look(self, what: str, look: Callable[[], str]) -> None:
        try:
            wrong = look()
        except Exception as error:  # whatever it is, the other looks go on
            wrong = f"{error!r}"
        self._report(what, f"cannot be looked at: {wrong}" if wrong else "")

    def _ask_broker(self) -> Mapping[str, Offsets]:
        found: dict[str, Offsets] = {}
        wrong: list[str] = []
        try:
            for topic in KINDS:
                try:
                    found[topic] = topic_offsets(self._settings.kafka, topic)
                except TopicError as error:
                    wrong.append(f"{error}")
        except Exception as error:  # BrokerError, and whatever the client raises
            self._report("broker", f"{error}")
            self.broker_up = False
        else:
            self._report("broker", "")
            self._report("ingest", f"what waits for it is not known of every topic: {wrong[0]}" if wrong else "")
            self.broker_up = True
        return found

    def _look_at_lake(self, offsets: Mapping[str, Offsets]) -> str:
        """Returns which tables cannot be looked at, or are gone; of their ingests what was known stays."""
        root, wrong = lake_folder(self._settings), dict[str, str]()
        names = tables.tables(root)
        if names and isinstance(root, Path):  # HDFS has its own metrics
            self.lake = _size(root, names, wrong)
        for topic in (topic for topic in KINDS if topic in names):
            with _others_go_on(topic, wrong):
                self._note_newest_origin(root, topic)
        known = {topic: origin for topic, (_, origin) in self._origins.items() if origin is not None}
        self.ingests = {topic: _ingested(origin, offsets.get(topic)) for topic, origin in known.items()}
        said = [f"table {table}: {error}" for table, error in wrong.items()]
        if gone := {*self._origins, *(self.lake.size_bytes if self.lake else ())} - {*names}:
            said.append(
                f"{root} has no {', '.join(sorted(gone))} any more, and what was known stands. Is its disk mounted, "
                "and may this user read it? If the lake was moved, name its folder in lake.address and start anew."
            )
        return "; ".join(said)

    def _note_newest_origin(self, root: Folder, topic: str) -> None:
        """Note where a table's newest rows came from; its log is read once per version."""
        version = tables.newest_version(root, topic)
        if topic not in self._origins or self._origins[topic][0] != version:
            self._origins[topic] = version, _newest_run(tables.commit_origins(root, topic))

    def _ask_airflow(self) -> str:
        assert self._airflow is not None
        events, since = list[dict[str, Any]](), time.time() - DAY_S  # for so long an alert holds
        while page := self._airflow.asset_events(INGEST_DAG, len(events)):
            events += page
            if (reported_at(page[-1]) or since) < since:  # behind one without a moment the next page tells
                break
        self.drifts = {**self.drifts, **newest_drifts(events)}
        return ""


@contextmanager
def _others_go_on(table: str, wrong: dict[str, str]) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        wrong[table] = f"{error!r}"


def _newest_run(origins: Sequence[tables.Origin]) -> tables.Origin | None:
    """Of origins, newest commit first, that of the newest run: one that repeats an older partition takes older offsets.

    Not by what their clocks said: one that was ahead for a day would be the newest until then.
    """
    of_topic = [one for one in origins if one.topic_id == origins[0].topic_id]
    return max(of_topic, key=lambda one: sum(one.end.values()), default=None)


def _size(root: Path, names: Collection[str], wrong: dict[str, str]) -> LakeSeen:
    sizes, growth, now = dict[str, tuple[int, int]](), 0, time.time()
    for table in names:
        with _others_go_on(table, wrong):
            sizes[table] = table_size(root, table)
            growth += day_growth(root, table, now)
    return LakeSeen(
        {table: size for table, (size, _) in sizes.items()}, {table: files for table, (_, files) in sizes.items()},
        growth, shutil.disk_usage(root).free,
    )  # fmt: skip


def _ingested(origin: tables.Origin, offsets: Offsets | None) -> Ingested:
    waiting = None
    if offsets is not None:
        waiting = sum(_waiting(first, end, origin.end.get(p, first)) for p, (first, end) in offsets.items())
    return Ingested(origin.judged_at, origin.stored, origin.quarantined, waiting)


def _waiting(first: int, end: int, taken: int) -> int:
    """Records from `first` to `end` that were not taken; where more was than there is, the topic is another one."""
    return end - first if taken > end else end - max(taken, first)
