"""The console of jobs that are made up, behind a server: what the topics, MLflow and Airflow tell."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import replace

import uvicorn
from fastapi import FastAPI

from models.alerts.knowledge import DriftSeen
from pipelines.bench.team.console.jobs import next_second
from pipelines.bench.team.console.records import fleet, word
from pipelines.console.access import Access
from pipelines.console.app import build_app
from pipelines.console.asked import Answer, PageSources
from pipelines.console.change import StaleError
from pipelines.console.read.fold import ReadModel, fold
from pipelines.registry.overview import RegisteredModel, RegisteredVersion
from tests.fakes.waiting import wait_until


class Living:
    """Jobs that have a record more each second, until the end."""

    def __init__(self, jobs: int, minutes: float) -> None:
        now = time.time()
        self.model = fold(ReadModel(), fleet(jobs, now, minutes), now)
        self.changes: list[tuple] = []
        self._lock, self._ended = threading.Lock(), threading.Event()
        threading.Thread(target=self._live, daemon=True).start()

    def take(self, *records) -> None:
        with self._lock:
            self.model = fold(self.model, records, time.time())

    def deepen(self, job, fine, coarse) -> None:
        with self._lock:
            deeper = replace(self.model.jobs[job], fine=fine, coarse=coarse)
            self.model = replace(self.model, jobs={**self.model.jobs, job: deeper})

    def change(self, job, mode, seen, by) -> None:
        known = self.model.jobs[job].word
        if (known and known.wall_time) != seen:
            raise StaleError(f"{job} was told to {known.mode} by {known.by} since this page was drawn.")
        self.changes.append((job, mode, by))
        self.take(word(job, time.time(), mode, by))

    def _live(self) -> None:
        while not self._ended.wait(1):
            self.take(*next_second(self.model, time.time()))

    def end(self) -> None:
        self._ended.set()


class Told:
    """What is told so far, and why there is nothing newer.

    Attributes:
        answers: whether it can be looked at now; who looks waits until then.
    """

    def __init__(self, *records, problem="") -> None:
        self.model, self.problem, self.answers = ReadModel(), problem, threading.Event()
        self.take(*records)
        self.answers.set()

    def take(self, *records) -> None:
        self.model = fold(self.model, records, time.time())

    def look(self) -> tuple[ReadModel, str]:
        self.answers.wait(60)
        return self.model, self.problem

    def change(self, job, mode, seen, by) -> None:
        self.answers.wait(60)


def beside(now: float) -> PageSources:
    """What MLflow, Airflow and the folders of topologies tell."""
    measured = {"kind": "networked_blend", "live.wape": "0.081", "live.n": "480"}
    models = []
    for number, job in enumerate(("orders-000", "clicks-001", "payments-002")):
        champion = RegisteredVersion("7", now - 90_000, ("champion",), measured)
        rival = RegisteredVersion("8", now - 600, ("challenger",), {"kind": "blend", "verdict": "not surely better"})
        for what in ("forecaster", "agent")[: 1 + (number < 1)]:
            models.append(RegisteredModel(f"{job}-{what}", job, what, 8, (rival, champion)[number % 2 :]))
    query = {"operators": ["parse", "views"], "cluster": "east", "at": "east", "moves": 0, "offloaded": None}
    away = {"home": "east", "away": "west", "since_s": now - 900}
    queries = [
        {**query, "name": "orders-000", "executors": 3},
        {**query, "name": "adverts.count", "executors": 2, "at": "west", "moves": 2, "offloaded": away},
    ]
    plan = {"since": now - 40_000, "price": 4.2, "latency_s": 3.4, "kept": True}
    begun = {"begun": True, "changed": True, "plan": plan, "queries": queries}
    known = {
        "problem": "",
        "target_s": 10.0,
        "operators": ["parse", "views", "count"],
        "clusters": {"east": 3, "west": 2},
    }
    topologies = [
        {"name": "adverts", **known, **begun},
        {"name": "later", **known, "begun": False, "changed": False, "plan": None, "queries": []},
        {"name": "broken", "problem": "broken.yaml, line 2: no target_s", "begun": False, "queries": []},
    ]
    told = "at 1.4 times the stated rates, count would run on west with 3 executors, for 0.40 an hour less."
    advice = {"adverts": {"at": now - 7200, "told": told, "asks": True}}
    return PageSources(
        lambda: Answer(models, "MLflow: it answers 503.", now - 60),
        lambda: Answer({"clicks-001": DriftSeen(now - 5000, 1.34)}, "", now),
        lambda: Answer(topologies, "", now), lambda: Answer(advice, "", now), "http://127.0.0.1:5055",
    )  # fmt: skip


def application(look, change) -> FastAPI:
    """The console of what is looked at, as somebody sees it who may do everything."""
    access = Access(lambda: "ann", lambda: "ann", lambda asked: None)
    return build_app(look, change, access, beside(time.time()))


@contextmanager
def served(app):
    """The address of an application, for as long as the block takes."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, "the server", 20)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
