"""The job with a short history: what its settings may be, which load it has, and what is said of its sources."""

import numpy as np
import pytest

from configs.bounds import DAY_S
from configs.errors import SettingsError
from configs.sections import Newcomer, Training
from configs.settings import load
from models.adapt.gate import decide_transfer
from models.adapt.sources import NoSourceError, TransferResult
from models.forecast.baselines.naive import Naive
from models.forecast.core.forecaster import Task
from models.forecast.core.series import Series, SeriesError
from models.forecast.selection.champion import ChampionChoice, Trial
from pipelines.demo.newcomer import check_newcomer, collect_newcomer_results
from pipelines.jobs import history
from pipelines.jobs.history import newcomer_load, publish_newcomer
from pipelines.traces.trace import PEAK_RPS
from pipelines.train.forecaster.candidates import Candidates
from pipelines.train.transfer import sources

GATE = {
    "near": decide_transfer(0.3, 0.4, 0.35, 0.5),
    "far": decide_transfer(0.6, 0.7, 0.5, 0.55),
}


def with_newcomer(**changes):
    return load(replay={"newcomer": changes})


def test_the_default_newcomer_has_the_first_days_of_its_trace_at_the_peak_of_the_replay():
    settings = load()
    series = newcomer_load(settings.replay, settings.replay.newcomer)
    assert len(series) * series.step_s == 5 * DAY_S
    assert series.values.max() == PEAK_RPS
    check_newcomer(settings)
    check_newcomer(load(replay={"newcomer": None}))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"trace": "taxy"}, ["replay.newcomer.trace='taxy'", "taxi 15min"]),
        ({"trace": "nyc_taxi 30min"}, ["main job has this load"]),
        ({"trace": "alibaba 1h", "days": 7.5}, ["replay.newcomer.days=7.5", "7.0 days"]),
        ({"days": 14}, ["replay.newcomer.days=14", "learns alone"]),
        ({"days": 1e-4}, ["replay.newcomer.days=0.0001"]),
        ({"job": "word_count"}, ["'word_count'", "runs live"]),
        ({"job": "orders"}, ["orders.yaml", "replay.newcomer to null"]),
    ],
)
def test_wrong_settings_are_refused_in_words(changes, words):
    with pytest.raises(SettingsError) as error:
        check_newcomer(with_newcomer(**changes))
    for word in words:
        assert word in str(error.value)


def test_a_job_that_runs_beside_the_main_one_is_no_newcomer():
    with pytest.raises(SettingsError, match="runs live"):
        check_newcomer(load(job={"also": ["key_window"]}, replay={"newcomer": {"job": "key_window"}}))


def test_missing_steps_are_not_published(monkeypatch):
    sent = []

    class Publisher:
        def __init__(self, kafka):
            pass

        def send(self, topic, key, sample):
            sent.append((topic, key, sample))

        def close(self):
            pass

    monkeypatch.setattr(history, "Publisher", Publisher)
    monkeypatch.setattr(history, "newcomer_load", lambda *_: Series(900.0, 60.0, np.array([1.0, np.nan, 3.0])))
    assert publish_newcomer(load(), Newcomer(job="rides")) == 2
    assert [(t, k, s.time, s.span_s, s.arrival_rps) for t, k, s in sent] == [
        ("metrics", "rides", 900.0, 60.0, 1.0),
        ("metrics", "rides", 1020.0, 60.0, 3.0),
    ]


def test_every_source_is_said_and_logged_with_what_the_gate_made_of_it():
    refused = {"flat": "its shape is 0.90 as far as no shape at all"}
    asked = TransferResult(verdicts=GATE, refused=refused, shapes={"near": 0.2, "far": 0.4})
    said = sources.describe_transfers(asked)
    assert "flat kept out, its shape is 0.90" in said
    assert "near (shape 0.20, kept under 0.5): RMSE adapted 0.3, unadapted 0.4, own load only 0.35" in said
    assert "last value 0.5: let in" in said and said.endswith("kept out, own load only does better")
    found = sources.transfer_metrics(asked)
    assert found["adapt.near.shape"] == 0.2 and found["adapt.far.target_only"] == 0.5
    assert found["adapt.far.transfer"] == pytest.approx(0.2)


