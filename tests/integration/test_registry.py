"""The registry on a real MLflow store of its own."""

import json
import math
import time
from functools import cache

import numpy as np
import pandas as pd
import pytest

from configs.sections import Training
from configs.settings import load
from models.forecast.core.series import Series
from pipelines.lake.load import LakeSeries
from pipelines.registry import AgentRegistry, Registry, RegistryError
from pipelines.registry.artifacts import read_forecaster
from pipelines.train.forecaster.run import refuse_unchanged
from pipelines.train.forecaster.served import score_served_versions
from tests.fakes.forecasters import KINDS, network, older_network, put, put_naive, series

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("elsewhere")]


@pytest.fixture(scope="module")
def registered(registry, settings):
    """By kind a forecaster, the version that it is registered as, and the file that describes it; each is made once."""

    @cache
    def newest(kind):
        made = KINDS[kind]()
        version = put(registry, f"same-{kind}", made, alias="challenger")
        described = (settings.var_dir / "mlflow").rglob("forecaster.json")
        return made, version, max(described, key=lambda path: path.stat().st_mtime_ns)

    return newest


@pytest.mark.parametrize("kind", KINDS)
def test_a_forecaster_says_the_same_after_it_was_registered_and_loaded(registry, registered, kind):
    job, (made, version, _) = f"same-{kind}", registered(kind)
    loaded = registry.load(job, version)
    track, again = made.begin(series(100)), loaded.begin(series(100))
    for value in (80.0, math.nan, 120.0):
        track.step(value)
        again.step(value)
        np.testing.assert_allclose(again.quantiles, track.quantiles, rtol=1e-6)
    assert again.basis() == track.basis()
    assert registry.alias_version(job, "challenger") == version


def test_nothing_registered_can_run_code(settings, registered):
    for kind in ("gru", "adapted"):
        registered(kind)
    files = [path for path in (settings.var_dir / "mlflow" / "artifacts").rglob("*") if path.is_file()]
    assert {"model.pt2", "forecaster.json"} <= {path.name for path in files}
    for path in files:
        assert path.suffix not in (".pkl", ".pickle", ".pth", ".pt", ".joblib", ".py")
        if path.suffix not in (".pt2", ".png"):
            assert not path.read_bytes().startswith(b"\x80"), f"{path} is a pickle"


def test_aliases_move(registry):
    assert registry.champion_version("moves") is None
    first, second = put_naive(registry, "moves"), put_naive(registry, "moves", seasonal=False)
    registry.set_champion("moves", first)
    assert registry.champion_version("moves") == first and registry.load("moves").kind == "seasonal_naive"
    registry.set_champion("moves", second)
    assert registry.champion_version("moves") == second and registry.load("moves").kind == "last_value"
    assert [v.version for v in registry.versions("moves")] == [int(first), int(second)]
    assert registry.versions("moves")[0].description == "# A card"


def test_of_many_versions_a_training_reads_the_newest_alone(registry, monkeypatch):
    assert registry.newest_version("many") is None and registry.made_at("many", "1") is None
    for _ in range(10):
        put_naive(registry, "many")
    registry.set_version_tags("many", "2", {"live.n": "3"})  # it was changed last
    read, search = [], registry._client.search_model_versions
    monkeypatch.setattr(
        registry._client, "search_model_versions", lambda *asked: read.extend(found := search(*asked)) or found
    )
    assert registry.newest_version("many").version == 10
    assert [text for text in ("10", "11", "010", "none", "") if registry.made_at("many", text)] == ["10"]
    forecast = {"version": "10", "model": "m", "kind": "k", "time": 36_000.0, "step_s": 3600.0, "levels": [0.5]}
    forecast["wall_time"] = time.time()
    served = pd.DataFrame([forecast | {"quantiles": [[9.0]]}, forecast | {"version": "11", "quantiles": [[9.0]]}])
    source = LakeSeries(Series(0.0, 3600.0, np.full(12, 10.0)), 1, served)
    with registry.run("many", "test") as run:
        assert [*score_served_versions(registry, run, "many", source)] == ["10"]
    refuse_unchanged(registry, "many", Training(), "another")
    assert [version.version for version in read] == [10, 10]


