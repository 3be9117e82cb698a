"""`tidecast bench placement`: plans beside the best there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from configs.errors import SettingsError
from pipelines.cli.options import JsonFile, split_names
from pipelines.figures.form import read_figure
from pipelines.figures.written import write_figure


def measure_placements(
    parts: Annotated[str, typer.Option(help="Of the bench, with commas between; all by default.")] = "",
    as_json: JsonFile = None,
) -> None:
    """Cut graphs into blocks, and put jobs on nodes, by this project's ways and others: how near is each to the best?

    All parts take some half an hour; what the file of `--json` says of the others stays. `small`: graphs of which all
    blocks are looked at. `large`: 5,000 vertices, beside METIS. `papers`: the papers' testbeds in the twin. `jobs`:
    random ones. `search`: learned placement beside all placements. `performance`: the LSTM beside simple predictors.

    Raises:
        SettingsError: an unknown part (status 2).
        FigureError: the file of `--json` is there and is no figure (status 2).
        OSError: the JSON file cannot be written.
    """
    ways = _ways()
    names = split_names(parts) or list(ways)
    if unknown := [name for name in names if name not in ways]:
        raise SettingsError(f"--parts {unknown[0]!r}: there is no such part; there are {', '.join(ways)}.")
    found = dict(read_figure(as_json).data) if as_json is not None and as_json.exists() else {}
    for name in names:
        found[name] = ways[name]()
        print(f"{name}: measured", flush=True)
        write_figure(as_json, found)


def _ways() -> Mapping[str, Callable[[], dict[str, Any]]]:
    from pipelines.bench.placement.blocks import measure_blocks
    from pipelines.bench.placement.large import measure_large
    from pipelines.bench.placement.learned import measure_performance, measure_search
    from pipelines.bench.placement.papers import measure_papers
    from pipelines.bench.placement.random_jobs import measure_random_jobs

    return {
        "small": measure_blocks, "large": measure_large, "papers": measure_papers, "jobs": measure_random_jobs,
        "search": measure_search, "performance": measure_performance,
    }  # fmt: skip
