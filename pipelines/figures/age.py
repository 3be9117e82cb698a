"""Which figures are older than the code they measure, as git knows it; docstrings and comments do not count."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pipelines.figures import goals
from pipelines.figures.form import Figure


def list_outdated(figures: Mapping[str, Figure], root: Path) -> list[str]:
    """List the figures whose measured code changed since, or whose age is unknown, a line each; runs git.

    What several calls measured is as old as the oldest of them.
    """
    history = read_history(root)
    return [f"{name}: {why}" for name, figure in figures.items() if (why := _older(figure, root, history))]


def list_missing(figures: Mapping[str, Figure]) -> list[str]:
    """Return the commands of `goals.yaml` that no figure is of."""
    measured = {goals_met.command for one in figures.values() if (goals_met := goals.goals_of(one.command))}
    return [one.command for one in goals.read_goals() if one.command not in measured]


def read_history(root: Path) -> dict[str, int]:
    """Return the place of each commit of this branch by its 40 digits, the oldest first; runs git, empty without it."""
    commits = (_git(root, "log", "--format=%H") or "").splitlines()  # by date, none before what it was made from
    return {commit: place for place, commit in enumerate(reversed(commits))}


def find_oldest(figure: Figure, history: Mapping[str, int]) -> str | None:
    """Find the oldest of the commits that measured a figure, its 40 digits; the first where the branch has none."""
    commits = [one.removesuffix("-dirty") for one in figure.commits]
    oldest = min((one for one in commits if one in history), key=history.__getitem__, default=None)
    return oldest or next(iter(commits), None)


def _older(figure: Figure, root: Path, history: Mapping[str, int]) -> str | None:
    asked = goals.goals_of(figure.command)
    if asked is None:
        return f"`{figure.command}` is not in goals.yaml, so nobody knows what it measures"
    measured = find_oldest(figure, history)
    if figure.commit is None or measured is None:
        return "the code that measured it was not written down"
    for commit in figure.commits:
        if _git(root, "cat-file", "-e", f"{commit.removesuffix('-dirty')}^{{commit}}") is None:
            return f"its commit {commit[:7]} is not in this clone"
    newest = _git(root, "rev-parse", "HEAD") or "HEAD"
    touched = (_git(root, "diff", "--name-only", measured, newest, "--", *asked.measures) or "").splitlines()
    changed = [file for file in touched if _code(root, measured, file) != _code(root, newest, file)]
    if not changed:
        return None
    commits = (_git(root, "log", "--format=%h %cs %s", f"{measured}..HEAD", "--", *changed) or "").splitlines()
    if not commits:
        return f"of {figure.date}; its commit {measured[:7]} measured other code, and is not in this branch's history"
    return f"of {figure.date}; {len(commits)} commits changed what it measures since, the newest {commits[0]}"


@cache
def _code(root: Path, commit: str, file: str) -> str | None:
    """A file's content at a commit; of Python its syntax tree without docstrings. None where it is not there."""
    text = _git(root, "show", f"{commit}:{file}")
    if text is None or not file.endswith(".py"):
        return text
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [one for one in body if not _is_text(one)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _git(root: Path, *words: str) -> str | None:
    """What git says; None where it refuses."""
    try:
        ran = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return ran.stdout.strip()