def test_of_more_versions_than_an_answer_holds_all_are_listed(registry, monkeypatch):
    made, search = [int(put_naive(registry, "paged")) for _ in range(5)], registry._client.search_model_versions
    monkeypatch.setattr(
        registry._client, "search_model_versions", lambda *asked, **more: search(*asked, **more | {"max_results": 2})
    )
    assert [version.version for version in registry.versions("paged")] == made


def test_a_version_of_a_model_that_was_made_anew_is_another_champion(registry):
    put_naive(registry, "anew", alias="champion")
    before = registry.champions()["anew"]
    assert registry.champions()["anew"] == before
    registry._client.delete_registered_model(registry.model_name("anew"))
    put_naive(registry, "anew", seasonal=False, alias="champion")
    after = registry.champions()["anew"]
    assert (before.version, after.version) == ("1", "1") and before != after


def test_a_version_of_a_model_that_was_made_anew_is_not_judged_by_what_the_one_before_served(registry):
    """Times of the load are those of a trace, which a replay goes through again: the wall clock tells whose it is."""
    told = {"model": "m", "kind": "k", "step_s": 3600.0, "levels": [0.5], "version": "1"}
    put_naive(registry, "deleted-model")
    before = time.time()
    registry._client.delete_registered_model(registry.model_name("deleted-model"))
    put_naive(registry, "deleted-model", seasonal=False)
    issued = [(36_000.0, before, 5.0), (39_600.0, time.time(), 9.0)]
    served = pd.DataFrame([told | {"time": at, "wall_time": wall, "quantiles": [[q]]} for at, wall, q in issued])
    with registry.run("deleted-model", "test") as run:
        source = LakeSeries(Series(0.0, 3600.0, np.full(12, 10.0)), 1, served)
        found = score_served_versions(registry, run, "deleted-model", source)
        assert (found["1"]["n"], found["1"]["wape"]) == (1, pytest.approx(0.1))
        assert score_served_versions(registry, run, "deleted-model", LakeSeries(source.series, 1, served[:1])) == {}


def test_who_was_trained_when_is_said_of_each_kind_alone(registry, settings):
    agents = AgentRegistry(settings)
    for store, job in ((registry, "first"), (registry, "second"), (agents, "first"), (registry, "first")):
        with store.run(job, "a training") as run:
            run.tags({"kind": store.what})
    with registry.run("third", "a backtest") as run:
        run.tags({"kind": "backtest"})
    trained = registry.last_trained()
    assert trained.keys() & {"first", "second", "third"} == {"first", "second"}
    assert trained["second"] < agents.last_trained()["first"] < trained["first"] <= time.time()


def test_what_a_person_wrote_in_a_description_stays(registry):
    """Cards are written with a version; nothing that is done to it, or registered after it, writes one again."""
    import mlflow

    client, version = mlflow.MlflowClient(mlflow.get_tracking_uri()), put_naive(registry, "annotated")
    client.update_model_version("annotated-forecaster", version, "of the week of the fair")
    client.update_registered_model("annotated-forecaster", "ask Ann")
    registry.set_champion("annotated", version)
    registry.set_version_tags("annotated", version, {"live.wape": "0.1"})
    registry.write_verdict("annotated", registry.versions("annotated")[0].run_id, {"version": version, "reason": "x"})
    second = put_naive(registry, "annotated")
    assert [v.description for v in registry.versions("annotated")] == ["of the week of the fair", "# A card"]
    assert (second, client.get_registered_model("annotated-forecaster").description) == ("2", "ask Ann")


