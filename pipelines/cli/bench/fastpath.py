"""`tidecast bench fastpath`: how long a forecast takes from its measurement, beside floors and peers."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.given import JsonFile
from pipelines.figures.written import write_figure


class Part(StrEnum):
    """What `--only` can name."""

    local = "local"
    socket = "socket"
    kafka = "kafka"
    store = "store"
    fleet = "fleet"
    swap = "swap"
    memory = "memory"


Only = Annotated[list[Part] | None, typer.Option("--only", help="A part to measure; all of them if none is named.")]
Quick = Annotated[bool, typer.Option("--quick", help="Few events: shows that everything runs, says little else.")]
Page = Annotated[Path | None, typer.Option("--page", help="Also write them as a page.")]


def bench(only: Only = None, quick: Quick = False, as_json: JsonFile = None, page: Page = None) -> None:
    """Measure the fast path: in process, by socket, by Kafka, beside Redis and Structured Streaming, and its store."""
    import os

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: small matrices are slower on several threads
    from pipelines.bench.fastpath.page import judge_goals, list_remarks, write_page
    from pipelines.bench.fastpath.run import FULL, QUICK, measure_parts

    found = measure_parts([Part(part).value for part in only or Part], QUICK if quick else FULL)
    marks = {True: "met", False: "MISSED", None: ""}
    for one in judge_goals(found):
        print(f"{one.what:<70}{one.goal or '':<10}{one.measured:,.4g}  {marks[one.holds]}")
    print(*list_remarks(found), sep="\n")
    write_figure(as_json, found)
    if page is not None:
        print(f"page: {write_page(found, page)}")
