"""Champions are looked up once for all jobs, by a thread of their own; a registry that fails is asked again."""

import threading

import pytest

from models.forecast.baselines.naive import Naive
from pipelines.kafka.broker import Record
from pipelines.registry import Champion, RegistryError
from pipelines.registry.artifacts import UnreadableError
from pipelines.serve.models import loader, model_set
from pipelines.serve.models.loader import Loader
from pipelines.serve.step.windows import RecentWindows, warmed_steps
from pipelines.serve.stream.server import MARGIN_S, needed_from, read_samples
from pipelines.store import Corrupt, StoreFull
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, raw, sample
from tests.fakes.waiting import wait_until

JOBS = [f"job{i}" for i in range(40)]


class Registry:
    """Fails as often as `failures` says, then has a champion for every job."""

    def __init__(self, failures=0):
        self.failures, self.asked, self.opened = failures, 0, 0

    def __call__(self):
        self.opened += 1
        if self.opened == 1 and self.failures:
            raise RegistryError("MLflow does not answer")
        return self

    def champions(self):
        self.asked += 1
        if self.asked < self.failures:
            raise RegistryError("MLflow does not answer")
        return dict.fromkeys(JOBS, Champion("1"))

    def model_name(self, job):
        return f"{job}-forecaster"

    def fetch(self, job, version):
        return Naive(TASK), None


def windows():
    made = RecentWindows(STEP)
    for job in JOBS:
        made.add(job, [(BEGIN + i, 5.0 + i) for i in range(30)])
    return made


@pytest.mark.parametrize("failures", [0, 3])
def test_all_jobs_get_their_champion_by_one_look_up_once_the_registry_answers(failures, capsys):
    registry = Registry(failures)
    loader = Loader(windows(), registry, JOBS, 0.01)
    loader.start()
    wait_until(lambda: len(loader.ready) == len(JOBS), "every champion")
    asked = registry.asked
    wait_until(lambda: registry.asked >= asked + 3, "three looks more")
    loader.close()
    assert {ready.job for ready in loader.ready} == set(JOBS) and len(loader.ready) == len(JOBS)
    assert {(ready.warmed_from, ready.warmed_to) for ready in loader.ready} == {(BEGIN, BEGIN + 28)}
    said = capsys.readouterr().out
    assert said.count("MLflow does not answer") == (1 if failures else 0)


def test_a_restart_goes_back_as_far_as_the_slowest_clock_needs():
    live = sample("a", BEGIN, 1.0, wall_time=1e9, time_scale=1.0)
    replayed = sample("b", BEGIN, 1.0, wall_time=1e9, time_scale=720.0)
    depth = (warmed_steps(60.0) + 2) * 60.0
    assert needed_from([replayed], 60.0) == 1e9 - depth / 720 - MARGIN_S
    assert needed_from([replayed, live], 60.0) == 1e9 - depth - MARGIN_S
    assert needed_from([live], 86_400.0 * 30) == 0 == needed_from([], 60.0)


@pytest.mark.parametrize("wrong", [{"time_scale": 1e-6}, {"wall_time": 0.0}])
@pytest.mark.parametrize("place", [-1, 3])
def test_one_wrong_record_has_no_job_wait_until_the_whole_topic_is_read(wrong, place):
    usual = [sample("b", BEGIN + i, 1.0, wall_time=1e9 + i, time_scale=720.0) for i in range(6)]
    told = list(usual)
    told.insert(place if place > 0 else len(told), sample("b", BEGIN, 1.0, **{"wall_time": 1e9, **wrong}))
    assert 0 < needed_from(told, 60.0) == pytest.approx(needed_from(usual, 60.0), abs=10.0)


def test_only_jobs_with_a_contract_say_how_far_a_restart_goes_back():
    records = [
        Record("metrics", 0, i, key, raw(job, BEGIN, 1.0), 1e9)
        for i, (key, job) in enumerate((("a", "a"), ("b", "b"), ("a", "b")))
    ]
    assert [one.job for one in read_samples(records, {"a"})] == ["a"]


def once(error, call):
    """The same call, which fails the first time."""
    failures = [error]

    def tried(*arguments):
        if failures:
            raise failures.pop()
        return call(*arguments)

    return tried


