import json

import pytest

from pipelines.spark import jars


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """A checkout whose jars are resolved; gives the list as it can be changed and written again."""
    monkeypatch.setattr(jars, "ROOT", tmp_path)
    monkeypatch.setattr(jars, "LIST", tmp_path / "jars.json")
    content = {}
    for group, uris in jars.COORDINATES.items():
        (tmp_path / f"{group}.jar").touch()
        content[group] = {"coordinates": uris, "jars": [f"{group}.jar"]}
    jars.LIST.write_text(json.dumps(content))
    return content


def test_paths_are_absolute_and_exist(listed, tmp_path):
    assert jars.jar_paths("broker") == [str(tmp_path / "broker.jar")]
    assert jars.describe_missing() is None


def test_never_resolved(listed):
    jars.LIST.unlink()
    with pytest.raises(jars.JarsError, match=r"does not exist.*make setup"):
        jars.jar_paths("delta")


@pytest.mark.parametrize("text", ['{"broker": ', "[]", "{}", '{"broker": {"coordinates": []}}', '{"broker": null}'])
def test_half_written_list(listed, text):
    jars.LIST.write_text(text)
    with pytest.raises(jars.JarsError, match=r"does not list the broker jars.*make setup"):
        jars.jar_paths("broker")
    assert "make setup" in (jars.describe_missing() or ""), "the remedy itself asks"


def test_other_versions(listed):
    listed["connector"]["coordinates"] = ["ivy://org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.0"]
    jars.LIST.write_text(json.dumps(listed))
    with pytest.raises(jars.JarsError, match=r"other versions of the connector jars.*make setup"):
        jars.jar_paths("connector")
    assert jars.jar_paths("broker")


def test_a_jar_is_gone(listed, tmp_path):
    (tmp_path / "delta.jar").unlink()
    with pytest.raises(jars.JarsError, match=r"delta\.jar does not exist"):
        jars.jar_paths("delta")
    assert "delta.jar" in (jars.describe_missing() or "")
