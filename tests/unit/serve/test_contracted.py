"""Contracts that come and go while a server runs: every part that asks for the jobs with one goes by them."""

import pytest
from fastapi.testclient import TestClient

from models.forecast.baselines.naive import Naive
from models.forecast.core.series import SeriesError
from pipelines.serve.contracted import ContractedJobs
from pipelines.serve.fast.core import Core, IncomingSample
from pipelines.serve.http.app import build_app
from pipelines.serve.models.loader import Loader
from pipelines.serve.step.jobs import ServedJobs
from pipelines.serve.step.windower import Window
from pipelines.serve.step.windows import RecentWindows
from pipelines.store import Store
from tests.fakes.forecasters import STEP, TASK
from tests.fakes.serving import BEGIN, NOW, raw
from tests.fakes.waiting import wait_until
from tidecast.messages import MessageError


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "contracts").mkdir()
    return tmp_path / "contracts"


@pytest.fixture
def known(folder):
    return ContractedJobs(folder, 0.0)


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

    def champion_versions(self):
        self.looks += 1
        return {"orders": "1", "rides": "1"}

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


def test_a_folder_that_is_away_as_a_whole_takes_no_contract_with_it(folder, known):
    (folder / "orders.yaml").touch()
    (folder / "rides.yaml").touch()
    assert sorted(known) == ["orders", "rides"]
    (folder / "rides.yaml").unlink()
    assert list(known) == ["orders"] and "rides" not in known
    folder.rename(folder.with_name("away"))
    assert list(known) == ["orders"]


def test_the_folder_is_not_read_again_before_it_is_time(folder):
    known = ContractedJobs(folder, 1e9)
    assert "orders" not in known
    (folder / "orders.yaml").touch()
    assert "orders" not in known and len(known) == 0
