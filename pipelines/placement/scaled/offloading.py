"""Moves a query to another cluster when its own is too small for what the autoscaler decides, and back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress

from configs.settings import Settings
from models.placement.elastic.offload import STAY_S, Offload, decide_offload, offload_choice
from models.placement.plan.applications import BlockApplication, applications_of
from models.placement.plan.measured import Placement
from models.placement.plan.moved import place_block
from models.placement.plan.shares import allowed_clusters, most_executors
from pipelines.kafka.broker import Follower
from pipelines.kafka.signing import Signer
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.reached import why_away
from pipelines.placement.watched_block import OffloadNote
from tidecast.messages import FUTURE_S, Control, Decision, Heartbeat, MessageError, decode

EVERY_S, SILENT_S, BACK_S = 10.0, 15.0, 600.0
"""Seconds between two looks at all queries, of which several have to agree; after which a decision that nothing
confirms is too old; and by which decisions before this process are looked at."""
REST = 10
"""Looks after one that has moved a query until the next: what the move did is seen before another is made."""


class Offloading:
    """Follows the decisions about a job's queries, and wants those elsewhere for which the rule says so."""

    def __init__(self, settings: Settings, folder: JobFolder, say: Callable[[str], None] = print) -> None:
        """Nothing is moved yet.

        Args:
            settings: with the broker.
            folder: of the job, which was begun.
            say: called with what a person is told.

        Raises:
            BrokerError: the broker does not answer, or has none of Tidecast's topics.
            SettingsError: the file of signing keys is wrong.
        """
        self._folder, self._topology, self._say = folder, folder.topology(), say
        self._signer = Signer.of(settings.kafka)
        self._signer.check_file()
        with ExitStack() as opened:
            topics = ["decisions", "heartbeats"]
            self._follower = opened.enter_context(closing(Follower(settings.kafka, topics, start="latest")))
            self._follower.seek_to_time(time.time() - BACK_S)
            self._modes = opened.enter_context(closing(Follower(settings.kafka, ["control"])))
            self._opened = opened.pop_all()
        self._modes_at: dict[str, float] = {}
        self._newest: dict[str, Decision] = {}
        self._mode: dict[str, str] = {}
        self._heard: dict[str, float] = {}
        self._agreed: dict[tuple[str, str], int] = {}
        self._why_away: dict[str, str] = {}
        self._told: set[str] = set()
        self._again_s = time.monotonic() + EVERY_S

    def step(self) -> None:
        """Read what was decided since the last call, and want at most one query elsewhere in REST times EVERY_S.

        Of several, one with state is moved, then one whose records take the most work.

        Raises:
            OSError: the job's folder cannot be written.
        """
        now_s = time.monotonic()
        for record in self._follower.poll(0.0):
            with suppress(MessageError):  # of another program, or another release
                kind: type[Decision | Heartbeat] = Decision if record.topic == "decisions" else Heartbeat
                said = decode(kind, record.value)
                if isinstance(said, Decision) or said.by == "autoscaler":
                    self._signer.check_record(record, said.job)
                if isinstance(said, Decision) and said.wall_time >= self._decided_at(said.job):  # not one sent again
                    self._newest[said.job] = said
                if isinstance(said, Decision) or said.by == "autoscaler":
                    self._heard[said.job] = now_s - max(time.time() - said.wall_time, 0.0)
        for record in self._modes.poll(0.0):
            with suppress(MessageError):
                word = decode(Control, record.value, time.time())  # of a clock that is ahead the agent refuses it, too
                self._signer.check_record(record, word.job)
                before = self._modes_at.get(word.job, 0.0)
                if word.mode is not None and word.wall_time >= before - FUTURE_S:  # as the agent takes it
                    self._mode[word.job], self._modes_at[word.job] = word.mode, max(before, word.wall_time)
        if now_s < self._again_s:
            return
        self._again_s, placement, self._why_away = now_s + EVERY_S, self._folder.wanted(), {}
        blocks = enumerate(applications_of(self._topology, placement))
        for number, block in sorted(blocks, key=lambda one: self._first_to_go(one[1])):
            if self._look_at(number, block, placement):
                self._again_s = now_s + REST * EVERY_S
                return

    def close(self) -> None:
        """Close the connections."""
        self._opened.close()

    def _first_to_go(self, block: BlockApplication) -> tuple[float, float]:
        held = [self._topology.operators[name] for name in block.operators]
        return -sum(one.state_mb for one in held), -sum(one.work_ms for one in held)

    def _decided_at(self, job: str) -> float:
        known = self._newest.get(job)
        if known is None or known.wall_time > time.time() + SILENT_S:  # later than that: clocks were set back since
            return -math.inf
        return known.wall_time

    def _look_at(self, number: int, block: BlockApplication, placement: Placement) -> bool:
        """Want a query elsewhere if the rule says so; return whether it did."""
        said = self._newest.get(block.name)
        silent = time.monotonic() - self._heard.get(block.name, -math.inf) > SILENT_S
        if said is None or said.mode != "act" or silent or not self._is_scaled(block.name):
            self._forget(block.name)
            return False
        note = self._note_of(block)
        away, left = note is not None and block.cluster == note.away, "" if note is None else note.away
        home, since_s = (note.home, note.since_s) if note is not None and away else (block.cluster, -math.inf)
        others = [left] if away else [
            one for one in allowed_clusters(self._topology, block.operators) if one not in (home, left)
        ]  # fmt: skip
        asked: list[tuple[float, str, Offload]] = []
        for other in self._alike(block, others):
            rooms = [self._room(placement, number, name) for name in (home, other)]
            choice = offload_choice(self._topology, rooms, home, other, said.executors, said.inputs)
            before = Offload(away, since_s, self._agreed.pop((block.name, other), 0))
            if choice is not None:
                after = decide_offload(time.time(), before, choice)
                self._agreed[block.name, other] = after.agreed
                if after.there != before.there:
                    asked.append((choice.there_s, other, after))
        for _, other, after in sorted(asked, key=lambda one: one[:2]):
            if self._answers(other if after.there else home):
                note = OffloadNote(home, other, after.since_s, not after.there)
                self._want(number, block, placement, note, after.there, said.executors)
                return True
        return False

    def _alike(self, block: BlockApplication, others: list[str]) -> list[str]:
        """Of clusters those whose executors are of the size of the query's contract, as its own cluster's are."""
        cores = {name: self._topology.clusters[name].executor_cores for name in (block.cluster, *others)}
        if unlike := [name for name in others if cores[name] != cores[block.cluster]]:
            self._say_once(
                f"{block.name}: is never off-loaded to {', '.join(unlike)}, whose executors have other cores "
                f"(executor_cores) than the {cores[block.cluster]} of its contract"
            )
        return [name for name in others if name not in unlike]

    def _answers(self, cluster: str) -> bool:
        """Whether a cluster takes a query; that one does not is told once, until it does again."""
        line = f"no query is off-loaded to {cluster}, or comes back to it, while it does not answer"
        if cluster not in self._why_away:  # it may take seconds, and the other queries are to be looked after
            self._why_away[cluster] = why_away(self._topology.clusters[cluster].master or "")
        if not self._why_away[cluster]:
            self._told.discard(line)
            return True
        self._say_once(line, f": {self._why_away[cluster]}")
        return False

    def _say_once(self, line: str, why: str = "") -> None:
        if line not in self._told:
            self._told.add(line)
            self._say(line + why)

    def _want(
        self, number: int, block: BlockApplication, placement: Placement, note: OffloadNote, there: bool, needed: int
    ) -> None:  # fmt: skip
        cluster = note.away if there else note.home
        executors = max(min(needed, self._room(placement, number, cluster)), 1)
        self._folder.note_offloaded(block.name, note)
        self._folder.change(lambda now: place_block(self._topology, now, block.operators, cluster, executors))
        self._forget(block.name)
        why = f"{note.home} has no room for what it needs" if there else f"{note.home} has room for it again"
        self._say(f"{block.name}: wanted on {cluster}, as {why}")

    def _note_of(self, block: BlockApplication) -> OffloadNote | None:
        """What is noted of a query; of one that is elsewhere for a while, nothing.

        It did not work there, or a person, or a plan, has moved it: it does not go there again soon.
        """
        note, now_s = self._folder.offloaded().get(block.name), time.time()
        if note is None:
            return None
        if (left := block.cluster != note.away) != note.left:
            note = note._replace(since_s=now_s, left=left)
            self._folder.note_offloaded(block.name, note)
        if left and not 0 <= now_s - note.since_s <= STAY_S / 2:  # below 0 where the clock was set back
            self._folder.note_offloaded(block.name, None)
            return None
        return note

    def _room(self, placement: Placement, number: int, cluster: str) -> int:
        names = [one.name for one in applications_of(self._topology, placement)]

        def kept(at: int) -> int:
            if not self._is_scaled(names[at]):
                return placement.blocks[at].executors
            said = self._newest.get(names[at])
            return 1 if said is None else max(said.executors, 1)

        return most_executors(self._topology, placement, number, cluster, kept)

    def _is_scaled(self, query: str) -> bool:
        """Whether its agent applies decisions: it was started with a contract, and nobody has told it otherwise."""
        epoch = self._folder.newest(query)
        return epoch is not None and epoch.is_scaled() and self._mode.get(query, "act") == "act"

    def _forget(self, name: str) -> None:
        """No agreement lasts beyond a look at which nothing was known, or a move."""
        for known in [one for one in self._agreed if one[0] == name]:
            del self._agreed[known]
