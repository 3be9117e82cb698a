"""The HTML of the console's pages; the rows and lines in them are drawn by its scripts, from data that is asked for."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from pipelines.html.document import NOWRAP, NUMBER, PLAIN, section, table

COLUMNS = (
    ("Job", PLAIN), ("State", PLAIN), ("Promise", NOWRAP), ("Budget left", NUMBER), ("Burn rate", NUMBER),
    ("Executors", NUMBER), ("Arrivals/s", NUMBER), ("Lag", NUMBER), ("Latency", NUMBER), ("Mode", NOWRAP),
)  # fmt: skip
"""Titles and kinds of the columns of the page of all jobs."""
MODES = (
    ("observe", "Decisions are recommendations. The executors are Spark's own, or stay as they are."),
    ("freeze", "The number of executors stays as it is, whatever is decided."),
    ("act", "Decisions are applied: executors are started and ended."),
)
"""The modes of an agent, the narrowest first, and what each does."""
COUNTS = '<p id="counts" class="about" role="status"></p>'
"""Place of what a list counts."""
PROBLEM = '<p id="problem" class="problem" role="alert" hidden></p>'
"""Place of what keeps the values from being new."""


def jobs_page() -> str:
    """Return the page of all jobs."""
    titles, kinds = [title for title, _ in COLUMNS], [kind for _, kind in COLUMNS]
    modes = "".join(f'<option value="{mode}">{mode}</option>' for mode, _ in MODES)
    body = f"""{head("Jobs", nav("./", "jobs"), COUNTS)}
{PROBLEM}
<form id="search" class="controls" role="search">
<label for="filter">Filter</label>
<input id="filter" type="search" placeholder="name or trouble" autocomplete="off" spellcheck="false" accesskey="f">
<label for="mode">Mode</label>
<select id="mode"><option value="">any</option>{modes}</select>
<label class="check"><input id="troubled" type="checkbox"> in trouble only</label>
<span class="legend">Burn rate: long / short window, 1 spends the budget exactly. Executors: there → asked for.</span>
</form>
{table(titles, kinds, [], 'id="jobs" class="whole rows jobs"')}
<p id="none" class="about" hidden>No job is like that.</p>"""
    return page("Jobs", body, "jobs", "./")


def job_page(job: str) -> str:
    """Return the page of one job."""
    charts = "".join(
        f"<figure><figcaption>{title}</figcaption>"
        f'<div id="{name}" class="plot" role="img" aria-label="{title}"></div></figure>'
        for name, title in (
            ("load", "Arrivals, what the executors sustain, and the forecast (records/s)"),
            ("executors", "Executors: there, and asked for"),
            ("latency", "Latency of the oldest record of a batch (s)"),
        )
    )
    ranges = "".join(
        f'<button type="button" class="range" data-range="{name}" aria-pressed="{pressed}">{title}</button>'
        for name, title, pressed in (("fine", "10 minutes", "true"), ("coarse", "6 hours", "false"))
    )
    choices = "".join(
        f'<button type="button" class="mode" data-mode="{mode}" aria-pressed="false">{mode}</button>'
        for mode, _ in MODES
    )
    kinds = [NOWRAP, NUMBER, PLAIN, PLAIN]
    titles = ["When", "Executors", "Why", "What became of it"]
    decided = table(titles, kinds, [], 'id="decided" class="whole decisions"')
    body = f"""{head(job, nav("../", ""), '<p id="state" class="about"></p>')}
{PROBLEM}
<div id="tiles" class="tiles"></div>
<section aria-labelledby="mode-title"><h2 id="mode-title">Mode</h2>
<div class="controls" role="group" aria-label="Mode of {escape(job)}">{choices}</div>
<p id="word" class="note"></p>
<p id="told" role="status" class="note"></p></section>
<section id="of-pool" aria-labelledby="pool-title" hidden><h2 id="pool-title">Pool</h2><p class="note"></p></section>
<section aria-labelledby="plots-title"><div class="titled"><h2 id="plots-title">Load, executors, latency</h2>
<div class="controls" role="group" aria-label="Length of time">{ranges}</div></div>
<p id="fan" class="note"></p>{charts}</section>
{section("Decisions", "The newest 60, and what became of those that its agent applied.", decided)}
{_dialog()}"""
    return page(job, body, "job", "../", f' data-job="{escape(job)}"', ("uplot/uPlot.iife.min.js",))


def refusal_page(status: int, why: str, up: str, login_url: str) -> str:
    """Return the page that says why another one is not shown.

    Args:
        status: of HTTP.
        why: in words.
        up: the way to the console's own address.
        login_url: page to log in at, relative to that; "" for none.
    """
    title = {401: "You are not logged in", 403: "You may not see this"}.get(status, "This page is not there")
    link = f'<p><a href="{escape(up + login_url)}">Log in to Airflow</a></p>' if status == 401 and login_url else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
        f"<title>{title}</title></head><body><main><h1>{title}</h1><p>{escape(why)}</p>{link}</main></body></html>"
    )


def _dialog() -> str:
    meanings = "".join(f'<p data-means="{mode}" hidden>{escape(means)}</p>' for mode, means in MODES)
    return f"""<dialog id="confirm" aria-labelledby="confirm-title">
<form method="dialog">
<h2 id="confirm-title"></h2>
{meanings}
<p class="note">Its agent follows within a second, never beyond the mode that its code allows. The change is written to
Airflow's audit log with your name.</p>
<div class="controls"><button value="cancel" id="cancel">Cancel</button>
<button value="change" id="change"></button></div>
</form>
</dialog>"""


def nav(up: str, here: str) -> str:
    """Links to the pages, of which `here` is the one that is open."""
    names = ("jobs", "pools", "models", "backfills", "topologies")
    links = [(name, up if name == "jobs" else f"{up}{name}", name.title()) for name in names]
    marks = {True: ' aria-current="page"', False: ""}
    return "".join(f'<a href="{way}"{marks[name == here]}>{title}</a>' for name, way, title in links)


def head(title: str, links: str, status: str) -> str:
    """Return the head of a page: the links to the others, its title, and what it counts."""
    return f"""<header class="bar">
<nav aria-label="Pages">{links}</nav>
<h1>{escape(title)}</h1>
{status}
<button id="theme" type="button">Light / dark</button>
</header>"""


def page(title: str, body: str, script: str, up: str, marks: str = "", more: Collection[str] = ()) -> str:
    """Return a whole page.

    Args:
        title: plain text.
        body: HTML.
        script: that draws its values, without the ending.
        up: the way to the console's own address.
        marks: further attributes of the body.
        more: further scripts, which come first.
    """
    styles = ("page.css", *(["uplot/uPlot.min.css"] if more else []), "console.css")
    links = "".join(f'<link rel="stylesheet" href="{up}static/{name}">' for name in styles)
    scripts = "".join(f'<script src="{up}static/{name}"></script>' for name in ("theme.js", *more))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · Tidecast</title>
<link rel="icon" href="data:,">
{links}
{scripts}
<script type="module" src="{up}static/{script}.js"></script>
</head>
<body data-up="{up}"{marks}>
<main>
{body}
</main>
</body>
</html>
"""
