"""The fast path as a process: opens store, socket, log, loader and HTTP, and closes them in order.

Run it as `tidecast serve fast`, or by the serving DAG with `serving.path: fast`.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager

from configs.settings import Settings
from pipelines.deployment import deployment_name
from pipelines.kafka.claim import SERVING, Claim
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.topics import create_topics
from pipelines.registry import Registry
from pipelines.serve.contracted import ContractedJobs
from pipelines.serve.fast.core import CURSOR, Core
from pipelines.serve.fast.log_feed import TOPIC, LogFeed, recall_sent
from pipelines.serve.fast.loop import Loop
from pipelines.serve.fast.swapping import finish_swaps
from pipelines.serve.http.process import HttpEndpoint
from pipelines.serve.models.loader import ChampionSource, Loader
from pipelines.serve.partitions import PartitionWatch
from pipelines.signals import stop_on_signals
from pipelines.store import Corrupt, Keep, Store
from pipelines.store.writing.flusher import Flusher

log = logging.getLogger(__name__)
SOCKET, EPOCH = "socket", "epoch"
CLAIM_S = 0.5
"""Wall seconds between two looks for a later claim."""
SWITCH_S = 0.0005
"""Seconds that another thread may hold the interpreter lock while the loop waits; Python's 5 ms would delay answers."""


def retention_rules(history: int) -> list[Keep]:
    """Return the store's retention rules: `history` versions of windows and forecasts, a few of states and models."""
    versions = {
        "/sample": history, "/forecast": history, "/state": 2, "/checkpoint": 2, "/model": 5, "/quarantine": 1000,
    }  # fmt: skip
    return [Keep(prefix, versions=count) for prefix, count in versions.items()]


def serve_fast(settings: Settings, champions: Callable[[], ChampionSource] | None = None) -> None:
    """Serve forecasts by the fast path (LMDB store, socket, HTTP) until SIGTERM, ctrl-C, or another server takes over.

    In `settings.store_dir` it opens the store and the Unix socket `socket`, and writes `token` and `http` (bearer token
    and URL of the HTTP endpoint, on 127.0.0.1, port `serving.http_port`, 0 for any free). It follows Kafka unless
    `kafka.bootstrap` is empty, and looks for a later server every 0.5 s, for models every `serving.alias_poll_s` s, for
    more partitions of `metrics` every 60 s: where there are some it ends, as the next run follows all. All parts are
    closed before it returns; the interpreter's switch interval stays at 0.5 ms. Call it from the main thread.

    Args:
        settings: of the whole pipeline.
        champions: opens the source of the models to serve, in the loader's thread; by default the registry.

    Raises:
        WriterPresent: another process serves on the same folder.
        SocketError: the socket cannot be opened.
        BrokerError: the broker does not answer at the start, or does not take this server's
            claim (the record by which an older server leaves).
        Corrupt: a record of the store is damaged; the next run reads them all, and begins what can be rebuilt anew.
        StoreError, msgspec.DecodeError: the store cannot be opened, written or decoded (`OtherSchema`, ...).
        OSError: a file or process beside the store cannot be made.
        ValueError, SettingsError: not called from the main thread, or a security option that a Kafka client lacks.
        Exception: whatever ended the thread that reads the log, or another error of `Loop.run_once`.
    """
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # else it logs every refused connection ten times a second
    sys.setswitchinterval(SWITCH_S)
    stop = threading.Event()
    with ExitStack() as ends:
        ends.enter_context(stop_on_signals(stop))
        folder = settings.store_dir
        store = ends.enter_context(
            Store.open(folder, settings.serving.map_bytes, retention_rules(settings.serving.history))
        )
        ends.enter_context(_distrusted_if_corrupt(store))
        ends.enter_context(Flusher(store))
        known = ContractedJobs(settings.contracts_dir, settings.serving.alias_poll_s)
        loop = _loop(settings, store, known, ends, stop)
        finish_swaps(loop.core)
        open_source, every_s = champions or (lambda: Registry(settings)), settings.serving.alias_poll_s
        loop.loader = loader = Loader(loop.core.windows, open_source, known, every_s, loop.wake)
        for job in known:
            if deployments := loop.core.job(job).deployments:
                loader.serving[job] = deployments[-1].model_version, deployments[-1].digests
        loader.start()
        ends.callback(loader.close)
        ends.callback(HttpEndpoint(settings, loop.core.counts).close)
        gc.collect()
        gc.freeze()
        where = f"process {os.getpid()}, socket {folder / SOCKET}"
        print(f"serving fast: epoch {loop.core.server.epoch}, {where}", flush=True)
        ends.callback(loop.stop_turns)  # first of all: a successor may serve already
        while not stop.is_set():
            loop.run_once()


def _loop(settings: Settings, store: Store, known: ContractedJobs, ends: ExitStack, stop: threading.Event) -> Loop:
    """The loop over the store, with the log where there is one."""
    path, step_s, kafka = settings.store_dir / SOCKET, settings.training.step_s, settings.kafka
    if not kafka.bootstrap:
        return ends.enter_context(closing(Loop(Core(store, step_s, known, store.epoch), path)))
    from pipelines.kafka.librdkafka import Sender

    create_topics(kafka)
    ends.callback(store.flush)  # after the sender's end: what was sent leaves the outbox
    publisher = ends.enter_context(closing(Publisher(kafka)))
    name, stored = deployment_name(settings.var_dir), store.get_meta(EPOCH, "persistent")
    kept = None if stored is None else int(stored)
    claim = ends.enter_context(closing(Claim(kafka, publisher, SERVING, name, kept)))
    store.set_meta(EPOCH, str(claim.epoch).encode(), "persistent")
    core = Core(store, step_s, known, claim.epoch, True)
    recall_sent(kafka, core, claim.epochs, rebuilt=store.get_meta(CURSOR) is None)
    loop = ends.enter_context(closing(Loop(core, path)))
    loop.sender = ends.enter_context(closing(Sender(kafka)))
    feed = loop.log = ends.enter_context(closing(LogFeed(kafka, store, loop.process_log)))
    ends.enter_context(closing(PartitionWatch(kafka, TOPIC, len(feed.cursor.next), stop)))
    watch = threading.Thread(target=_watch, args=(claim, stop), daemon=True)
    watch.start()
    ends.callback(lambda: watch.join(5))
    ends.callback(stop.set)
    return loop


@contextmanager
def _distrusted_if_corrupt(store: Store) -> Iterator[None]:
    try:
        yield
    except Corrupt:
        store.distrust()
        raise


def _watch(claim: Claim, stop: threading.Event) -> None:
    while not stop.wait(CLAIM_S):
        try:
            lost = claim.superseded()
        except Exception:  # without this look the server would go on beside a successor
            log.exception("serving: the claim could not be looked at; trying again")
            continue
        if lost:
            print("serving: a server with a later epoch has taken over; leaving", flush=True)
            stop.set()
