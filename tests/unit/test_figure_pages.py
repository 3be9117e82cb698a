"""Figures: their form, what a command writes, the pages made of them, and their age as git tells it."""

import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from configs.settings import ROOT
from pipelines.figures import age, goals, written
from pipelines.figures.form import Figure, FigureError, Finding, read_figure
from pipelines.pages import figure_tables
from pipelines.pages.__main__ import main

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
SHIPPED = figure_tables.read_figures(ROOT / "docs" / "figures")


def figure(*rows, command="tidecast bench twin", commit=None, data=None):
    return Figure(command, commit, "2026-11-21", "2 cores, 24 GB", 1830.0, list(rows), data or {})


def named_figures(text):
    """Names of the figures that a page shows, in order, repeated ones too."""
    names = [region["names"] for region in figure_tables.REGION.finditer(text)]
    return [re.split("[.#]", name)[0] for one in names for name in ([one] if "." in one else one.split())]


@pytest.mark.parametrize(
    ("goal", "measured", "holds"),
    [
        ("<= 1.05", 1.05, True), ("<= 1.05", 1.06, False), (">= 0.5", 0.5, True), (">= 0.5", 0.49, False),
        ("== 0", 0, True), ("== 0", 1, False), ("< 2", 2, False), ("> 2", 2, False), ("within 3", -3.0, True),
        ("within 3", 3.1, False), ("within 3", -3.1, False), ("0.8 to 1.2", 0.8, True), ("0.8 to 1.2", 1.2, True),
        ("0.8 to 1.2", 0.79, False), ("0.8 to 1.2", 1.21, False), ("-1 to 0", -0.5, True), (None, 7, None),
        ("<= 1", None, None),
    ],
)  # fmt: skip
def test_a_verdict_by_hand(goal, measured, holds):
    assert Finding("a row", goal, measured).holds is holds


@pytest.mark.parametrize("goal", ["below 2", "<= two", "2", "~ 3"])
def test_a_goal_that_nobody_can_judge_is_refused(goal):
    with pytest.raises(FigureError, match="a row"):
        _ = Finding("a row", goal, 1.0).holds


@given(NUMBERS, st.none() | st.integers(0, 9), st.none() | st.lists(NUMBERS, min_size=2, max_size=2))
def test_what_is_written_is_read_again(tmp_path_factory, measured, n, interval):
    path = tmp_path_factory.mktemp("figures") / "one.json"
    made = figure(
        Finding('a "row" | µs', "<= 1.5", measured, n, interval), Finding("told", None, "none"), data={"a": [{"b": 1}]}
    )
    path.write_text(made.to_text())
    assert read_figure(path) == made
    assert json.loads(path.read_text())["rows"][0]["holds"] is (measured <= 1.5)


def test_a_verdict_that_was_set_by_hand_is_refused(tmp_path):
    path = tmp_path / "one.json"
    path.write_text(figure(Finding("cost", "<= 1.05", 1.2)).to_text().replace('"holds": false', '"holds": true'))
    with pytest.raises(FigureError, match="computed"):
        read_figure(path)


@pytest.mark.parametrize("text", ["{", "{}", '{"rows": []}', "3", "null"])
def test_what_is_no_figure_is_refused_by_name(tmp_path, text):
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(FigureError, match=r"odd\.json"):
        read_figure(tmp_path / "odd.json")


@pytest.mark.parametrize(
    "change", [lambda row: row.pop("holds"), lambda row: row.pop("what"), lambda row: row.update(x=1)]
)
def test_a_row_of_other_keys_is_refused_by_place(tmp_path, change):
    content = json.loads(figure(Finding("cost", None, 1.2), Finding("time", None, 3.0)).to_text())
    change(content["rows"][1])
    (tmp_path / "odd.json").write_text(json.dumps(content))
    with pytest.raises(FigureError, match=r"odd\.json: row 1 .* the keys what, goal, measured, .*holds are expected"):
        read_figure(tmp_path / "odd.json")


