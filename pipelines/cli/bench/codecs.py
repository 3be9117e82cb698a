"""`tidecast bench codecs`: what compression costs and saves on a topic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.options import JsonFile
from pipelines.figures.written import write_figure


def measure_compression(
    sample: Annotated[
        list[Path] | None, typer.Option(help="A file with a record per line, of a topic named as the file.")
    ] = None,
    batch_bytes: Annotated[int, typer.Option(min=1, help="Most bytes that are compressed together.")] = 16_384,
    quick: Annotated[bool, typer.Option("--quick", help="Few records: shows that everything runs.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure ratio and speed of lz4, zstd and gzip on the records of topics, and say which is the cheapest.

    Records are drawn as they stand on `events`, `metrics` and `forecasts`, or are those of the files. Prices are told
    for idle cores and network, a busy network, and busy cores, at 125 MB/s.

    Raises:
        SampleError: a file holds no record (status 2).
        OSError: a file cannot be read, or the JSON file not written.
    """
    from pipelines.bench.codecs.measure import measure_codecs
    from pipelines.bench.codecs.samples import read_lines

    records = {path.stem: read_lines(path) for path in sample} if sample else None
    write_figure(as_json, measure_codecs(records, batch_bytes, quick))