def test_the_version_before_is_an_instant_way_back(registry):
    from mlflow.exceptions import MlflowException

    first, second = put_naive(registry, "back"), put_naive(registry, "back", seasonal=False)
    registry.set_champion("back", first)
    with pytest.raises(RegistryError, match="none served before version 1"):
        registry.roll_back("back")
    registry.set_champion("back", second)
    registry.set_champion("back", second)  # a repeated task must not forget the way back
    assert registry.aliases("back") == {first: ["previous"], second: ["champion"]}
    with pytest.raises(MlflowException):
        registry.set_champion("back", "77")
    assert registry.aliases("back") == {first: ["previous"], second: ["champion"]}, "the way back is lost"
    assert registry.roll_back("back") == (second, first)
    assert registry.champion_version("back") == first
    assert registry.versions("back")[1].tags["rolled_back"] == first
    assert registry.taken_back("back") == second


def test_a_second_rollback_goes_further_back_and_never_to_what_was_taken_back(registry):
    first, second, third, fourth = (put_naive(registry, "further") for _ in range(4))
    for version in (first, second, third):
        registry.set_champion("further", version)
    assert registry.roll_back("further") == (third, second)
    assert registry.roll_back("further") == (second, first) and registry.taken_back("further") == second
    with pytest.raises(RegistryError, match=r"version 1 but 2, 3, taken back .*`tidecast models promote further 3` "):
        registry.roll_back("further")
    assert registry.champion_version("further") == first
    registry.promote("further", fourth)
    assert registry.roll_back("further") == (fourth, first), "neither 2 nor 3"
    registry.promote("further", third)  # by a person's word it is as good as any
    assert registry.roll_back("further") == (third, first) and registry.taken_back("further") == third


def test_after_the_alias_was_moved_by_hand_a_rollback_goes_to_what_served_last(registry):
    first, second, third, fourth = (put_naive(registry, "hand") for _ in range(4))
    for version in (first, second):
        registry.set_champion("hand", version)

    def by_hand(version):
        registry._client.set_registered_model_alias("hand-forecaster", "champion", version)  # as on MLflow's pages

    by_hand(third)
    assert registry.alias_version("hand", "previous") == first, "it served long ago"
    assert registry.roll_back("hand") == (third, second) and registry.taken_back("hand") == third
    registry.promote("hand", second)
    by_hand(first)
    registry.promote("hand", fourth)  # which moves `previous`, too
    assert registry.roll_back("hand") == (fourth, first)


def test_a_rollback_that_was_broken_off_between_the_aliases_is_gone_on_with(registry, monkeypatch):
    first, second = put_naive(registry, "broken"), put_naive(registry, "broken", seasonal=False)
    registry.set_champion("broken", first)
    registry.set_champion("broken", second)
    move = registry._client.set_registered_model_alias

    def leave_champion(name, alias, version):
        if alias == "champion":
            raise ConnectionError("MLflow is away")
        move(name, alias, version)

    with monkeypatch.context() as patch, pytest.raises(ConnectionError):
        patch.setattr(registry._client, "set_registered_model_alias", leave_champion)
        registry.roll_back("broken")
    assert registry.champion_version("broken") == second == registry.alias_version("broken", "previous")
    assert registry.roll_back("broken") == (second, first) and registry.taken_back("broken") == second
    assert registry.aliases("broken") == {first: ["champion"], second: ["previous"]}


def test_where_a_person_has_deleted_what_served_a_rollback_says_what_did_before(registry):
    first, second = put_naive(registry, "deleted"), put_naive(registry, "deleted")
    for version in (first, second):
        registry.set_champion("deleted", version)
    registry._client.delete_model_version("deleted-forecaster", second)  # as on MLflow's pages, and its alias with it
    with pytest.raises(RegistryError, match=r"none serves any more: `tidecast models promote deleted 1` lets it serve"):
        registry.roll_back("deleted")


def test_a_person_ends_what_a_rollback_holds(registry):
    first, second, third = (put_naive(registry, "ends") for _ in range(3))
    registry.set_champion("ends", first)
    registry.set_champion("ends", second)
    assert registry.taken_back("ends") is None
    registry.roll_back("ends")
    registry.promote("ends", second)
    assert registry.taken_back("ends") is None and "rolled_back" not in registry.tags("ends", second)
    registry.roll_back("ends")
    registry.promote("ends", first)  # which serves: it stays, and what comes may serve
    assert (registry.champion_version("ends"), registry.taken_back("ends")) == (first, None)
    with pytest.raises(RegistryError, match="none served before version 1 but 2, taken back by a person"):
        registry.roll_back("ends")
    registry.set_champion("ends", second)
    registry.roll_back("ends")
    registry._client.set_registered_model_alias("ends-forecaster", "champion", third)  # as on MLflow's pages
    assert registry.taken_back("ends") is None


