import pytest

from pipelines.spark import class_archive
from pipelines.spark.java import Java


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A Java and jars that can be changed; the folder of archives is the test's own."""
    monkeypatch.setattr(class_archive, "FOLDER", tmp_path / "archives")
    monkeypatch.setattr(class_archive.java, "find_java", lambda: Java(tmp_path / "java", 17))
    monkeypatch.setattr(class_archive.jars, "jar_paths", lambda group: [f"/jars/{group}.jar"])
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    (tmp_path / "java").mkdir()
    return tmp_path / "java"


def test_an_archive_is_used_from_the_moment_it_is_there(home):
    assert class_archive.use_option() == ""
    path = class_archive.archive_path()
    path.parent.mkdir()
    path.touch()
    assert f"-XX:SharedArchiveFile={path} -Xshare:auto" in class_archive.use_option()


def test_the_brokers_archive_is_another_and_goes_by_its_own_class_path(home):
    paths = ["/jars/kafka.jar", "/jars/scala.jar"]
    mine = class_archive.broker_archive_path(paths)
    assert class_archive.use_options(mine) == []
    mine.parent.mkdir(parents=True)
    mine.touch()
    assert class_archive.use_options(mine)[:2] == [f"-XX:SharedArchiveFile={mine}", "-Xshare:auto"]
    assert class_archive.use_option() == ""
    names = {class_archive.broker_archive_path(other) for other in (paths, paths[::-1], paths[:1])}
    (home / "release").write_text("17.0.16")
    assert len(names | {class_archive.broker_archive_path(paths)}) == 4


def test_a_new_archive_replaces_those_of_its_own_kind_alone(home):
    spark, broker = class_archive.archive_path(), class_archive.broker_archive_path(["/jars/kafka.jar"])
    broker.parent.mkdir(parents=True)
    old = spark.with_name("0123456789abcdef.jsa")
    for file in (old, broker, spark.with_suffix(".new")):
        file.touch()
    class_archive.replace_archive(spark, spark.with_suffix(".new"))
    assert sorted(spark.parent.rglob("*.*")) == sorted([spark, broker])


@pytest.mark.parametrize("what", ["java", "jars", "order", "configuration"])
def test_what_would_not_fit_has_another_name(home, monkeypatch, what):
    before = class_archive.archive_path()
    if what == "java":
        (home / "release").write_text("17.0.16")
    elif what == "jars":
        monkeypatch.setattr(class_archive.jars, "jar_paths", lambda group: [f"/jars/{group}-2.jar"])
    elif what == "order":
        path = class_archive.class_path()
        monkeypatch.setattr(class_archive, "class_path", lambda: path[::-1])
    else:
        monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert class_archive.archive_path() != before
