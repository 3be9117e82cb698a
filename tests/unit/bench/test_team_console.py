"""The console's bench: refused without its programs; what jobs go on saying; what counts as found and as said."""

import time

import pytest

from configs.settings import load
from pipelines.bench.team.console import measure
from pipelines.bench.team.console.axe import Violation
from pipelines.bench.team.console.chromium import BrowserError
from pipelines.bench.team.console.jobs import next_second
from pipelines.bench.team.console.looks import LOOKS, PageLook
from pipelines.bench.team.console.measure import count_answers, count_looks, measure_console
from pipelines.bench.team.console.records import fleet, job_name
from pipelines.bench.team.console.roles import CHANGE, CHANGING, PAGES, READING, ask_by_role
from pipelines.bench.team.console.screens import summarise
from pipelines.console.read.fold import ReadModel, fold


@pytest.mark.parametrize(("there", "missing"), [((), "chromium"), (("chromium",), "npm")])
def test_without_its_programs_it_is_refused_by_name_before_anything_starts(tmp_path, monkeypatch, there, missing):
    for name in there:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(measure, "console_site", lambda settings: pytest.fail("a stack is started"))
    with pytest.raises(BrowserError, match=f"{missing} is not installed: apt-get install {missing}"):
        measure_console(load(var=tmp_path / "var"), print)


def test_jobs_say_each_second_what_they_said_before_in_the_trouble_that_they_are_in():
    now = time.time()
    model = fold(ReadModel(), fleet(50, now, minutes=0.1), now)
    later = fold(model, next_second(model, now + 5), now + 5)
    assert len(later.jobs) == 50 and {*later.pools} == {*model.pools} and later.refused == 0
    samples = {name: job.sample for name, job in later.jobs.items()}
    silent = [job_name(number) for number in (2, 42)]
    assert [name for name, sample in samples.items() if sample is None or sample.wall_time != now + 5] == silent
    assert samples[job_name(7)].arrival_rps == model.jobs[job_name(7)].sample.arrival_rps
    assert all(share["heard_at"] == now + 4 for state in later.pools.values() for share in state.shares)


def test_what_is_found_on_pages_is_counted_and_said():
    fine = PageLook("jobs 360 light", 0.2, [], [], True, True)
    bad = PageLook("job 360 dark", 0.2, ["404 x", "odd"], [Violation("contrast", ["a", "b"])], False, False)
    found = count_looks([fine, bad])
    assert [found[name] for name in ("looks", "errors", "violations", "askew")] == [2, 2, 1, 1]
    assert found["found"] == [
        "job 360 dark: 404 x", "job 360 dark: odd", "job 360 dark: contrast at a, b",
        "job 360 dark: it scrolls sideways", "job 360 dark: it has another theme",
    ]  # fmt: skip
    assert count_looks([fine])["found"] == [] and len(LOOKS) == 36


class Lenient:
    """A server that lets everybody in."""

    status_code = 200

    def get(self, path, **asked):
        assert path.startswith("/tidecast/")
        return self

    post = get


def test_who_is_let_in_against_what_is_said_is_named():
    answers = ask_by_role(Lenient(), {"viewer": "v", "user": "u", "": "n"})
    assert len(answers) == 3 * (len(PAGES) + 1) + 4
    found = count_answers(answers)
    wrong = {(one["who"], one["asked"]) for one in found["otherwise"]}
    assert ("viewer", CHANGE) in wrong and ("nobody", "") in wrong and ("forged", "") in wrong
    assert not wrong & {("viewer", ""), ("user", "data/jobs"), ("by cookie", "")}
    assert found["as_said"] == len(answers) - len(wrong) == 2 * len(PAGES) + 1
    assert {*READING.values(), *CHANGING.values()} == {200, 403, 404}


def test_waits_are_told_by_median_and_worst():
    assert summarise([0.3, 0.1, 0.2004]) == {"median": 0.2, "worst": 0.3, "n": 3, "each": [0.3, 0.1, 0.2]}
