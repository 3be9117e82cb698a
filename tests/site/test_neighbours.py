"""A short ring on YARN with HDFS, and one beside three brokers, PostgreSQL and MLflow's server: counts are exact."""

from pathlib import Path

import pytest

from configs.settings import load
from pipelines.bench.site import brokers, servers
from pipelines.bench.site.neighbours import ring_beside_services, ring_on_yarn

SECRETS = (brokers.PASSWORD, servers.DATABASE_PASSWORD, servers.MLFLOW_PASSWORD, servers.MLFLOW_USER_PASSWORD)


@pytest.fixture(scope="module")
def yarn(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYSPARK_SUBMIT_ARGS")
        return ring_on_yarn(load(), tmp_path_factory.mktemp("yarn"))


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    folder = tmp_path_factory.mktemp("services")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYSPARK_SUBMIT_ARGS")
        return ring_beside_services(load(), folder) | {"folder": folder}


@pytest.mark.parametrize("row", ["yarn", "services"])
def test_the_ring_closes_and_counts_are_exact(row, request):
    found = request.getfixturevalue(row)
    assert found["failures"] == []
    assert found["produced"] == found["counted"] > 2000
    assert found["raises"] >= 1 and found["releases"] >= 1


@pytest.mark.parametrize("row", ["yarn", "services"])
def test_the_plan_provides_for_more_than_what_raises_take_there(row, request):
    found = request.getfixturevalue(row)
    assert found["starts"] >= 1 and found["planned_s"] > found["took_s"] > 0


def test_executors_are_as_many_as_the_application_masters_core_leaves(yarn):
    assert 2 < yarn["most_executors"] <= yarn["ceiling"]


def test_a_node_left_with_executors_and_nothing_of_ours_stays_on_yarn(yarn):
    assert yarn["nodes"] == 1 and yarn["executors_lost"] >= 1
    assert yarn["left_running"] == 0


def test_dag_tasks_wrote_the_lake_to_hdfs_and_every_row_is_read_there(yarn):
    assert yarn["lake_commits"] >= 2  # of the history and of the live load
    assert yarn["lake_rows"] > 0 and yarn["lake_unread"] == 0
    assert not yarn["lake_local"]


def test_every_topic_is_on_three_brokers(services):
    assert services["replicas"] == len(brokers.NODES)


def test_no_password_stands_in_what_a_run_leaves(services):
    """Logs, pages, tables, topics, and the databases of Airflow and MLflow: their files, and a dump of all rows."""
    given = {"settings.yaml", "auth.ini"}  # where they are told to those who need them
    folder = Path(services["folder"])
    dump = (folder / servers.DUMP).read_text()
    assert all(f"\nCOPY public.{table} " in dump for table in ("task_instance", "runs", "users"))
    assert (folder / "postgres" / "base").is_dir()
    for file in folder.rglob("*"):
        if file.name == "settings.yaml":
            assert file.stat().st_mode & 0o077 == 0
        if file.is_file() and file.name not in given and not file.name.startswith("node"):
            held = file.read_bytes()
            assert not [secret for secret in SECRETS if secret.encode() in held], file