def test_a_command_writes_rows_for_its_goals(tmp_path, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["tidecast", "bench", "agent", "--pairs", "2", "--json", "x.json", "--page=y.html"]
    )
    data = {"ratio": 0.98, "ratio_low": 0.97, "ratio_high": 0.999}
    written.write_figure(tmp_path / "new" / "agent.json", data)
    found = read_figure(tmp_path / "new" / "agent.json")
    assert found.command == "tidecast bench agent --pairs 2"
    assert [(row.measured, row.holds) for row in found.rows] == [(0.98, False), (None, None)]
    assert found.rows[0].interval == [0.97, 0.999]
    assert found.data == data and found.seconds > 0
    assert re.fullmatch(r"\d+ cores \([1-9]\S* M Python steps/s\), \d+ GB", found.machine)


def test_the_code_that_measured_is_the_commit_of_the_clone():
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    assert (written.find_commit() or "").removesuffix("-dirty") == head


def test_a_figure_that_is_written_anew_leaves_the_code_as_it_was(tmp_path, monkeypatch):
    git(tmp_path, "init", "-q")
    first = commit(tmp_path, "docs/figures/twin.json")
    commit(tmp_path, "models/twin.py")
    monkeypatch.setattr(written, "ROOT", tmp_path)
    (tmp_path / "docs" / "figures" / "twin.json").write_text("{}")
    found = written.find_commit()
    assert found not in (None, first) and len(found) == 40
    (tmp_path / "models" / "twin.py").write_text("another")
    assert written.find_commit() == f"{found}-dirty"
    monkeypatch.setattr(written, "ROOT", tmp_path / "nowhere")
    assert written.find_commit() is None
    released = tmp_path / "COMMIT"
    released.write_text(f"{first}\n")
    monkeypatch.setattr(written, "RELEASED", released)  # an image has no clone
    assert written.find_commit() == first


def test_what_is_measured_may_be_a_ratio_or_a_difference():
    bench = goals.goals_of("tidecast bench dqn")
    data = {"tidecast": {"score": -0.4, "seconds": 10.0}, "peer": {"score": -0.5, "seconds": 15.0}, "stay": -0.6}
    found = {row.what: (row.measured, row.holds) for row in bench.fill_rows(data)}
    assert found["reward per decision above Stable-Baselines3's"] == (pytest.approx(0.1), True)
    assert found["times as fast as Stable-Baselines3"] == (1.5, True)
    alone = {
        row.what: row.measured for row in bench.fill_rows({"tidecast": data["tidecast"], "peer": {"seconds": 0.0}})
    }
    assert alone["reward per decision above Stable-Baselines3's"] is alone["reward per decision, never moving"] is None


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("tidecast backtest map --quick", "tidecast backtest map"),
        ("tidecast backtest --lead-s 60 map a.csv", "tidecast backtest map"),
        ("tidecast backtest google", "tidecast backtest"),
        ("tidecast twin fit 20261122-160220-mpc", "tidecast twin fit"),
        ("tidecast twin fit --job orders --lake", "tidecast twin fit --lake"),
        ("tidecast models list orders", None),
    ],
)
def test_goals_are_found_whatever_options_are_given(line, command):
    found = goals.goals_of(line)
    assert (found and found.command) == command


def test_every_room_that_is_measured_exists():
    assert [path for one in goals.read_goals() for path in one.measures if not (ROOT / path).exists()] == []


def test_every_goal_can_be_judged():
    for asked in goals.read_goals():
        for row in asked.rows:
            assert Finding(row["what"], row.get("goal"), 1.0).holds in ((None,) if "goal" not in row else (True, False))


def test_a_page_shows_what_the_files_say():
    known = {
        "one": figure(Finding("cost", "<= 1.05", 1.2, 160)),
        "two": figure(data={"cells": [{"load": "a|b", "s": 61234.5}]}),
    }
    page = (
        "before\n<!-- figure: one -->\nstale\n<!-- /figure -->\nafter\n<!-- figure: two.cells -->\n<!-- /figure -->\n"
    )
    made = figure_tables.render_figures(page, known, {})
    assert "| cost | ≤ 1.05 | 1.2 | **no** | 160 |" in made
    assert "| a\\|b | 61,234 |" in made and "stale" not in made
    assert "`tidecast bench twin`, 2026-11-21, 2 cores, 24 GB, 1,830 s" in made
    assert figure_tables.render_figures(made, known, {}) == made
    assert named_figures(page) == ["one", "two"]


