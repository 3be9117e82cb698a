"""`tidecast bench signed`: what a signed plan costs."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import JsonFile
from pipelines.figures.written import write_figure


def measure_signed_plans(
    quick: Annotated[bool, typer.Option("--quick", help="Few records: shows that everything runs.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure the throughput of each signed operator beside the plain DataFrame job, on appended records, one core.

    Prints a line per operator: records/s of both, the median ratio of the pairs of runs and its 95 % interval.

    Raises:
        SettingsError: a setting is wrong (status 2).
        JavaError, JarsError: Spark cannot start (status 2).
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.signed.price import FULL, QUICK, measure_price
    from pipelines.spark.session import local_session

    spark = local_session("signed", cores=1)
    try:
        figures = measure_price(spark, QUICK if quick else FULL)
    finally:
        spark.stop()
    write_figure(as_json, figures)
