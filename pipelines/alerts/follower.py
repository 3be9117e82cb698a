"""The follower's process: puts together what its threads know, exposes it, and lets webhooks be told."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
from collections.abc import Collection, Mapping
from functools import partial

from configs.contract import Contract
from configs.settings import Settings
from models.alerts.followed import Followed
from models.alerts.knowledge import Knowledge
from models.alerts.samples import samples_of
from models.alerts.standing import Key, holding
from models.alerts.table import SILENT, SILENT_S, UNSERVED, UNSERVED_S
from models.pool.state import PoolState
from pipelines.alerts.clock import SteadyClock
from pipelines.alerts.contracts import FolderOfContracts
from pipelines.alerts.exposition import Exposition, open_endpoint
from pipelines.alerts.kept import digest_of, read_told, write_told
from pipelines.alerts.rounds import Rounds
from pipelines.alerts.topics import FollowedTopics
from pipelines.alerts.webhook import Channel, Post, post
from pipelines.kafka.connection import bootstrap_address
from pipelines.signals import stop_on_signals

TICK_S, FIRST_S = 1.0, 60.0
"""Seconds between two looks at what is known, and after the start in which webhooks are told nothing."""
BEHIND_S = 120.0
"""Seconds without topics, though the broker answers, after which webhooks are told of lake and ingest all the same."""
CAUSES = 10
"""Of one trouble that are said at most: their texts are others' words."""
_FILE = "alerts.json"


class Reports:
    """Says on stderr what is wrong, each cause of a subject's trouble once, and once that it is over."""

    def __init__(self) -> None:
        self._said: dict[str, set[str]] = {}

    def __call__(self, about: str, what: str) -> None:
        """Say what is wrong with something; "" where nothing is any more. Numbers in it tell no causes apart."""
        said, cause = self._said.setdefault(about, set()), re.sub(r"\d+", "", what)
        news = cause not in said and len(said) < CAUSES if what else bool(said)
        if news:
            print(f"metrics: {about}: {what or 'well again'}", file=sys.stderr, flush=True)
            said.add(cause)
        if not what:
            said.clear()


class Alerting:
    """Webhooks of the contracts, a channel each; jobs that name the same one share it."""

    def __init__(self, settings: Settings, reports: Reports, now: float, send: Post = post) -> None:
        """Go on with what was told before; `now` is epoch seconds, by which times that were kept are judged."""
        self._file, self._reports, self._post = settings.var_dir / _FILE, reports, send
        self._told = read_told(self._file, now)
        self._channels: dict[str, Channel] = {}

    @property
    def failed(self) -> dict[str, int]:
        """Messages that were not taken, by host."""
        found: dict[str, int] = {}
        for channel in self._channels.values():
            found[channel.host] = found.get(channel.host, 0) + channel.failed
        return found

    def look(
        self, held: Mapping[Key, float], contracts: Mapping[str, Contract], pools: Mapping[str, PoolState], now: float,
        ahead_s: float = 0.0, topics_read: bool = True, unheard: Mapping[Key, float] | None = None,
    ) -> None:  # fmt: skip
        """Let every webhook be told of its jobs' and their pools' alerts, and of those of neither; never waits.

        `now` is of the clock that was given first, which nobody sets; wall time is `ahead_s` ahead of it. Before the
        topics have been read nothing is known of jobs and pools: what was told of them counts as standing. So does an
        alert that is `unheard`, as what it goes by lies further back than is read: with seconds after which it holds.
        """
        members = {name: {share.job for share in state.jobs} for name, state in pools.items()}
        jobs: dict[str, list[str]] = {}
        for job, contract in contracts.items():
            if contract.alerts is not None:
                jobs.setdefault(contract.alerts.webhook.get_secret_value(), []).append(job)
        self._channels = {webhook: self._channel(webhook) for webhook in jobs}
        for webhook, channel in self._channels.items():
            own = {key: value for key, value in held.items() if _concerns(key, {*jobs[webhook]}, members)}
            if not topics_read:
                own = {key: one.value for key, one in channel.state.items() if one.times and _of_topics(key)} | own
            for key, one in channel.state.items():
                after_s = (unheard or {}).get(key)
                if one.times and after_s is not None and _concerns(key, {*jobs[webhook]}, members):
                    own[key] = now - one.since + after_s
            repeat_s = min(alerts.repeat_s for job in jobs[webhook] if (alerts := contracts[job].alerts))
            if (said := channel.look(own, now, repeat_s, ahead_s)) is not None:
                # Two webhooks of a host differ in what is secret.
                self._reports(f"webhook {digest_of(webhook)[:4]} at {channel.host}", said)
                self._keep(ahead_s)

    def _channel(self, webhook: str) -> Channel:
        # What was told before this process counts once: a webhook that comes back later has had other messages since.
        known = self._channels.get(webhook)
        return known or Channel(webhook, self._told.pop(digest_of(webhook), {}), self._post)

    def _keep(self, ahead_s: float) -> None:
        kept = {
            digest_of(webhook): {key: alert.moved(ahead_s) for key, alert in one.state.items()}
            for webhook, one in self._channels.items()
        } | {
            # Of webhooks that no contract names now, as one that is edited or cannot be read.
            digest: {key: alert.moved(ahead_s) for key, alert in told.items()}
            for digest, told in self._told.items()
        }
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_told(self._file, kept)
        except OSError as error:
            self._reports("alerts", f"what was told cannot be kept: {error}")
        else:
            self._reports("alerts", "")


