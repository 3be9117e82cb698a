"""What `tidecast bench` measures on a broker or a job that runs for minutes: agent, fleet, raises, spread."""

from __future__ import annotations

from typing import Annotated

import typer

from configs.errors import SettingsError
from configs.settings import load
from pipelines.cli.options import JsonFile, split_names
from pipelines.figures.written import write_figure

MOST_JOBS = 9999


def measure_agent(
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of runs, with and without the agent.")] = 8,
    as_json: JsonFile = None,
) -> None:
    """Measure what the agent costs a job: throughput (records/s) with ÷ without it, and its share of a core.

    Starts a broker of its own; takes minutes. Prints each pair, the ratio's 95 % interval and the median share.

    Raises:
        SettingsError: the address of a service is set, which must not be emptied (status 2).
        StackError, ProcessError, BrokerError: the broker does not start or answer (status 2).
        JavaError, JarsError: Spark cannot start (status 2).
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.agent.overhead import measure_overhead

    write_figure(as_json, measure_overhead(load(), pairs))


def measure_raise_times(
    raises: Annotated[int, typer.Option(min=1, help="Raises of each arm; runs of the job have 25 of them.")] = 150,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where the last call stopped.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure what raises of a real job take, phase by phase, beside stock Spark's and beside what was predicted.

    Starts a broker and a Spark cluster of its own; 150 raises of each arm take an hour and a half. Prints a line per
    run of the job, then the seconds of both arms. Finished runs of the job are kept for `--resume`.

    Raises:
        SettingsError: the address of a service is set, or the job's contract is wrong (status 2).
        RaiseError: the job refuses a decision (status 2).
        StackError, ProcessError, PortError, BrokerError: broker, cluster or job do not start or answer (status 2).
        JavaError, JarsError: Spark cannot start (status 2).
        RunError, EventLogError: what a run of the job left is broken (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.bench.raises.measure import measure_raises
    from pipelines.bench.raises.text import format_raises

    figures = measure_raises(load(), raises, resume)
    print(format_raises(figures))
    write_figure(as_json, figures)


def measure_fleet_sizes(
    jobs: Annotated[str, typer.Option("--jobs", help="Numbers of jobs, commas between.")] = "10,100,500",
    minutes: Annotated[float, typer.Option(min=1, help="Minutes that are measured, for each number.")] = 5.0,
    as_json: JsonFile = None,
) -> None:
    """Measure by the number of jobs how late autoscaler and stream server answer, and what all parts take.

    These are cores and memory of both and of the broker, then those of an ingest and of a training; and from how many
    jobs on each part needs a second core. Starts a broker of its own for each number; blocks for `minutes` and some
    five more each.

    Raises:
        SettingsError: a number is none, or the address of a service is set (status 2).
        StackError, ProcessError, BrokerError: a process does not start or ends, or the broker does not answer
            (status 2).
        JavaError, JarsError: Spark cannot start (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.bench.fleet.measure import measure_fleet

    sizes = [int(part) for part in split_names(jobs) if part.isdecimal() and 0 < int(part) <= MOST_JOBS]
    if len(sizes) < len(split_names(jobs)) or not sizes:
        raise SettingsError(f"--jobs {jobs!r}: numbers from 1 to {MOST_JOBS:,} are expected, as 10,100.")
    write_figure(as_json, measure_fleet(load(), sizes, minutes))


def measure_spread_of_jobs(as_json: JsonFile = None) -> None:
    """Measure what the autoscaler takes for a metric of 500 and of 2,000 jobs, on one and on four partitions.

    It decides on a recorded log, three times, as fast as it can; the decisions have to be the same. Blocks for a
    quarter of an hour.

    Raises:
        JavaError, JarsError: Spark cannot start (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.bench.fleet.spread import measure_spread

    write_figure(as_json, measure_spread(load()))
