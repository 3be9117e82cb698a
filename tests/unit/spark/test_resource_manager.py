"""Where the ResourceManager is by Hadoop's configuration; the message where nobody answers there."""

import socket
import xml.etree.ElementTree as ET

import pytest

from pipelines.spark.resource_manager import FILE, manager_addresses, silent_manager


def write(folder, **values):
    root = ET.Element("configuration")
    for name, value in values.items():
        one = ET.SubElement(root, "property")
        ET.SubElement(one, "name").text = f"yarn.resourcemanager.{name}"
        ET.SubElement(one, "value").text = value
    ET.ElementTree(root).write(folder / FILE)
    return folder / FILE


@pytest.mark.parametrize(
    ("values", "addresses"),
    [
        ({"address": "rm:8050"}, ["rm:8050"]),
        ({"hostname": "rm"}, ["rm:8032"]),
        ({"hostname": "rm", "address": "${yarn.resourcemanager.hostname}:8050"}, ["rm:8050"]),
        ({"ha.rm-ids": "a, b", "hostname.a": "one", "address.b": "two:1"}, ["one:8032", "two:1"]),
    ],
)
def test_addresses_are_those_of_hadoop(tmp_path, values, addresses):
    assert manager_addresses(write(tmp_path, **values)) == addresses


@pytest.mark.parametrize("values", [{}, {"address": "${env.RM}:8032"}, {"ha.rm-ids": "a,b", "hostname.a": "one"}])
def test_what_stands_elsewhere_is_not_guessed(tmp_path, values, monkeypatch):
    with pytest.raises(ValueError, match=r"yarn\.resourcemanager\.address"):
        manager_addresses(write(tmp_path, **values))
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    assert silent_manager() is None


def test_who_does_not_answer_is_named_and_one_of_two_is_enough(tmp_path, monkeypatch):
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        write(tmp_path, address=address)
        assert f"at {address}, its ResourceManager by {tmp_path / FILE}" in silent_manager()
        listener.listen()
        write(tmp_path, **{"ha.rm-ids": "a,b", "address.a": "127.0.0.1:1", "address.b": address})
        assert silent_manager() is None


def test_without_a_configuration_nothing_is_said_of_it(tmp_path, monkeypatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    assert silent_manager() is None
    monkeypatch.setenv("YARN_CONF_DIR", str(tmp_path))
    assert silent_manager() is None
