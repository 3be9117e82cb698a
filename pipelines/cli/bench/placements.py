"""`tidecast bench placement`: plans beside the best there are."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any

import typer

from configs.settings import load
from pipelines.cli.options import JsonFile, choose_names
from pipelines.cli.placement.placed import planned
from pipelines.figures.form import read_figure
from pipelines.figures.written import describe_source, write_figure

Save = Callable[[dict[str, Any]], None]


def measure_placements(
    parts: Annotated[str, typer.Option(help="Parts of the bench, with commas between; all by default.")] = "",
    as_json: JsonFile = None,
) -> None:
    """Cut graphs into blocks, and put jobs on nodes, by this project's ways and others: how near is each to the best?

    All parts but `settings`, `learned`, `reproduction`, `real`, `moves`, `offload` and `demo` take some half an hour;
    what the file of `--json` says of others stays. `small`: graphs of which all blocks are looked at. `large`: 5,000
    vertices, beside METIS. `papers`: the papers' testbeds in the twin. `jobs`: random ones. `search`: learned placement
    beside all placements. `by_lstm`: that learned from the LSTM. `settings`: that by the paper's settings; half an
    hour. `learned`: the DQN with the LSTM on the random jobs; an hour, it goes on where the file of `--json` ends.
    `performance`: the LSTM beside simple predictors. `reproduction`: that of the paper's size, likewise; half an hour
    more. `times`: how long plans take. `hop`: what a record takes through a topic, on real Spark. `real`: the plan's
    placements and others on two real clusters; hours, it goes on likewise. `moves`: a query of 100,000 keys moves under
    load, and something is killed in each phase of that; an hour, likewise. `offload`: the autoscaler wants more of a
    query than its cluster has, and later less; forty minutes. `demo`: `tidecast plan --demo`, which plans a job anew
    while it runs; six minutes.

    Raises:
        SettingsError: an unknown part; for those on real services, the address of one is set (status 2).
        UnplannedError: the clusters of the demonstration have no room (status 2).
        StackError, ProcessError, PortError, JavaError, BrokerError, TrialError: a service, a cluster or a query of
            these does not start or answer (status 2).
        FigureError: the file of `--json` is there and is no figure (status 2).
        OSError: the JSON file cannot be written.
    """
    found = dict[str, Any]()
    ways = _ways(found)

    def save(name: str, began: float, part: dict[str, Any]) -> None:
        source = describe_source(f"tidecast bench placement --parts {name}", time.monotonic() - began)
        found[name] = {**part, "source": source}
        write_figure(as_json, found)

    names = choose_names("--parts", parts, ways)
    if as_json is not None and as_json.exists():
        found |= read_figure(as_json).data
    for name in names:
        keep = partial(save, name, time.monotonic())
        with planned():
            keep(ways[name](keep))
        print(f"{name}: measured", flush=True)


def _ways(found: Mapping[str, Any]) -> Mapping[str, Callable[[Save], dict[str, Any]]]:
    """How each part is measured, by its name, once all that is known is in `found`; `Save` takes what it comes to."""
    from models.placement.performance.network import LARGE
    from pipelines.bench.placement.blocks import measure_blocks
    from pipelines.bench.placement.hop import measure_hop
    from pipelines.bench.placement.large import measure_large
    from pipelines.bench.placement.learned import measure_by_lstm, measure_paper_settings, measure_search
    from pipelines.bench.placement.learned_jobs import measure_learned_jobs
    from pipelines.bench.placement.moved.measure import measure_moves
    from pipelines.bench.placement.moved.offloaded import measure_offload
    from pipelines.bench.placement.moved.replanned import measure_demo
    from pipelines.bench.placement.papers import measure_papers
    from pipelines.bench.placement.performance import measure_performance
    from pipelines.bench.placement.random_jobs import measure_random_jobs
    from pipelines.bench.placement.real.measure import measure_real
    from pipelines.bench.placement.times import measure_times

    at_once: dict[str, Callable[[], dict[str, Any]]] = {
        "small": measure_blocks, "large": measure_large, "papers": measure_papers, "jobs": measure_random_jobs,
        "by_lstm": measure_by_lstm, "settings": measure_paper_settings, "performance": measure_performance,
        "reproduction": partial(measure_performance, LARGE), "times": measure_times,
    }  # fmt: skip
    return {
        **{name: partial(_whole, measure) for name, measure in at_once.items()},
        "search": measure_search,
        "learned": lambda save: measure_learned_jobs(found.get("learned", {}), save),
        "hop": lambda save: measure_hop(load()),
        "real": lambda save: measure_real(load(), found.get("real", {}), save),
        "moves": lambda save: measure_moves(load(), found.get("moves", {}), save),
        "offload": lambda save: measure_offload(load()),
        "demo": lambda save: measure_demo(load()),
    }


def _whole(measure: Callable[[], dict[str, Any]], save: Save) -> dict[str, Any]:
    return measure()
