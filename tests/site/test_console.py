"""The console in a real browser, with 500 jobs that go on: no error in it, nothing that axe-core objects to, quick."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager

import httpx
import pytest

from pipelines.bench.team.console.axe import fetch_axe
from pipelines.bench.team.console.chromium import Chromium
from pipelines.bench.team.console.looks import PAGES, THEMES, WIDTHS, look_at
from pipelines.bench.team.console.records import fleet, interval, order, pool, progress, word
from pipelines.console.follow import READING
from pipelines.console.read.fold import ReadModel, fold
from tests.fakes.console_pages import Living, Told, application, served

JOBS, MINUTES = 500, 12
LINKS = "[...document.querySelectorAll('#backfills a')]"
SOONER = "const limit = AbortSignal.timeout; AbortSignal.timeout = ms => limit.call(AbortSignal, ms / 20)"


@pytest.fixture(scope="module")
def living():
    made = Living(JOBS, MINUTES)
    yield made
    made.end()


@pytest.fixture(scope="module")
def address(living):
    with served(application(lambda: (living.model, ""), living.change)) as address:
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
        return (living.model, "") if len(looked) > 4 else (ReadModel(), READING)

    with served(application(look, living.change)) as address:
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
    deeper = fold(ReadModel(), fleet(3, now, MINUTES + 20), now).jobs["payments-002"]
    living.deepen("payments-002", deeper.fine, deeper.coarse)
    browser.wait_for(f"{whole} === 2", 5)
    time.sleep(2.5)
    assert browser.evaluate(whole) == 2  # once, and then what is new alone


@contextmanager
def told_pages(browser, told, page):
    """A page of its own of what is told, open in the browser."""
    with served(application(told.look, told.change)) as address:
        browser.open(f"{address}/{page}", 1440, "light")
        yield
        browser.call("Page.navigate", url="about:blank")


def test_a_new_job_comes_onto_the_page_while_somebody_is_on_a_row(browser):
    told = Told(interval("rides", time.time()))
    with told_pages(browser, told, ""):
        browser.evaluate("document.querySelector('#jobs a').focus()")
        told.take(interval("orders", time.time()))
        browser.wait_for("document.querySelectorAll('#jobs tbody tr').length === 2", 5)
        assert browser.evaluate("document.activeElement.textContent") == "rides"


@pytest.mark.parametrize("page", ["pools", "backfills"])
def test_of_topics_that_cannot_be_read_nobody_says_that_they_hold_nothing(browser, page):
    told = Told(problem="The topics cannot be read: no broker")
    with told_pages(browser, told, page):
        assert "no broker" in browser.evaluate("document.getElementById('problem').textContent")
        assert browser.evaluate("document.getElementById('none').hidden")
        told.problem = ""
        browser.wait_for("!document.getElementById('none').hidden", 5)


def backfill(job, name, done=250):
    at = time.time()
    return order(job, name, at), progress(job, name, at, done)


def test_a_row_with_the_focus_goes_on_and_keeps_it_where_rows_change_places(browser):
    told = Told(*backfill("rides", "fix"), *backfill("rides", "later"))
    focused = "document.activeElement.closest('tr').cells[1].textContent"
    with told_pages(browser, told, "backfills"):
        browser.evaluate(f"{LINKS}[1].focus()")
        told.take(*backfill("rides", "later", 500))
        browser.wait_for(f"{LINKS}[1].closest('tr').textContent.includes('50\u00a0%')", 5)
        assert browser.evaluate(focused) == "later"
        told.take(*backfill("clicks", "fix"))
        browser.wait_for(f"{LINKS}.map(link => link.textContent).join() === 'clicks,rides,rides'", 5)
        assert browser.evaluate(focused) == "later"


def test_a_link_that_is_pressed_while_rows_change_is_followed(browser):
    told = Told(*backfill("rides", "fix"))
    with told_pages(browser, told, "backfills"):
        box = browser.evaluate(f"{LINKS}[0].getBoundingClientRect().toJSON()")
        mouse = {"x": box["x"] + 5, "y": box["y"] + 5, "button": "left", "clickCount": 1}
        browser.call("Input.dispatchMouseEvent", type="mousePressed", **mouse)
        told.take(*backfill("clicks", "fix"))
        browser.wait_for("document.getElementById('counts').textContent.startsWith('2 going on')", 5)
        browser.call("Input.dispatchMouseEvent", type="mouseReleased", **mouse)
        browser.wait_for("location.pathname === '/jobs/rides'", 5)


def test_the_line_on_a_jobs_pool_goes_on_while_its_link_has_the_focus(browser):
    told = Told(*fleet(3, time.time()))
    with told_pages(browser, told, "jobs/orders-000"):
        browser.evaluate("document.querySelector('#of-pool a').focus()")
        told.take(pool("shared", time.time(), ["clicks-001", "orders-000"]))
        browser.wait_for("document.getElementById('of-pool').textContent.includes('yields 2 to clicks-001')", 5)
        assert browser.evaluate("document.activeElement.textContent") == "shared"


def test_a_server_that_hangs_is_told_and_asked_again(browser):
    told = Told(interval("rides", time.time()))
    with told_pages(browser, told, "jobs/rides"):
        browser.evaluate(SOONER)
        told.answers.clear()
        try:
            browser.wait_for("document.getElementById('problem').textContent.includes('Airflow does not answer')", 10)
            browser.evaluate("document.querySelector('button[data-mode=freeze]').click()")
            browser.evaluate("document.getElementById('change').click()")
            browser.wait_for("document.getElementById('told').textContent.includes('is not known: look again')", 10)
        finally:
            told.answers.set()
        browser.wait_for("document.getElementById('problem').hidden", 15)
