"""`tidecast bench dqn`: what the DQN learner earns in how long, beside a peer in an environment of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pipelines.cli.given import JsonFile
from pipelines.figures.written import write

Peer = Annotated[Path | None, typer.Option(help="Interpreter of an environment with stable-baselines3.")]


def bench(
    steps: Annotated[int, typer.Option(min=2000, help="Decisions to learn from.")] = 20_000,
    seeds: Annotated[int, typer.Option(min=1, help="Trainings of each; medians are told.")] = 3,
    peer: Peer = None,
    as_json: JsonFile = None,
) -> None:
    """Measure the DQN learner: reward per decision after so many steps, and seconds."""
    from pipelines.bench.dqn.learner import measure

    found = measure(steps, range(1, seeds + 1), peer)
    called = {"tidecast": "tidecast", "plain": "without double learning", "peer": "stable-baselines3"}
    for name, said in called.items():
        if one := found.get(name):
            each = ", ".join(f"{score:.4f}" for score in one["scores"])
            print(f"{said}: reward {one['score']:.4f} ({each}), {one['seconds']:.1f} s ({one['cpu_s']:.1f} s CPU)")
    print(f"never moving: reward {found['stay']:.4f}; doing what is advised: {found['advised']:.4f}")
    write(as_json, found)