def test_errors_say_what_to_do(registry):
    with pytest.raises(RegistryError, match=r"no champion.*Run the DAG"):
        registry.load("nobody")
    with pytest.raises(RegistryError, match="version 77"):
        registry.load("nobody", "77")
    with pytest.raises(RegistryError, match="run 'nothing'"):
        registry.figures("nothing")
    assert registry.read_verdict("nobody") is None


def test_an_outage_is_not_taken_for_no_verdict(registry, monkeypatch):
    from mlflow.exceptions import MlflowException

    def away(name):
        raise MlflowException("connection refused")

    monkeypatch.setattr(registry._client, "get_registered_model", away)
    with pytest.raises(RegistryError, match="connection refused"):
        registry.read_verdict("orders")


@pytest.mark.parametrize("text", ["{", "[1]"])
def test_a_description_that_is_no_forecaster_says_what_to_do(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("model")
    (folder / "forecaster.json").write_text(text)
    with pytest.raises(RegistryError, match=r"orders: forecaster\.json .*Retrain"):
        read_forecaster(folder, "orders")


@pytest.mark.parametrize(
    ("kind", "change", "word"),
    [
        (
            "gru",
            lambda d: {**d, "parameters": {**d["parameters"], "hidden": "4"}},
            "kind='gru' .*Register it anew",
        ),
        ("gru", lambda d: {**d, "levels": [0.5]}, "weights; 3 finite ones"),
        ("gru", lambda d: {**d, "kind": "oracle"}, "kind='oracle'"),
        ("gru", lambda d: {k: v for k, v in d.items() if k != "parameters"}, "lacks 'parameters'"),
        ("gru", lambda d: {**d, "step_s": -1}, "step_s=-1"),
        ("gru", lambda d: {**d, "step_s": "an hour"}, "an hour"),
        ("adapted", lambda d: {**d, "horizon": 5}, "signature .*Retrain"),
    ],
)
def test_an_artifact_of_another_shape_is_refused(registry, registered, kind, change, word):
    """Its description is changed after it was registered, as code of another age would have written it."""
    _, version, file = registered(kind)
    written = file.read_text()
    file.write_text(json.dumps(change(json.loads(written))))
    with pytest.raises(RegistryError, match=word):
        registry.load(f"same-{kind}", version)
    file.write_text(written)
    registry.load(f"same-{kind}", version)


def test_a_network_that_an_older_release_registered_is_read(registry, registered):
    """Of one cell; `test_older_archives` has both."""
    _, version, file = registered("adapted")
    (model,) = next(path for path in file.parents if path.name == "artifacts").rglob("model.pt2")
    described, archive = older_network("gru")
    before = file.read_text(), model.read_bytes()
    file.write_text(json.dumps(described))
    model.write_bytes(archive)
    assert registry.load("same-adapted", version) == network("gru")
    file.write_text(before[0])
    model.write_bytes(before[1])


def test_a_store_that_cannot_be_is_named_at_once(settings):
    with pytest.raises(RegistryError, match=r"tracking_uri=sqlite:////nowhere/no\.db.*Create it"):
        Registry(load(var=settings.var_dir, mlflow={"tracking_uri": "sqlite:////nowhere/no.db"}))


def test_an_experiment_that_was_deleted_is_named_with_the_ways_out(settings):
    named = load(var=settings.var_dir, mlflow={"experiment": "deleted"})
    made = Registry(named)
    made._client.delete_experiment(made._experiment_id)
    with pytest.raises(
        RegistryError, match=r"experiment=deleted: it was deleted(.|\n)*--experiment-id \d+(.|\n)*another"
    ):
        Registry(named)
