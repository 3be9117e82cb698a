"""From a package to a file that other commands read, and what is said of one that is not the known one."""

import hashlib
import re
import zipfile
from dataclasses import replace

import pandas as pd
import pytest
from typer.testing import CliRunner

from pipelines.cli.app import app
from pipelines.traces.series_file import read_series
from pipelines.traces.unseen import rebuild as rebuilding
from pipelines.traces.unseen.packages import Package, PackageError
from pipelines.traces.unseen.rebuild import make_steps, rebuild
from pipelines.traces.unseen.recipes import RECIPES, Recipe

PACKAGE = Package("loads", "1.2", "loads-1.2-py3-none-any.whl")
RECIPE = Recipe(file="mine_1h.csv", package=PACKAGE, member="mine.csv", step_s=3600, time=("when",), sha256="0" * 64)
HOURLY = replace(RECIPE, value="load")


def text(**columns):
    return pd.DataFrame(columns, dtype=object)


def made(recipe, **columns):
    """Seconds since 2024-01-01 and values of the steps."""
    steps = make_steps(text(**columns), recipe)
    return (steps.times - 1_704_067_200).tolist(), steps.values.tolist()


def test_rows_are_events_where_no_value_is_named():
    when = ["2024-01-01 00:10:00", "2024-01-01T00:20:00Z", "2024-01-01 02:00:00", "2024-01-01 03:59:59"]
    assert made(RECIPE, when=when) == ([0, 3600, 7200], [2, 0, 1])


def test_different_values_are_events_each_at_its_first_row():
    recipe = replace(RECIPE, time_format="%m/%d/%Y %H:%M", distinct="order")
    when = ["1/1/2024 0:10", "1/1/2024 0:20", "1/1/2024 1:20", "1/1/2024 1:30", "1/1/2024 2:00"]
    assert made(recipe, when=when, order=["a", "b", "a", "c", "d"]) == ([0, 3600], [2, 1])


def test_delays_are_added_and_what_never_left_is_no_event():
    recipe = replace(RECIPE, time=("day", "hour"), time_format="%Y-%m-%d %H", delay_min="late")
    days, hours = ["2024-01-01"] * 5, [0, 0, 0, 1, 23]
    assert made(recipe, day=days, hour=hours, late=[-1, 30, 61, None, 0])[1][:3] == [1, 1, 1]


def test_values_are_taken_at_their_times_without_the_missing_and_the_second_of_one_time():
    when = [f"2024-01-01 0{hour}:00:00" for hour in (0, 1, 1, 2, 3)]
    assert made(HOURLY, when=when, load=["1", "2", "9", None, "4"]) == ([0, 3600, 10800], [1, 2, 4])


def test_rows_without_a_column_of_times_follow_each_other_from_the_named_time_on():
    recipe = replace(HOURLY, time=(), begin="2024-01-01", newest=2)
    assert made(recipe, load=[1, 2, 3]) == ([3600, 7200], [2, 3])


def test_minutes_are_averaged_to_longer_steps():
    recipe = replace(HOURLY, time=("day", "when"), time_format="%d/%m/%Y %H:%M", own_step_s=1200, step_s=3600)
    when = ["00:00", "00:20", "00:40", "01:00", "02:00", "02:40"]
    columns = {"day": ["01/01/2024"] * 6, "when": when, "load": ["1", "2", "3", "4", "5", "7"]}
    assert made(recipe, **columns) == ([0, 7200], [2, 6])
    assert made(replace(recipe, least_known=0.0), **columns) == ([0, 3600, 7200], [2, 4, 6])


@pytest.mark.parametrize(
    ("when", "load"), [("yesterday", "1"), (None, "1"), ("2024-01-01", "much"), ("01.01.2024", "1")]
)
def test_a_time_or_value_of_another_form_is_told_with_file_member_and_package(when, load):
    with pytest.raises(PackageError, match=r"mine_1h\.csv: mine\.csv of loads 1\.2 is of another form"):
        made(HOURLY, when=["2024-01-01 00:00:00", when], load=["1", load])


@pytest.fixture
def packages(tmp_path):
    rows = [f"2024-01-01 {hour:02d}:00:00,{value}" for hour, value in enumerate([3, 1.25, 0, "", 2])]
    with zipfile.ZipFile(tmp_path / PACKAGE.archive, "w") as archive:
        archive.writestr("mine.csv", "\n".join(["when,load", *rows]))
        archive.writestr("empty.csv", "when,load\n")
    return tmp_path


def test_a_file_is_written_that_is_read_again_and_known_by_its_checksum(packages, tmp_path):
    (built,) = rebuild(tmp_path / "new" / "files", packages, [HOURLY])
    expected = (
        "time,value\n2024-01-01 00:00:00,3\n2024-01-01 01:00:00,1.25\n2024-01-01 02:00:00,0\n2024-01-01 04:00:00,2\n"
    )
    assert built.path.read_bytes().decode() == expected
    assert (built.rows, built.first, built.last) == (4, "2024-01-01 00:00:00", "2024-01-01 04:00:00")
    assert built.sha256 == hashlib.sha256(expected.encode()).hexdigest() and not built.same
    assert replace(built, expected=built.sha256).same
    series = read_series(built.path)
    assert (series.start, series.step_s, len(series)) == (1_704_067_200, 3600, 5)


def test_a_package_without_a_known_step_is_told(packages, tmp_path):
    with pytest.raises(PackageError, match=r"mine_1h\.csv: no step is known in empty\.csv of loads 1\.2"):
        list(rebuild(tmp_path, packages, [replace(HOURLY, member="empty.csv")]))


def run(monkeypatch, packages, recipe):
    monkeypatch.setattr(rebuilding.rebuild, "__defaults__", ([recipe],))
    return CliRunner().invoke(app, ["traces", "rebuild", str(packages / "files"), "--packages", str(packages)])


def test_the_command_names_a_differing_file_with_both_checksums_and_ends_with_1(monkeypatch, packages):
    ended = run(monkeypatch, packages, HOURLY)
    assert ended.exit_code == 1
    assert re.search(rf"mine_1h\.csv: SHA-256 [0-9a-f]{{64}} instead of {'0' * 64}", ended.output)
    known = re.search("SHA-256 ([0-9a-f]{64})", ended.output)[1]
    ended = run(monkeypatch, packages, replace(HOURLY, sha256=known))
    assert ended.exit_code == 0 and "instead" not in ended.output and known in ended.output


def test_the_recipes_are_of_different_files_and_each_tells_when_and_what():
    assert len({recipe.file for recipe in RECIPES}) == len({recipe.sha256 for recipe in RECIPES}) == 12
    for recipe in RECIPES:
        assert re.fullmatch("[0-9a-f]{64}", recipe.sha256), recipe.file
        assert bool(recipe.time) != bool(recipe.begin), recipe.file
        assert recipe.package.archive.startswith(f"{recipe.package.name}-{recipe.package.version}"), recipe.file
        assert recipe.value is None or recipe.distinct is None, recipe.file