def unheard_of(jobs: Mapping[str, Followed], contracts: Collection[str], now: float) -> dict[Key, float]:
    """Return alerts of which it cannot be told whether they are over, with the seconds after which each holds.

    They are told by what was heard last, and that lies further back than is read at the start: metrics of a job, or
    serving where the job's metrics come.

    Args:
        jobs: what is known of them, by name.
        contracts: names of all that have one.
        now: wall time, epoch seconds.
    """
    found = {}
    for job in contracts:
        seen = jobs.get(job, Followed())
        if seen.sample is None:
            found[Key(SILENT, (("job", job),))] = SILENT_S
        elif seen.forecast is None and "serving" not in seen.heard and now - seen.sample.wall_time <= SILENT_S:
            found[Key(UNSERVED, (("job", job),))] = UNSERVED_S
    return found


def _of_topics(key: Key) -> bool:
    """Whether an alert is of a job or a pool."""
    return not {"job", "pool"}.isdisjoint(dict(key.labels))


def _concerns(key: Key, jobs: Collection[str], members: Mapping[str, Collection[str]]) -> bool:
    """Whether an alert is for a webhook of these jobs; `members` are the jobs of each pool."""
    labels = dict(key.labels)
    if (job := labels.get("job")) is not None:
        return job in jobs
    pool = labels.get("pool")
    return pool is None or any(job in jobs for job in members.get(pool, ()))


def run_follower(settings: Settings, host: str, port: int) -> None:
    """Follow topics, lake and contracts until SIGTERM or ctrl-C; answers scrapes, and posts alerts to webhooks.

    Prints where it listens. What cannot be read is said on stderr, each cause once, and tried again.
    Call it from the main thread.

    Args:
        settings: of the whole pipeline.
        host: address to listen on.
        port: 0 for any free one.

    Raises:
        BrokerError: no broker is set.
        EndpointError: the address cannot be listened on.
    """
    bootstrap_address(settings.kafka)
    # Else its client logs every refused connection ten times a second.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    stop, clock, reports, exposition = threading.Event(), SteadyClock(), Reports(), Exposition()
    folder, rounds = FolderOfContracts(settings.contracts_dir), Rounds(settings, reports)
    topics = FollowedTopics(settings.kafka, lambda: folder.contracts, reports)
    alerting = Alerting(settings, reports, clock.now())
    with stop_on_signals(stop):
        reports("contracts", folder.look(clock.now()))
        port, close = open_endpoint(exposition, host, port)
        print(f"metrics: http://{host}:{port}/metrics", flush=True)
        for run in (rounds.run, topics.run):
            threading.Thread(target=partial(run, stop), daemon=True).start()
        while not stop.wait(TICK_S):
            try:
                _tick(clock, folder, rounds, topics, alerting, exposition, reports)
            except Exception as error:  # one look may not end the others
                reports("look", f"{type(error).__name__}: {error}")
            else:
                reports("look", "")
        close()


def _tick(
    clock: SteadyClock, folder: FolderOfContracts, rounds: Rounds, topics: FollowedTopics, alerting: Alerting,
    exposition: Exposition, reports: Reports,
) -> None:  # fmt: skip
    reports("contracts", folder.look(clock.now()))
    now, contracts = time.time(), folder.contracts
    jobs, refused = topics.known(contracts)
    known = Knowledge(
        jobs if topics.caught_up else {job: seen.counted() for job, seen in jobs.items()},
        contracts, frozenset(folder.wrong), rounds.broker_up, rounds.ingests,
        rounds.lake, rounds.drifts, topics.pools, refused, alerting.failed, topics.unread,
    )  # fmt: skip
    left_out: dict[str, Exception] = {}
    exposition.samples = samples_of(known, now, left_out.__setitem__)
    for job in sorted({*contracts, *folder.wrong}):
        reports(f"contract {job!r}", folder.wrong.get(job, ""))
        reports(f"job {job!r}", f"left out: {left_out[job]!r}" if job in left_out else "")
    if clock.passed_s > FIRST_S and (topics.caught_up or not rounds.broker_up or topics.behind_s > BEHIND_S):
        held = holding(exposition.samples, now)
        unheard = unheard_of(jobs, contracts, now)
        alerting.look(held, contracts, topics.pools, clock.now(), clock.ahead_s, topics.caught_up, unheard)
