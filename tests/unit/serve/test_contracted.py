"""Contracts that come and go while a server runs: every part that asks for the jobs with one goes by them."""

from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from models.forecast.baselines.naive import Naive
from models.forecast.core.series import SeriesError
from pipelines.registry import Champion
from pipelines.serve import contracted
from pipelines.serve.contracted import ContractedJobs
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.http.app import build_app
from pipelines.serve.models.loader import Loader
from pipelines.serve.step.jobs import ServedJobs
from pipelines.serve.step.windower import Window
from pipelines.serve.step.windows import RecentWindows
from pipelines.store import Store
from pipelines.watched import GONE_S
from tests.fakes.clock import clock_with
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, NOW, raw
from tests.fakes.unlisted import unlisted
from tests.fakes.waiting import wait_until
from tidecast.messages import MessageError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "contracts").mkdir()
    return tmp_path / "contracts"


@pytest.fixture
def known(folder):
    return ContractedJobs(folder, 0.0)


@pytest.fixture
def steady(monkeypatch):
    made = SimpleNamespace(s=100.0)
    monkeypatch.setattr(contracted, "time", clock_with(monotonic=lambda: made.s))
    return made


def test_the_fast_path_takes_a_job_and_shows_it_once_it_has_a_contract(folder, known, tmp_path):
    with Store.open(tmp_path / "store") as store:
        core = Core(store, STEP, known, epoch=7)
        web = TestClient(build_app(store, STEP, known, "s3cret"), headers={"Authorization": "Bearer s3cret"})
        assert core.process([IncomingSample(raw("orders", BEGIN, 5.0))], NOW)[0].code == "unknown_job"
        assert "no contract" in web.get("/jobs/orders/forecast").text
        (folder / "orders.yaml").touch()
        assert not hasattr(core.process([IncomingSample(raw("orders", BEGIN, 5.0))], NOW)[0], "code")
        assert "no forecast" in web.get("/jobs/orders/forecast").text


def test_the_stream_takes_a_job_once_it_has_a_contract(folder, known):
    jobs = ServedJobs(RecentWindows(STEP), known, lambda job, by: None, 7)
    with pytest.raises(MessageError, match="no contract"):
        jobs.add_record("orders", raw("orders", BEGIN, 5.0), NOW)
    (folder / "orders.yaml").touch()
    assert jobs.add_record("orders", raw("orders", BEGIN, 5.0), NOW)[0].job == "orders"


@pytest.mark.parametrize("again", [7, 6])
def test_a_window_that_is_not_newer_than_the_newest_changes_nothing(known, again):
    jobs = ServedJobs(RecentWindows(STEP), known, lambda job, by: None, 7)
    jobs.step("orders", Window(7, 5.0, None, 0.0))
    with pytest.raises(SeriesError, match=f"window {again} of orders is not newer than 7"):
        jobs.step("orders", Window(again, 6.0, None, 0.0))
    assert jobs.windows.rates("orders", 0, 9) == [(7, 5.0)]


class Champions:
    """Has one for every job, and counts its looks."""

    looks = 0

    def champions(self):
        self.looks += 1
        return dict.fromkeys(("orders", "rides"), Champion("1"))

    def model_name(self, job):
        return f"{job}-forecaster"

    def fetch(self, job, version):
        return Naive(TASK), None


def test_the_loader_fetches_a_champion_once_the_job_has_a_contract(folder, known):
    windows, champions = RecentWindows(STEP), Champions()
    for job in ("orders", "rides"):
        windows.add(job, [(BEGIN + i, 5.0) for i in range(30)])
    (folder / "rides.yaml").touch()
    loader = Loader(windows, lambda: champions, known, 0.01)
    loader.start()
    wait_until(lambda: champions.looks > 2 and loader.ready, "the first champion")
    assert [ready.job for ready in loader.ready] == ["rides"]
    (folder / "orders.yaml").touch()
    wait_until(lambda: len(loader.ready) == 2, "the champion of the new contract")
    loader.close()


def test_a_contract_is_gone_once_its_file_was_away_for_a_while_and_none_with_the_whole_folder(folder, known, steady):
    (folder / "orders.yaml").touch()
    (folder / "rides.yaml").touch()
    assert sorted(known) == ["orders", "rides"]
    (folder / "rides.yaml").unlink()
    assert "rides" in known, "it may be written anew"
    (folder / "orders.yaml").unlink()
    assert sorted(known) == ["orders", "rides"]
    (folder / "orders.yaml").touch()
    steady.s += GONE_S
    assert list(known) == ["orders"] and "rides" not in known
    folder.rename(folder.with_name("away"))
    for _ in range(3):
        steady.s += GONE_S
        assert list(known) == ["orders"]


def test_a_folder_that_may_not_be_listed_is_not_taken_for_empty(folder, known, steady, monkeypatch):
    (folder / "orders.yaml").touch()
    assert list(known) == ["orders"]
    with unlisted(monkeypatch, folder):
        for _ in range(3):
            steady.s += GONE_S
            assert list(known) == ["orders"]


def test_a_file_that_no_job_can_have_is_none(folder, known, tmp_path):
    for name in ("_template", ".#orders", "orders copy", "orders"):
        (folder / f"{name}.yaml").touch()
    assert list(known) == ["orders"]
    with Store.open(tmp_path / "store") as store:
        web = TestClient(build_app(store, STEP, known, "s3cret"), headers={"Authorization": "Bearer s3cret"})
        assert web.get("/metrics").status_code == 200


def test_the_folder_is_not_read_again_before_it_is_time(folder):
    known = ContractedJobs(folder, 1e9)
    assert "orders" not in known
    (folder / "orders.yaml").touch()
    assert "orders" not in known and len(known) == 0