@pytest.mark.parametrize(
    ("module", "name", "error"),
    [
        (loader, "prepare_model", OSError(28, "No space left on device")),
        (loader, "prepare_model", StoreFull("the map is full")),
        (loader, "prepare_model", MemoryError()),
        (model_set, "revive", MemoryError()),  # which becomes the cause of a `ModelSetError`
    ],
)
def test_a_champion_that_met_a_full_disk_or_memory_is_tried_again(module, name, error, monkeypatch, capsys):
    monkeypatch.setattr(module, name, once(error, getattr(module, name)))
    monkeypatch.setattr(loader, "AGAIN_S", 0.05)
    made = Loader(windows(), Registry(), JOBS[:1], 0.01)
    made.start()
    wait_until(lambda: made.ready, "the champion")
    made.close()
    assert "the present champion stays, trying again every 0.05 s" in capsys.readouterr().out


class Unreadable(Registry):
    """Fails `failures` times to fetch a version, with what is set, then has it."""

    def __init__(self, failures):
        super().__init__()
        self.failed, self.failing = 0, failures

    def fetch(self, job, version):
        if self.failed == len(self.failing):
            return super().fetch(job, version)
        self.failed += 1
        raise self.failing[self.failed - 1]


def test_why_a_version_cannot_be_read_is_told_once_for_as_long_as_that_lasts(monkeypatch, capsys):
    unknown, away = UnreadableError("version 1: kind='newer'"), RegistryError("MLflow does not answer")
    monkeypatch.setattr(loader, "AGAIN_S", 0.01)
    made = Loader(windows(), Unreadable([unknown] * 4 + [away] * 3 + [unknown] * 2), JOBS[:1], 0.01)
    made.start()
    wait_until(lambda: made.ready, "the champion")
    made.close()
    told = [line.split("; ")[0] for line in capsys.readouterr().out.splitlines()]
    assert told == [f"serving {JOBS[0]}: {error}" for error in (unknown, away, unknown)]


def test_windows_that_are_damaged_are_for_the_loop_to_end_by(monkeypatch, capsys):
    def damaged(*given):
        raise Corrupt("the digest is not that of the bytes")

    monkeypatch.setattr(loader, "prepare_model", damaged)
    made = Loader(windows(), Registry(), JOBS[:1], 0.01)
    made.start()
    wait_until(lambda: made.damage, "what it met")
    made.close()
    assert not made.ready and "trying again" not in capsys.readouterr().out


def test_closing_waits_for_the_registry_to_be_opened_and_not_for_a_look_up_that_hangs(monkeypatch):
    monkeypatch.setattr(loader, "CLOSE_S", 0.05)
    go_on, opened, hanging = threading.Event(), [], threading.Event()

    def open_slowly():
        go_on.wait(10)
        opened.append(1)
        return Registry()

    made = Loader(windows(), open_slowly, JOBS, 0.01)
    made.start()
    threading.Timer(0.2, go_on.set).start()
    made.close()
    assert opened == [1]

    class Hanging(Registry):
        def champions(self):
            hanging.wait(10)
            return {}

    made = Loader(windows(), lambda: Hanging(), JOBS, 0.01)
    made.start()
    made.close()  # returns
    assert made._thread.is_alive()
    hanging.set()


class OneJob(Registry):
    """Of one job, with the champion and the model that are set."""

    def __init__(self, champion, model):
        super().__init__()
        self.champion, self.model, self.fetched = champion, model, 0

    def champions(self):
        return {JOBS[0]: self.champion}

    def fetch(self, job, version):
        self.fetched += 1
        return self.model, None


def test_another_version_of_the_same_number_takes_the_place_of_the_one_before():
    """As where the registry was made anew."""
    registry = OneJob(Champion("1", 1000), Naive(TASK))
    made = Loader(windows(), registry, JOBS[:1], 0.01)
    made.start()
    wait_until(lambda: made.ready, "the champion")
    registry.champion, registry.model = Champion("1", 2000), Naive(TASK, seasonal=False)
    wait_until(lambda: len(made.ready) == 2, "the other one")
    made.close()
    first, second = made.ready
    assert (first.version, second.version) == ("1", "1")
    assert first.model_set.digests != second.model_set.digests


@pytest.mark.parametrize("again", [False, True])
def test_what_served_before_a_restart_is_replaced_only_where_its_number_now_means_another(again):
    kept = model_set.pack_model(Naive(TASK))
    registry = OneJob(Champion("1"), Naive(TASK, seasonal=not again))
    made = Loader(windows(), registry, JOBS[:1], 0.01)
    made.serving[JOBS[0]] = "1", kept.digests
    made.start()
    wait_until(lambda: made._offered, "a look")
    made.close()
    assert (len(made.ready), registry.fetched) == (int(again), 1)