def test_a_page_shows_a_part_of_a_figure_with_the_source_of_that_part():
    told, bounded = goals.goals_of("tidecast bench team").list_part("alerts")[:2]
    other = goals.goals_of("tidecast bench team").list_part("pools")[0]
    source = {"command": "tidecast bench team --parts alerts", "date": "2026-11-22", "seconds": 3.0}
    rows = [Finding(other, None, 1.0), Finding(told, None, 2.0), Finding(bounded, None, 3.0)]
    made = {"team": figure(*rows, command="tidecast bench team", data={"alerts": {"source": source}, "pools": {}})}
    page = figure_tables.render_figures("<!-- figure: team#alerts -->\n<!-- /figure -->", made, {})
    assert page.count("\n| ") == 4 and other not in page and told in page and bounded in page
    assert "`tidecast bench team --parts alerts`, 2026-11-22, 2 cores, 24 GB, 3 s" in page
    assert named_figures(page) == ["team"]
    both = figure_tables.render_figures("<!-- figure: team#pools team#alerts -->\n<!-- /figure -->", made, {})
    assert both.count("\n| ") == 5 and "`tidecast bench team`, 2026-11-21" in both
    unmeasured = figure(Finding(other, None, None), command="tidecast bench team")
    page = figure_tables.render_figures("<!-- figure: team#pools -->\n<!-- /figure -->", {"team": unmeasured}, {})
    assert "not measured" in page and "2026-11-21" not in page


def test_a_page_shows_objects_in_objects_a_row_each():
    schemes = {"default": {"fixed": {"ms": 37.25, "n": 10, "rival": {"ms": 0.5}}}, "ours": {"fixed": {"ms": 18.0}}}
    known = {"two": figure(data={"jobs": {"a job, steady": {**schemes, "source": {"seconds": 3.0}}}})}
    page = "<!-- figure: two.jobs.a job, steady -->\n<!-- /figure -->"
    assert figure_tables.render_figures(page, known, {}).splitlines()[1:-1] == [
        "|  | ms | n | rival: ms |", "| --- | --- | --- | --- |", "| default, fixed | 37.25 | 10 | 0.5 |",
        "| ours, fixed | 18 |  |  |",
    ]  # fmt: skip
    assert named_figures(page) == ["two"]


def test_a_page_names_the_oldest_code_and_whether_files_differed_from_it():
    first, second, away = "a" * 40, "b" * 40, "c" * 40
    cells = [{"commit": first}, {"commit": f"{second}-dirty"}, {"commits": [away, "unknown"]}, {"commit": None}]
    history = {first: 20, second: 10}
    made = figure(Finding("cost", None, 1.0), commit=first, data={"cells": cells})
    page = figure_tables.render_figures("<!-- figure: one -->\n<!-- /figure -->", {"one": made}, history)
    assert f"code of {second[:7]} (the oldest of 3 commits) with changes, 2 cores" in page
    alone = figure(Finding("cost", None, 1.0), commit=f"{away}-dirty")
    page = figure_tables.render_figures("<!-- figure: one -->\n<!-- /figure -->", {"one": alone}, history)
    assert f"code of {away[:7]} with changes, 2 cores" in page


@pytest.mark.parametrize("name", ["three", "three#x", "two.rows", "two.cells.x", "two#cells"])
def test_a_page_that_asks_for_what_is_not_there_is_refused(name):
    known = {"two": figure(data={"cells": [{"a": 1}]})}
    with pytest.raises(FigureError, match=re.split("[.#]", name)[0]):
        figure_tables.render_figures(f"<!-- figure: {name} -->\n<!-- /figure -->", known, {})


def test_a_table_of_measurements_outside_of_a_figure_is_found():
    typed = "| what | Measured |\n|---|---|\n| x | 3 |\n"
    assert figure_tables.find_typed_tables(typed) == ["| what | Measured |"]
    assert figure_tables.find_typed_tables(f"<!-- figure: one -->\n{typed}<!-- /figure -->") == []