def test_of_a_fleet_the_nearest_sources_are_told_and_how_many_more_there_were():
    far = {f"job{i:02}": f"its shape is {0.5 + i / 100:.2f} as far as no shape at all" for i in range(40)}
    shapes = {name: 0.5 + i / 100 for i, name in enumerate(far)} | {"near": 0.9, "far": 0.4}
    asked = TransferResult(verdicts=GATE, refused={"brief": "3 steps of 60 s", **far}, shapes=shapes)
    said = sources.describe_transfers(asked)
    assert said.startswith("job00 kept out") and "job05" in said and "job06" not in said and "brief" not in said
    assert "let in; far (shape 0.40" in said and said.endswith("; and 35 more, farther in shape or too short")
    with pytest.raises(NoSourceError) as error:
        TransferResult(refused={"brief": "3 steps of 60 s", **far}, shapes=shapes).best()
    assert "job07" in str(error.value) and "job08" not in str(error.value) and "and 33 more" in str(error.value)


class Run:
    """A run that keeps the figures it is told."""

    def __init__(self):
        self.kept = {}

    def metrics(self, values):
        self.kept |= values


def test_a_source_that_is_kept_out_leaves_its_figures_and_the_reason():
    rng = np.random.default_rng(1)
    noise = Series(0.0, 3600.0, 50 + rng.random(20 * 24))
    candidates = Candidates(Run(), Training(), {"noise": noise}, "nobody was asked")
    task = Task(3600.0, 3, (0.5,))
    short = Series(noise.end, 3600.0, 100 + 50 * np.sin(np.arange(7 * 24) * np.pi / 12) + rng.random(7 * 24))
    with pytest.raises(NoSourceError):
        candidates.fit_functions(task, short)["adapted"](task, short)
    assert candidates.run.kept["adapt.noise.shape"] > 0.5
    assert candidates.transfer_note.startswith("noise kept out, its shape is")
    with pytest.raises(SeriesError):
        flat = Series(noise.end, 3600.0, np.ones(48))
        candidates.fit_functions(task, flat)["adapted"](task, flat)
    assert candidates.transfer_note.startswith("nobody was asked: ") and "constant" in candidates.transfer_note
    assert "adapted" not in candidates.fit_functions(task, noise)


def test_why_nobody_was_asked():
    steps = {days: Series(0.0, 3600.0, np.zeros(24 * days)) for days in (3, 14)}
    assert "14 days of its own are enough" in sources.why_no_transfer(steps[14], {})
    assert "no other job has 14 days" in sources.why_no_transfer(steps[3], {})
    assert "72 steps are too few" in sources.why_no_transfer(steps[3], {"big": steps[14]})


def test_a_pupil_that_was_let_in_and_not_chosen_is_said_to_be():
    def trial(loss):
        return Trial(loss, loss, np.zeros(1), np.zeros(1))

    def choice(name):
        return ChampionChoice(name, Naive(Task(60.0, 1, (0.5,))), {"blend": trial(2.0), "adapted": trial(3.0)})

    assert sources.transfer_tags(choice("adapted"), "big", "big: let in") == {
        "adapt.source": "big",
        "adapt.why": "big: let in",
    }
    other = sources.transfer_tags(choice("blend"), "big", "big: let in")
    assert other["adapt.source"] == "none"
    assert other["adapt.why"] == "big: let in, but not chosen: loss 3 against 2 of blend"
    untried = sources.transfer_tags(choice("gru"), "big", "nobody was asked: too short")
    assert untried == {"adapt.source": "none", "adapt.why": "nobody was asked: too short"}


class Registry:
    """A registry that knows one verdict, or none."""

    def __init__(self, verdict=None):
        self.verdict = verdict

    def read_verdict(self, job):
        return self.verdict

    def figures(self, run):
        return {}, {}, {"chosen": "blend", "adapt.source": "none", "adapt.why": "kept out"}

    def champion_version(self, job):
        return "1"


def test_what_came_of_it_is_the_verdict_with_its_reasons():
    settings = load()
    won = {"version": "2", "promoted": True, "reason": "promoted", "challenger_loss": 1.0, "run": "r"}
    found = collect_newcomer_results(settings, Registry(won))
    assert (found["job"], found["version"], found["chosen"], found["why"]) == ("ride_count", "2", "blend", "kept out")
    missing = collect_newcomer_results(settings, Registry())
    assert missing["version"] is None and "no verdict" in missing["reason"]
    assert collect_newcomer_results(load(replay={"newcomer": None}), Registry()) is None
