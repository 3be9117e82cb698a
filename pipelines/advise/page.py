"""The page that a team looks at before it lets a job be scaled: what acting would have saved or cost."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from models.policy.core.capacity import Floats
from pipelines.advise.acting import Acting, Served
from pipelines.advise.measured import MeasuredJob
from pipelines.advise.text import format_span
from pipelines.html.document import NUMBER, PLAIN, Tile, document, holder, row, section, table, tile_row
from pipelines.html.numbers import number, number_of, share
from pipelines.html.plot import Chart, line, stacked_rows

POINTS = 1500
"""Most points of a line; each is the mean of as many seconds as it takes."""


def write_acting_page(job: str, seen: MeasuredJob, acting: Acting, advice: str, path: Path) -> Path:
    """Write the page to `path`; folders are made if need be.

    Args:
        job: its name.
        seen: what was measured of it.
        acting: its load, served in three ways.
        advice: in words.
        path: of the file.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_acting(job, seen, acting, advice), encoding="utf-8")
    return path


def render_acting(job: str, seen: MeasuredJob, acting: Acting, advice: str) -> str:
    """Return the page as HTML that opens without a network."""
    promise = f"{share(seen.contract.error_budget, 1)} of the seconds over {seen.contract.latency_target_s:g} s"
    mode = "only observed" if seen.observed else "acted already"
    body = [
        f"<h1>{escape(job)}: what acting would have come to</h1>",
        f"<p><b>{escape(_verdict(seen, acting))}</b></p>",
        f'<p class="about">{format_span(acting.seconds)} of load were recorded, in which the agent {mode}. '
        f"The contract allows {promise} and {seen.contract.executors.min} to {seen.contract.executors.max} executors. "
        "What acting comes to is the twin's: a simulator, fitted to this job's own batches, under the default policy "
        "steered by the promise, with the last value as its forecast. Its executors are paid from their request, those "
        "recorded while they were there: acting alone is charged for start-ups.</p>",
        tile_row(_tiles(seen, acting)),
        section("Beside each other", "The twin with the executors that there were shows how far it can be trusted. "
                "Shares are of the seconds in which anything was produced.", _table(seen, acting)),
        section("Load and executors", "", holder("load", 420, "arrivals, and executors as recorded and when acting")),
        section("What would help this job most", "", "".join(f"<p>{escape(one)}</p>" for one in advice.splitlines())),
    ]  # fmt: skip
    return document(f"Tidecast: acting on {job}", "\n".join(body), {"load": _chart(seen, acting)})


def _verdict(seen: MeasuredJob, acting: Acting) -> str:
    """What acting would have changed, by the twin on both sides, so that its own error is on neither."""
    now, then, price = acting.repeated, acting.acting, seen.contract.price_per_executor_hour
    saved, fewer = now.executor_h - then.executor_h, now.late_s - then.late_s
    money = "" if price is None else f", {number(abs(saved) * price, 2)} in money,"
    hours = f"{'saved' if saved >= 0 else 'cost'} {number(abs(saved), 2)} executor-hours{money}"
    late = (
        number_of(round(abs(fewer)), f"{'fewer' if fewer > 0 else 'more'} second")
        if round(fewer)
        else "no second more or less"
    )
    hours = f"{hours} of {number(now.executor_h, 2)}"
    return f"Twin against twin, acting would have {hours}, and {late} would have been late, of {acting.seconds:,}."


def _tiles(seen: MeasuredJob, acting: Acting) -> list[Tile]:
    was, would, budget_s = acting.measured, acting.acting, seen.contract.error_budget * seen.produced_s
    found = [
        Tile("Late seconds when acting", number(would.late_s), f"of {number(seen.produced_s)} s",
             f"{number(was.late_s)} were; {number(budget_s)} are allowed", would.late_s <= budget_s),
        Tile("Executor-hours when acting", number(would.executor_h, 2), "h",
             f"{number(was.executor_h, 2)} were there: {_change(would.executor_h, was.executor_h)}"),
    ]  # fmt: skip
    if (price := seen.contract.price_per_executor_hour) is not None:
        saved = (was.executor_h - would.executor_h) * price
        detail = f"{number(was.executor_h * price, 2)} were paid: {number(abs(saved), 2)} {_word(saved)}"
        found.append(Tile("Money when acting", number(would.executor_h * price, 2), "", detail))
    return found


def _table(seen: MeasuredJob, acting: Acting) -> str:
    price = seen.contract.price_per_executor_hour
    kinds = [PLAIN, NUMBER, NUMBER, NUMBER, NUMBER][: 4 + (price is not None)]
    titles = ["", "late seconds", "share", "executor-hours", "money"][: len(kinds)]

    def cells(name: str, served: Served, of_s: float) -> list[str]:
        late = share(served.late_s / of_s, 2) if of_s else "–"
        money = [] if price is None else [number(served.executor_h * price, 2)]
        return [name, number(served.late_s), late, number(served.executor_h, 2), *money]

    rows = [
        cells("recorded", acting.measured, seen.seconds),
        cells("the twin with the executors that there were", acting.repeated, seen.produced_s),
        cells("the twin, acting", acting.acting, seen.produced_s),
    ]
    return table(titles, kinds, [row(one, kinds) for one in rows])


def _chart(seen: MeasuredJob, acting: Acting) -> Chart:
    unit, unit_s = ("hours", 3600) if acting.seconds >= 7200 else ("minutes", 60)
    at = _thinned(np.arange(acting.seconds) / unit_s)
    lower = [
        line(at, _thinned(seen.executors), "executors recorded", "@other", shape="hv"),
        line(at, _thinned(acting.targets), "asked for when acting (twin)", "@executors", shape="hv"),
    ]
    data = [
        line(at, _thinned(np.diff(seen.arrived)), "arrivals, records/s", "@arrival"),
        *({**one, "yaxis": "y2"} for one in lower),
    ]
    layout = stacked_rows([("arrivals, records/s", 0.5), ("executors", 0.5)])
    layout["xaxis"] |= {"title": {"text": f"{unit} recorded", "font": {"size": 13}}}
    return {"data": data, "layout": layout}


def _thinned(values: Floats) -> Floats:
    many = max(1, -(-len(values) // POINTS))
    edges = np.arange(0, len(values), many)
    sums: Floats = np.add.reduceat(values, edges) / np.diff(np.append(edges, len(values)))
    return sums


def _change(value: float, other: float) -> str:
    return "–" if other <= 0 else f"{100 * (value / other - 1):+.0f} %".replace("-", "−")


def _word(saved: float) -> str:
    return "saved" if saved >= 0 else "more"