def test_the_pages_are_what_their_figures_render(capsys):
    assert main(check=True) == 0, capsys.readouterr().out


def test_every_figure_is_shown_on_a_page():
    shown = {name for page in figure_tables.list_pages(ROOT) for name in named_figures(page.read_text())}
    assert set(SHIPPED) - shown == set()


def git(folder, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    ran = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def commit(folder, path, text=None):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text or str(len(git(folder, "log", "--oneline", "--all"))))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", f"change {path}")
    return git(folder, "rev-parse", "HEAD")


def test_a_figure_is_older_once_a_room_it_measures_has_changed(tmp_path):
    git(tmp_path, "init", "-q")
    first = commit(tmp_path, "models/twin/job.py")
    twin, agent = figure(commit=first), figure(command="tidecast bench agent", commit=f"{first}-dirty")
    known = {"twin": twin, "agent": agent}
    assert age.list_outdated(known, tmp_path) == []
    commit(tmp_path, "docs/page.md")
    assert age.list_outdated(known, tmp_path) == []
    commit(tmp_path, "tidecast/agent.py")
    (old,) = age.list_outdated(known, tmp_path)
    assert old.startswith("agent: of 2026-11-21; 1 commits") and "change tidecast/agent.py" in old
    commit(tmp_path, "models/twin/run.py")
    assert [line.split(":")[0] for line in age.list_outdated(known, tmp_path)] == ["twin", "agent"]


def test_a_figure_of_several_calls_is_as_old_as_the_oldest_of_them(tmp_path):
    git(tmp_path, "init", "-q")
    first = commit(tmp_path, "models/twin/job.py")
    newest = commit(tmp_path, "models/twin/run.py")
    assert age.list_outdated({"twin": figure(commit=newest)}, tmp_path) == []
    (old,) = age.list_outdated({"twin": figure(commit=newest, data={"kept": {"a": [{"commit": first}]}})}, tmp_path)
    assert "1 commits" in old and "change models/twin/run.py" in old
    (lost,) = age.list_outdated({"twin": figure(commit=newest, data={"commits": ["0" * 40]})}, tmp_path)
    assert "0000000 is not in this clone" in lost


def test_what_is_said_of_the_code_makes_no_figure_old(tmp_path):
    git(tmp_path, "init", "-q")
    first = commit(tmp_path, "models/twin/job.py", "def speed():\n    return 2\n")
    known = {"twin": figure(commit=first)}
    commit(tmp_path, "models/twin/job.py", 'def speed():\n    """Return it."""\n    return 2  # records/s\n')
    assert age.list_outdated(known, tmp_path) == []
    commit(tmp_path, "models/twin/job.py", 'def speed():\n    """Return it."""\n    return 3\n')
    assert len(age.list_outdated(known, tmp_path)) == 1


def test_a_figure_of_a_commit_that_was_left_behind_is_listed(tmp_path):
    git(tmp_path, "init", "-q")
    first = commit(tmp_path, "models/twin/job.py")
    left = commit(tmp_path, "models/twin/run.py")
    git(tmp_path, "reset", "-q", "--hard", first)
    (old,) = age.list_outdated({"twin": figure(commit=left)}, tmp_path)
    assert left[:7] in old and "not in this branch's history" in old


def test_a_figure_whose_age_nobody_can_tell_is_listed(tmp_path):
    git(tmp_path, "init", "-q")
    commit(tmp_path, "a")
    known = {
        "unwritten": figure(commit=None),
        "elsewhere": figure(commit="0" * 40),
        "unknown": figure(command="tidecast models list", commit="0" * 40),
    }
    said = age.list_outdated(known, tmp_path)
    assert ["not written down" in said[0], "not in this clone" in said[1], "goals.yaml" in said[2]] == [True] * 3


def test_a_command_without_any_figure_is_listed():
    assert "tidecast bench agent" in age.list_missing({})
    assert "tidecast bench twin" not in age.list_missing({"twin": figure()})
