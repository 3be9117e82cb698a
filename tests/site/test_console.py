"""The console in a real browser, with 500 jobs that go on: no error in it, nothing that axe-core objects to, quick."""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from models.alerts.knowledge import DriftSeen
from pipelines.bench.team.console.axe import fetch_axe
from pipelines.bench.team.console.chromium import Chromium
from pipelines.bench.team.console.jobs import next_second
from pipelines.bench.team.console.looks import PAGES, THEMES, WIDTHS, look_at
from pipelines.bench.team.console.records import fleet, interval, word
from pipelines.console.access import Access
from pipelines.console.app import build_app
from pipelines.console.asked import Answer, PageSources
from pipelines.console.change import StaleError
from pipelines.console.follow import READING
from pipelines.console.read.fold import Model, fold
from pipelines.registry.overview import RegisteredModel, RegisteredVersion
from tests.fakes.waiting import wait_until

JOBS, MINUTES = 500, 12


class Living:
    """Jobs that have a record more each second, until the end."""

    def __init__(self) -> None:
        now = time.time()
        self.model = fold(Model(), fleet(JOBS, now, MINUTES), now)
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


@pytest.fixture(scope="module")
def living():
    made = Living()
    yield made
    made.end()


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


def application(look, living) -> FastAPI:
    """The console of what is looked at, as somebody sees it who may do everything."""
    access = Access(lambda: "ann", lambda: "ann", lambda change: None)
    return build_app(look, living.change, access, beside(time.time()))


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


@pytest.fixture(scope="module")
def address(living):
    with served(application(lambda: (living.model, ""), living)) as address:
        yield address


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with closing(Chromium(tmp_path_factory.mktemp("chromium"), nice=19)) as made:
        yield made


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    return fetch_axe(tmp_path_factory.mktemp("axe"))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_no_error_no_violation_and_fits(browser, address, axe, tmp_path_factory, page, width, theme):
    found = look_at(browser, address, axe, page, width, theme)
    file = tmp_path_factory.getbasetemp() / f"console-{page}-{width}-{theme}.png"
    browser.screenshot(file, whole=page != "jobs")
    print(f"{file}: drawn after {found.drawn_s:.2f} s")
    assert found.violations == []
    assert found.problems == []
    assert found.fits, "it scrolls sideways"
    assert found.themed


def test_what_comes_on_a_topic_is_seen_within_two_seconds_and_the_first_screen_within_one(browser, address, living):
    assert browser.open(address, 1440, "light") < 1.0 + 0.5  # the test's machine may be busy
    assert browser.evaluate("document.querySelectorAll('#jobs tbody tr').length") == JOBS
    living.take(interval("orders-010", time.time(), 98_765.0, 7))
    browser.wait_for("document.querySelector('#jobs tbody').textContent.includes('98,765')", 2.0)


def test_a_server_that_still_reads_the_topics_is_asked_again_soon(browser, living):
    looked = []

    def look():
        looked.append(time.monotonic())
        return (living.model, "") if len(looked) > 4 else (Model(), READING)

    with served(application(look, living)) as address:
        browser.open(address, 1440, "light")
        browser.wait_for(f"document.querySelectorAll('#jobs tbody tr').length === {JOBS}")
        browser.wait_for("document.getElementById('problem').hidden")
    assert looked[4] - looked[0] < 2.5, "each second alone"


def test_the_worst_are_on_top_and_a_filter_leaves_what_it_names(browser, address):
    browser.open(address, 1440, "dark")
    first = browser.evaluate("document.querySelector('#jobs tbody tr').textContent")
    assert "promise broken" in first
    browser.press("/")
    for letter in "clicks":
        browser.press(letter)
    shown = browser.evaluate("[...document.querySelectorAll('#jobs tbody tr:not([hidden]) a')].map(a => a.textContent)")
    assert len(shown) == JOBS // 5 and all(name.startswith("clicks") for name in shown)


def test_a_mode_is_switched_by_keyboard_after_a_confirmation_alone(browser, address, living):
    browser.open(f"{address}/jobs/clicks-001", 1440, "light")
    browser.evaluate("document.querySelector('button[data-mode=freeze]').focus()")
    browser.press("Enter")
    assert browser.evaluate("document.activeElement.id") == "cancel"
    browser.press("Enter")
    assert living.changes == []
    browser.press("Enter")
    browser.press("Tab")
    browser.press("Enter")
    browser.wait_for("document.getElementById('told').textContent.includes('was told to freeze')", 5)
    assert living.changes == [("clicks-001", "freeze", "ann")]
    browser.wait_for("document.getElementById('word').textContent.includes('Told to freeze by ann')", 3)


def test_a_stale_page_is_told_and_changes_nothing(browser, address, living):
    browser.open(f"{address}/jobs/clicks-006", 820, "dark")
    browser.evaluate("document.querySelector('button[data-mode=act]').click()")
    living.take(word("clicks-006", time.time(), "observe", "bob"))
    browser.wait_for("document.getElementById('word').textContent.includes('bob')", 3)
    before = list(living.changes)
    browser.problems.clear()
    browser.evaluate("document.getElementById('change').click()")
    browser.wait_for("document.getElementById('told').textContent.includes('by bob')", 5)
    assert living.changes == before
    assert all("409" in problem for problem in browser.problems)  # which the browser itself notes


def test_a_change_is_refused_to_a_form_of_another_origin(address):
    asked = {"mode": "act", "seen": None, "confirmed": "clicks-011"}
    for headers in ({}, {"x-tidecast-console": "1", "origin": "https://elsewhere.example"}):
        assert httpx.post(f"{address}/data/jobs/clicks-011/mode", json=asked, headers=headers).status_code == 403


def test_hours_that_are_read_later_come_onto_a_page_that_is_open(browser, address, living):
    browser.open(f"{address}/jobs/payments-002", 1440, "light")
    whole = "performance.getEntriesByType('resource').filter(one => one.name.endsWith('after=0')).length"
    assert browser.evaluate(whole) == 1
    now = time.time()
    deeper = fold(Model(), fleet(3, now, MINUTES + 20), now).jobs["payments-002"]
    living.deepen("payments-002", deeper.fine, deeper.coarse)
    browser.wait_for(f"{whole} === 2", 5)
    time.sleep(2.5)
    assert browser.evaluate(whole) == 2  # once, and then what is new alone
