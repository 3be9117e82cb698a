"""`tidecast bench signed`: what a signed plan costs."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import JsonFile, resumed_from
from pipelines.figures.written import write_figure


def measure_signed_plans(
    quick: Annotated[bool, typer.Option("--quick", help="Few records: shows that everything runs.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Take from the JSON file the operators that it has.")
    ] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure the throughput of each signed operator beside the plain DataFrame job, on appended records, one core.

    Prints a line per operator: records/s of both, the median ratio of the pairs of runs and its 95 % interval. Takes
    half an hour or more.

    Raises:
        SettingsError: a setting is wrong, or `--resume` without `--json` (status 2).
        JavaError, JarsError: Spark cannot start (status 2).
        OSError, ValueError: the JSON file cannot be read or written.
    """
    import json
    from functools import partial

    from pipelines.bench.signed.price import FULL, QUICK, measure_price
    from pipelines.spark.session import local_session

    file = resumed_from(as_json, resume)
    kept = json.loads(file.read_text())["data"] if file is not None and file.is_file() else None
    spark = local_session("signed", cores=1)
    try:
        figures = measure_price(spark, QUICK if quick else FULL, kept, partial(write_figure, as_json))
    finally:
        spark.stop()
    write_figure(as_json, figures)
