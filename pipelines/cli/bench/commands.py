"""`tidecast bench NAME`: what is measured, a command each."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.bench import live
from pipelines.cli.bench.backfills import measure_real_backfills
from pipelines.cli.bench.borders import measure_damaged_inputs
from pipelines.cli.bench.chaos import measure_faults_of_parts
from pipelines.cli.bench.contract import measure_capacity_estimates, measure_controller
from pipelines.cli.bench.deadlines import measure_deadlines_kept
from pipelines.cli.bench.gains import measure_gains
from pipelines.cli.bench.placements import measure_placements
from pipelines.cli.bench.signed_plans import measure_signed_plans
from pipelines.cli.bench.site import measure_real_neighbours
from pipelines.cli.bench.soak import measure_long_run
from pipelines.cli.bench.team import measure_team
from pipelines.cli.options import (
    JsonFile,
    Page,
    Processes,
    command_group,
    progress_bar,
    read_seconds,
    resumed_from,
)
from pipelines.figures.written import write_figure

app = command_group("Measure; every command prints figures, and none fails for a goal that is missed.")


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

app.command("agent")(live.measure_agent)
app.command("backfill")(measure_real_backfills)
app.command("capacity")(measure_capacity_estimates)
app.command("controller")(measure_controller)
app.command("chaos")(measure_faults_of_parts)
app.command("deadline")(measure_deadlines_kept)
app.command("fleet")(live.measure_fleet_sizes)
app.command("fuzz")(measure_damaged_inputs)
app.command("headroom")(measure_gains)
app.command("placement")(measure_placements)
app.command("raise")(live.measure_raise_times)
app.command("signed")(measure_signed_plans)
app.command("site")(measure_real_neighbours)
app.command("soak")(measure_long_run)
app.command("spread")(live.measure_spread_of_jobs)
app.command("team")(measure_team)


@app.command("advise")
def measure_advised(as_json: JsonFile = None) -> None:
    """Count how often the right advice comes first, for jobs with a drawn fault and sound ones, all made in the twin.

    Prints a line per job; takes minutes.

    Raises:
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.twin.advice import measure_advice

    write_figure(as_json, measure_advice())


