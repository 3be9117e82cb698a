"""What `tidecast bench borders` and `fuzz` measure: what comes from outside, before everything that reads it."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from pipelines.cli.options import JsonFile
from pipelines.figures.written import write_figure


def measure_borders(
    seed: Annotated[int, typer.Option(help="Seed of the drawn records.")] = 7, as_json: JsonFile = None
) -> None:
    """Feed valid and invalid records to every reader of the topics: all must give the same verdict, none may stop.

    Prints each record on which a reader stopped or differed from the reference reader, or that erred; status 0.

    Raises:
        SettingsError: a setting is wrong (status 2).
        JavaError, JarsError: Spark cannot start (status 2).
        Exception: of the lake's gate; errors of other readers are printed.
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.borders.compare import compare_readers
    from pipelines.spark.session import local_session

    logging.getLogger("tidecast").setLevel(logging.ERROR)  # the agent says every record that it rejects
    spark = local_session("borders", cores=1)
    try:
        figures = compare_readers(spark, seed)
    finally:
        spark.stop()
    print(f"{figures['records']} records, {figures['verdicts']} verdicts of {', '.join(figures['readers'])}")
    for name in ("stopped", "differing", "unexpected"):
        print(f"{name}: {len(figures[name])}")
        for record, reader, what in figures[name]:
            print(f"  {record}: {reader}: {what}")
    write_figure(as_json, figures)


def measure_damaged_inputs(
    count: Annotated[int, typer.Option("--inputs", min=1, help="For each border.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the damage.")] = 7,
    as_json: JsonFile = None,
) -> None:
    """Give damaged messages, frames, YAML, CSV, artifacts and states to what reads them; none may end it.

    Prints a line per border, then each input that ended a reader or was accepted wrongly; status 0.

    Raises:
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.borders.fuzz import fuzz_borders

    figures = fuzz_borders(count, seed)
    for name, border in figures["borders"].items():
        for what, shown, why in border["faults"]:
            print(f"{name}: {what}: {shown}: {why}")
    print(f"{figures['inputs']:,} inputs, {figures['crashed']} crashed, {figures['unsound']} unsound")
    write_figure(as_json, figures)
