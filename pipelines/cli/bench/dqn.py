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
    seed: int = 1,
    peer: Peer = None,
    as_json: JsonFile = None,
) -> None:
    """Measure the DQN learner: reward per decision after so many steps, and seconds."""
    from pipelines.bench.dqn.learner import measure

    found = measure(steps, seed, peer)
    print(f"tidecast: reward {found['score']:.4f} per decision, {found['seconds']:.1f} s ({found['cpu_s']:.1f} s CPU)")
    print(f"without double learning: reward {found['plain']['score']:.4f}")
    print(f"never moving: reward {found['stay']:.4f}")
    if other := found.get("peer"):
        print(
            f"stable-baselines3 {other['version']}: reward {other['score']:.4f}, "
            f"{other['seconds']:.1f} s ({other['cpu_s']:.1f} s CPU)"
        )
    write(as_json, found)
