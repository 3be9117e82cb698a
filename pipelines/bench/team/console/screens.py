"""How long somebody waits: for the first screen of all jobs, and for a record on a topic to be on it."""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

from pipelines.bench.team.console.chromium import Chromium
from pipelines.bench.team.console.jobs import ToldTopics
from pipelines.bench.team.console.records import interval

WIDTH, THEME = 1440, "light"
FIRST_RPS, SEED = 50_001, 20_261_127
"""Arrivals that no job has, one more for each record; seed of the moments at which they are sent."""
ROWS = """new Promise((seen, never) => {
  const begun = performance.now();
  (function look() {
    if (document.querySelectorAll("#jobs tbody tr").length >= MANY) seen(performance.now() / 1000);
    else if (performance.now() > begun + 30000) never(new Error("not so many rows within 30 s"));
    else requestAnimationFrame(look);
  })();
})"""
SHOWN = """new Promise((seen, never) => {
  const links = [...document.querySelectorAll("#jobs tbody a")];
  const row = links.find((link) => link.textContent === JOB).closest("tr");
  const begun = performance.now();
  (function look() {
    if (row.textContent.includes(TEXT)) seen(Date.now() / 1000);
    else if (performance.now() > begun + 30000) never(new Error(`${TEXT} was not shown within 30 s`));
    else requestAnimationFrame(look);
  })();
})"""


def first_screen(browser: Chromium, address: str, jobs: int) -> float:
    """Open the page of all jobs, with nothing of it in the browser's cache.

    Returns:
        Seconds from going there until the rows of so many jobs were drawn; more than until there was any page, where
        the server had not read the topics yet.

    Raises:
        BrowserError: they are not drawn.
    """
    browser.call("Network.clearBrowserCache")
    drawn_s = browser.open(f"{address}/", WIDTH, THEME)
    if browser.evaluate("window.drawnRows") >= jobs:
        return drawn_s
    shown_s: float = browser.evaluate(ROWS.replace("MANY", str(jobs)))
    return shown_s


def records_shown(browser: Chromium, address: str, topics: ToldTopics, job: str, many: int) -> Iterator[float]:
    """Send so many records of a job, each at any moment of the second in which the page looks for new ones.

    Yields:
        Seconds from sending a record until it was on the page of all jobs.

    Raises:
        BrowserError: one is not shown within 30 s.
        BrokerError: the broker does not take one.
    """
    chance = random.Random(SEED)
    browser.open(f"{address}/", WIDTH, THEME)
    for number in range(many):
        time.sleep(1 + chance.random())
        rps = FIRST_RPS + number
        sent_at = topics.say(interval(job, time.time(), float(rps), 7))
        seen_at = browser.evaluate(SHOWN.replace("JOB", json.dumps(job)).replace("TEXT", json.dumps(f"{rps:,}")))
        yield seen_at - sent_at


def summarise(seconds: Sequence[float]) -> dict[str, Any]:
    """Return the median and the worst of some waits, how many there were, and each."""
    each = [round(one, 3) for one in seconds]
    return {"median": round(statistics.median(seconds), 3), "worst": max(each), "n": len(each), "each": each}