@app.command("dqn")
def measure_dqn(
    peer: Annotated[Path | None, typer.Option(help="Interpreter of an environment with stable-baselines3.")] = None,
    as_json: JsonFile = None,
) -> None:
    """Measure the DQN learner: reward per decision after 20,000 steps, and seconds of training (wall, and of CPU).

    Prints medians over three seeds, each seed's reward, and the rewards of never moving and of following the advice.

    Raises:
        FileNotFoundError, PeerError: `peer` is no interpreter, or what it runs fails.
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.dqn.learner import SEEDS, STEPS, compare_learners

    figures = compare_learners(STEPS, SEEDS, peer)
    called = {"tidecast": "tidecast", "plain": "without double learning", "peer": "stable-baselines3"}
    for name, said in called.items():
        if one := figures.get(name):
            each = ", ".join(f"{score:.4f}" for score in one["scores"])
            print(f"{said}: reward {one['score']:.4f} ({each}), {one['seconds']:.1f} s ({one['cpu_s']:.1f} s CPU)")
    print(f"never moving: reward {figures['stay']:.4f}; doing what is advised: {figures['advised']:.4f}")
    write_figure(as_json, figures)


@app.command("fastpath")
def measure_fastpath(only: Only = None, quick: Quick = False, as_json: JsonFile = None, page: Page = None) -> None:
    """Measure the fast path: in process, by socket, by Kafka, beside Redis and Spark's streaming, and its LMDB store.

    Prints a line per goal with what was measured, in the goal's unit, and whether it is met; status 0 even where one is
    missed. A part that fails is named with its error, and the others go on. Sets OMP_NUM_THREADS to 1 if it is unset.

    Raises:
        FigureError: a goal of the command cannot be read (status 2).
        OSError: the JSON file or the page cannot be written.
    """
    import os

    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: small matrices are slower on several threads
    from pipelines.bench.fastpath.page import judge_goals, list_remarks, write_page
    from pipelines.bench.fastpath.run import FULL, QUICK, measure_parts

    figures = measure_parts([Part(part).value for part in only or Part], QUICK if quick else FULL)
    marks = {True: "met", False: "MISSED", None: ""}
    for one in judge_goals(figures):
        print(f"{one.what:<70}{one.goal or '':<10}{one.measured:,.4g}  {marks[one.holds]}")
    print(*list_remarks(figures), sep="\n")
    write_figure(as_json, figures)
    if page is not None:
        print(f"page: {write_page(figures, page)}")


@app.command("promise")
def measure_promise_kept(
    loads: Annotated[
        str, typer.Option(help="Files or shipped series, with commas between; else the value map's.")
    ] = "",
    lead_s: Annotated[
        str, typer.Option(help="Seconds until an executor asked for works, numbers with commas between.")
    ] = "10,60,180,600,1800",
    days: Annotated[float, typer.Option(min=1, help="Most days of each load.")] = 14.0,
    resume: Annotated[bool, typer.Option("--resume", help="Take from the JSON file the cells that it has.")] = False,
    as_json: JsonFile = None,
) -> None:
    """Steer mpc by promises of 0.1, 1 and 5 % in the twin: is each kept, and for how much beside hindsight?

    Prints a line per load, lead time and promise; a minute or so for each load. Nothing is tuned for any of them, and
    the contract's lead time is up to three times too long or too short. Before that, on four loads: what becomes of
    the promise when executors begin to take 60 s to start instead of 10.

    Raises:
        SettingsError: `--resume` without `--json`, or from a file of other days or of a load that is another one now; a
            lead time that is no number above 0 (status 2).
        SeriesError, TraceError: a load cannot be read (status 2).
        FigureError: the file to resume from is no file of figures (status 2).
        OSError: the JSON file cannot be read or written.
    """
    from pipelines.backtest.load import list_map_loads
    from pipelines.bench.twin.promise import measure_promise

    names = [name.strip() for name in loads.split(",")] if loads else list_map_loads()
    kept, save = resumed_from(as_json, resume), partial(write_figure, as_json)
    found = measure_promise(names, read_seconds("--lead-s", lead_s), days, kept, save)
    if found["n"]:
        print(
            f"{found['n']} judged: {found['within']:.0%} within 1.25 x the budget, {found['beyond']} over 2 x; "
            f"median cost {found['cost']:.3f} x hindsight"
        )
    write_figure(as_json, found)


@app.command("backtest")
def measure_backtest(processes: Processes = 2, as_json: JsonFile = None) -> None:
    """Measure how long a backtest of 60 days at 5 minutes takes, with all policies and one lead time.

    Raises:
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.twin import backtest_speed

    with progress_bar("backtest") as report_share:
        found = backtest_speed.measure_backtest(processes, report_share)
    print(backtest_speed.format_time(found))
    write_figure(as_json, found)


@app.command("twin")
def measure_twin(as_json: JsonFile = None) -> None:
    """Measure how fast the job's simulator runs under each policy, in 10⁶ simulated seconds per second of one core.

    The seconds are summed over 2048 runs of an hour and divided by this process's CPU time; median (lowest to highest)
    of three. Policies that need an agent or a timetable are left out.

    Raises:
        OSError: the JSON file cannot be written.
    """
    from pipelines.bench.twin.speed import measure_speed

    figures = measure_speed()
    for name, one in figures["policies"].items():
        print(f"{name:<17}{one['median']:6.1f} M s/s ({one['lowest']:.1f} to {one['highest']:.1f})")
    print(f"median {figures['median']:.1f} million simulated seconds per second and core, {figures['runs']} runs")
    write_figure(as_json, figures)
