"""Models on their way to the workers of the streaming query."""

from collections import deque

from models.forecast.baselines.naive import Naive
from pipelines.serve.models.model_set import pack_model
from pipelines.serve.models.ready import prepare_model
from pipelines.serve.step.windows import RecentWindows
from pipelines.serve.stream.fleet_step import model_files, read_deployment
from pipelines.serve.stream.spark_server import _kept_models, put_in_service, put_ready_in_service
from tests.fakes.forecasters import STEP, TASK


def test_each_model_has_a_number_of_its_own_and_the_one_before_stays(tmp_path, capsys):
    for version in ("4", "5", "4"):
        made = pack_model(Naive(TASK))
        put_in_service(tmp_path, prepare_model(RecentWindows(STEP), "rides", "rides-forecaster", version, made), STEP)
    kept = [read_deployment(file) for file in model_files(tmp_path, "rides")]
    assert [(one.number, one.model_version, one.first_origin) for one in kept] == [(2, "5", 0), (3, "4", 0)]
    assert capsys.readouterr().out.count("serving rides: champion is version") == 3


def test_what_was_served_before_a_restart_is_known_and_a_damaged_file_is_fetched_again(tmp_path):
    for job in ("orders", "rides"):
        made = pack_model(Naive(TASK))
        put_in_service(tmp_path, prepare_model(RecentWindows(STEP), job, f"{job}-forecaster", "7", made), STEP)
    (tmp_path / "empty").mkdir()
    model_files(tmp_path, "orders")[0].write_bytes(b"\xc1")
    assert _kept_models(tmp_path) == {"rides": ("7", made.digests)}


def test_a_model_that_cannot_be_written_waits_for_room_and_stops_no_other(tmp_path):
    """Here, as a file lies where the folder of its job is to be."""
    offered = [("orders", "4"), ("orders", "5"), ("rides", "7")]
    made, windows = pack_model(Naive(TASK)), RecentWindows(STEP)
    ready = deque(prepare_model(windows, job, f"{job}-forecaster", version, made) for job, version in offered)
    (tmp_path / "orders").touch()
    old, new = put_ready_in_service(tmp_path, ready, STEP)
    assert old.startswith("orders: version 4 cannot be put in service: ") and "version 5" in new
    assert [(one.job, one.version) for one in ready] == [("orders", "5")] and model_files(tmp_path, "rides")
    (tmp_path / "orders").unlink()
    assert put_ready_in_service(tmp_path, ready, STEP) == [] and not ready
    assert [read_deployment(file).model_version for file in model_files(tmp_path, "orders")] == ["5"]


class Overtaken(deque):
    """To which the loader's thread adds a later model just before one that failed is put back."""

    later = None

    def append(self, one):
        super().append(self.later)
        super().append(one)

    def extendleft(self, waiting):
        super().append(self.later)
        super().extendleft(waiting)


def test_a_model_that_could_not_be_written_stays_before_one_of_its_job_that_comes_meanwhile(tmp_path):
    made, windows = pack_model(Naive(TASK)), RecentWindows(STEP)
    old, new = (prepare_model(windows, "orders", "orders-forecaster", version, made) for version in ("4", "5"))
    ready = Overtaken([old])
    ready.later = new
    (tmp_path / "orders").touch()
    assert len(put_ready_in_service(tmp_path, ready, STEP)) == 1 and [one.version for one in ready] == ["4", "5"]
    (tmp_path / "orders").unlink()
    assert put_ready_in_service(tmp_path, deque(ready), STEP) == []
    assert [read_deployment(file).model_version for file in model_files(tmp_path, "orders")] == ["4", "5"]
