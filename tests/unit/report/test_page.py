import json
import re

import pytest

from pipelines.report import tables
from pipelines.report.page import render_report
from tests.fakes import run_dir


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    ours, theirs = tmp_path_factory.mktemp("ours"), tmp_path_factory.mktemp("theirs")
    run_dir.write(ours, seconds=60, stop=(50, 3))
    run_dir.write(theirs, policy="reactive", seconds=60)
    return {
        "compared": render_report(ours, theirs).page.read_text(),
        "reactive": render_report(theirs).page.read_text(),
        "ours": ours,
    }


def figures(page):
    found = re.search(r'<script type="application/json" id="charts">(.*?)</script>', page, re.DOTALL)
    return json.loads(found.group(1), parse_constant=pytest.fail)


def undressed(value):
    """Named colours replaced, so that Plotly's own checks can read the figure."""
    if isinstance(value, dict):
        return {k: undressed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [undressed(v) for v in value]
    return "#123456" if isinstance(value, str) and re.fullmatch(r"@[a-z]+(/\d+)?", value) else value


def check_by_plotly(figure):
    from plotly.graph_objects import Figure  # it takes a second to load, and few workers need it

    Figure(undressed(figure))


def without_plotly(page):
    return re.sub(r"<script>/\*\*.*?</script>", "", page, flags=re.DOTALL)


@pytest.mark.parametrize("which", ["compared", "reactive"])
def test_plotly_accepts_every_figure(pages, which):
    drawn = figures(pages[which])
    assert {"load", "service"} <= set(drawn)
    for figure in drawn.values():
        check_by_plotly(figure)


def test_the_page_needs_nothing_from_outside(pages):
    own = without_plotly(pages["compared"])
    assert len(own) < 1_000_000 < len(pages["compared"])
    assert pages["compared"].count("Plotly.js v") <= 1 or pages["compared"].count("plotly.js v") == 1
    assert not re.search(r'(src|href)="(?!data:)', own)
    assert not re.search(r"@import|url\(|https?://", own)


def test_every_holder_has_its_figure_and_every_colour_its_value(pages):
    page = pages["compared"]
    drawn = figures(page)
    assert set(re.findall(r'data-(?:chart|show)="([^"]+)"', without_plotly(page))) == set(drawn)
    used = set(re.findall(r'"@([a-z]+)(?:/\d+)?"', json.dumps(drawn)))
    light, dark = (set(re.findall(r"--([a-z]+):", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", page)[:2])
    assert used <= light == dark


def test_changes_are_shown_and_holds_are_joined_and_hidden(pages):
    rows = re.findall(r'<tr class="(change|hold)"( hidden)?>', pages["compared"])
    decisions = [json.loads(line) for line in (pages["ours"] / "decisions.jsonl").read_text().splitlines()]
    assert sum(kind == "change" for kind, _ in rows) == sum(d["codes"] != ["hold"] for d in decisions)
    assert all(hidden for kind, hidden in rows if kind == "hold")
    assert sum(kind == "hold" for kind, _ in rows) < 10


def test_stopped_seconds_are_marked(pages):
    names = [trace["name"] for trace in figures(pages["compared"])["service"]["data"]]
    assert any("stopped" in name for name in names)
    assert not any("stopped" in t["name"] for t in figures(pages["reactive"])["service"]["data"])


def test_the_other_run_is_laid_over_this_one(pages):
    drawn = figures(pages["compared"])
    for chart in ("load", "service"):
        assert any("reactive run" in trace["name"] for trace in drawn[chart]["data"])
    assert 'class="versus"' in pages["compared"]
    assert 'class="versus"' not in pages["reactive"]


def test_the_newcomer_is_shown_where_there_was_one(pages, tmp_path):
    assert pages["reactive"].count("<h3>Newcomer</h3>") == 1 and "RMSE adapted 0.315" in pages["reactive"]
    run_dir.write(tmp_path, seconds=20)
    known = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**known, "newcomer": None}))
    assert "<h3>Newcomer</h3>" not in render_report(tmp_path).page.read_text()


def test_a_run_without_forecasts_says_so(pages):
    assert "No forecast was served" in pages["reactive"]
    assert "fan-1" not in figures(pages["reactive"])


def forecast_less(folder, levels, steps):
    """The run's forecasts with fewer levels and steps."""
    file = folder / "forecasts.jsonl"
    rows = [{**json.loads(line), "levels": levels} for line in file.read_text().splitlines()]
    for row in rows:
        row["quantiles"] = [step[: len(levels)] for step in row["quantiles"][:steps]]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_levels_and_steps_are_named_as_they_were_forecast(tmp_path, pages):
    names = {trace["name"] for trace in figures(pages["compared"])["fan-1"]["data"]}
    assert {"5 to 95 %", "90 % level"} <= names
    assert "One step is 30 minutes of the trace" in pages["compared"]
    run_dir.write(tmp_path, seconds=60)
    forecast_less(tmp_path, [0.2, 0.5, 0.8], 2)
    page = render_report(tmp_path).page.read_text()
    names = {trace["name"] for trace in figures(page)["fan-1"]["data"]}
    assert {"20 to 80 %", "80 % level"} <= names and not names & {"5 to 95 %", "90 % level"}
    assert "80 % level held" in page and "(should be 80 %)" in page and "90 % level" not in page
    assert re.search(r"that is \d+ steps ahead, further than the 2 that are forecast\.", page)
    assert "2 ahead: the furthest" in page and "what the planner needs" not in page


def test_what_others_wrote_stays_text(tmp_path):
    run_dir.write(tmp_path, seconds=20)
    file = tmp_path / "decisions.jsonl"
    file.write_text(file.read_text().replace('"reason": "', '"reason": "<script>alert(1)</script> '))
    page = render_report(tmp_path).page.read_text()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_what_an_outcome_observed_is_written_as_a_person_reads_it(tmp_path):
    run_dir.write(tmp_path, seconds=60)
    file, rows = tmp_path / "outcomes.jsonl", []
    seen = {
        "lag_records_before": 1200, "lag_records_after": 30, "processed_rps_before": 141.2,
        "processed_rps_after": 250.0, "waited_s": 1.2, "censored": False, "late": False, "patience_s": 60,
    }  # fmt: skip
    for line in file.read_text().splitlines():
        rows.append(json.dumps({**json.loads(line), "observed": seen}))
    file.write_text("\n".join(rows) + "\n")
    page = render_report(tmp_path).page.read_text()
    assert "waited 1.2 s; at most 60 s were allowed; started in time; lag 1,200 → 30 records" in page
    assert "processed 141 → 250 records/s" in page
    assert not re.search("censored|patience s|patience_s|rps before", without_plotly(page))
    assert tables._observed_lines({"censored": False, "late": True}, down=True) == ["left late"]
    assert tables._observed_lines({"censored": True}, down=False) == ["never started"]
    assert tables._observed_lines({}, down=False) == []
