"""`tidecast bench borders`: one corpus of records before every reader of every topic."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from pipelines.cli.given import JsonFile
from pipelines.figures.written import write


def bench(
    seed: Annotated[int, typer.Option(help="Of the drawn records.")] = 7,
    as_json: JsonFile = None,
) -> None:
    """Feed sound and wrong records to every reader: all must give the same verdict, and none may stop."""
    from pipelines.bench.borders.compare import measure
    from pipelines.spark.session import local_session

    logging.getLogger("tidecast").setLevel(logging.ERROR)  # the agent says every record that it rejects
    spark = local_session("borders", cores=1, kafka=False)
    try:
        found = measure(spark, seed)
    finally:
        spark.stop()
    print(f"{found['records']} records, {found['verdicts']} verdicts of {', '.join(found['readers'])}")
    for name in ("stopped", "differing", "unexpected"):
        print(f"{name}: {len(found[name])}")
        for record, reader, what in found[name]:
            print(f"  {record}: {reader}: {what}")
    write(as_json, found)
