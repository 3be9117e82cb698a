"""Which figures are older than the code they measure, as git knows it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from pipelines.figures import goals
from pipelines.figures.form import Figure


def list_outdated(figures: Mapping[str, Figure], root: Path) -> list[str]:
    """List the figures whose measured code changed since, or whose age is unknown, a line each; runs git."""
    return [f"{name}: {why}" for name, figure in figures.items() if (why := _older(figure, root))]


def list_missing(figures: Mapping[str, Figure]) -> list[str]:
    """Return the commands of `goals.yaml` that no figure is of."""
    measured = {goals_met.command for one in figures.values() if (goals_met := goals.goals_of(one.command))}
    return [one.command for one in goals.read_goals() if one.command not in measured]


def _older(figure: Figure, root: Path) -> str | None:
    asked = goals.goals_of(figure.command)
    if asked is None:
        return f"`{figure.command}` is not in goals.yaml, so nobody knows what it measures"
    if figure.commit is None:
        return "the code that measured it was not written down"
    measured = figure.commit.removesuffix("-dirty")
    if _git(root, "cat-file", "-e", f"{measured}^{{commit}}") is None:
        return f"its commit {measured[:7]} is not in this clone"
    since = _git(root, "log", "--format=%h %cs %s", f"{measured}..HEAD", "--", *asked.measures)
    if not since:
        return None
    changes = since.splitlines()
    return f"of {figure.date}; {len(changes)} commits changed what it measures since, the newest {changes[0]}"


def _git(root: Path, *words: str) -> str | None:
    """What git says; None where it refuses."""
    try:
        ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ran.stdout.strip()
