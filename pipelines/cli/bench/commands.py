"""`tidecast bench NAME`: every measurement but the fast path's."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from configs.policies import POLICIES
from configs.settings import load
from pipelines.cli.given import JsonFile, listed
from pipelines.figures.written import write_figure

FREE = ",".join(sorted(set(POLICIES) - {"schedule", "dqn"}, key=POLICIES.index))
"""Policies, with commas between, that need neither an agent nor a timetable."""


def agent(
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of runs, with and without the agent.")] = 8,
    as_json: JsonFile = None,
) -> None:
    """Measure what the agent costs a job: throughput with ÷ without it, and its share of a core."""
    from pipelines.bench.agent.overhead import measure_overhead

    write_figure(as_json, measure_overhead(load(), pairs))


def borders(seed: Annotated[int, typer.Option(help="Of the drawn records.")] = 7, as_json: JsonFile = None) -> None:
    """Feed valid and invalid records to every reader of the topics: all must give the same verdict, none may stop."""
    from pipelines.bench.borders.compare import compare_readers
    from pipelines.spark.session import local_session

    logging.getLogger("tidecast").setLevel(logging.ERROR)  # the agent says every record that it rejects
    spark = local_session("borders", cores=1, kafka=False)
    try:
        found = compare_readers(spark, seed)
    finally:
        spark.stop()
    print(f"{found['records']} records, {found['verdicts']} verdicts of {', '.join(found['readers'])}")
    for name in ("stopped", "differing", "unexpected"):
        print(f"{name}: {len(found[name])}")
        for record, reader, what in found[name]:
            print(f"  {record}: {reader}: {what}")
    write_figure(as_json, found)


def dqn(
    steps: Annotated[int, typer.Option(min=2000, help="Decisions to learn from.")] = 20_000,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each; medians are reported.")] = 3,
    peer: Annotated[Path | None, typer.Option(help="Interpreter of an environment with stable-baselines3.")] = None,
    as_json: JsonFile = None,
) -> None:
    """Measure the DQN learner: reward per decision after so many steps, and seconds of training."""
    from pipelines.bench.dqn.learner import compare_learners

    found = compare_learners(steps, range(1, seeds + 1), peer)
    called = {"tidecast": "tidecast", "plain": "without double learning", "peer": "stable-baselines3"}
    for name, said in called.items():
        if one := found.get(name):
            each = ", ".join(f"{score:.4f}" for score in one["scores"])
            print(f"{said}: reward {one['score']:.4f} ({each}), {one['seconds']:.1f} s ({one['cpu_s']:.1f} s CPU)")
    print(f"never moving: reward {found['stay']:.4f}; doing what is advised: {found['advised']:.4f}")
    write_figure(as_json, found)


def lake(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer days and jobs: shows that everything runs.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure the lake: megabytes per job and day, and the driver's memory to read a day, a year, and 500 jobs."""
    from pipelines.bench.lake.reading import measure_reading

    write_figure(as_json, measure_reading(quick))


def twin(
    policies: Annotated[str, typer.Option(help="Names separated by commas.")] = FREE,
    hours: Annotated[float, typer.Option(min=0.1, help="Simulated hours per run.")] = 1.0,
    repeats: Annotated[int, typer.Option(min=1)] = 3,
    as_json: JsonFile = None,
) -> None:
    """Measure how fast the job's simulator runs under each policy: simulated seconds per second of one core."""
    from pipelines.bench.twin.speed import measure_speed

    found = measure_speed(listed(policies), hours, repeats)
    for name, one in found["policies"].items():
        print(f"{name:<17}{one['median']:6.1f} M s/s ({one['lowest']:.1f} to {one['highest']:.1f})")
    print(f"median {found['median']:.1f} million simulated seconds per second and core, {found['runs']} runs")
    write_figure(as_json, found)


def volume(
    minutes: Annotated[float, typer.Option(min=1, help="For how long a job is reported.")] = 30.0,
    quick: Annotated[bool, typer.Option("--quick", help="Three minutes.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Measure how many bytes a day one job, its forecasts and its decisions take on the broker's disk."""
    from pipelines.bench.autoscaler.volume import measure_volume

    write_figure(as_json, measure_volume(load(), 3.0 if quick else minutes))
