import errno
import socket

import pytest

from configs.settings import load
from pipelines.spark import java
from pipelines.stack import doctor


def test_missing_things_come_with_a_remedy(monkeypatch):
    def no_java():
        raise java.JavaError("Java 17 or 21 is needed and was not found:\n  nothing")

    monkeypatch.setattr(doctor.java, "find_java", no_java)
    monkeypatch.setattr(doctor.jars, "describe_missing", lambda: "jars.json does not exist")
    monkeypatch.setattr(doctor.psutil, "virtual_memory", lambda: type("M", (), {"total": 4 * 1024**3}))
    found = {check.name: check for check in doctor.run_checks(load())}
    for name in ("java", "jars", "memory"):
        assert not found[name].ok and found[name].remedy
        assert str(found[name]).startswith("missing") and found[name].remedy in str(found[name])
    assert found["python"].ok and found["packages"].ok
    assert str(found["python"]).startswith("ok")


def test_a_service_that_does_not_answer_comes_with_one_remedy():
    found = str(doctor._services(load(kafka={"bootstrap": "127.0.0.1:1"})))
    assert found.startswith("missing  services") and found.count("unset it") == 1 and found == found.rstrip()


def test_a_cluster_manager_that_is_no_address_is_not_tried():
    settings = load(spark={"master": "yarn"}, mlflow={"tracking_uri": "databricks"})
    assert doctor._services(settings).ok


def test_of_several_masters_one_that_answers_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as serving:
        there = f"127.0.0.1:{serving.getsockname()[1]}"
        assert doctor._services(load(spark={"master": f"spark://127.0.0.1:1,{there}"})).ok
    assert not doctor._services(load(spark={"master": f"spark://127.0.0.1:1,{there}"})).ok


@pytest.mark.parametrize("address", ["host:99999", "host:port", "[::1"])
def test_what_is_no_address_is_told_like_one_that_does_not_answer(address):
    found = str(doctor._services(load(kafka={"bootstrap": address})))
    assert f"TIDECAST_KAFKA__BOOTSTRAP={address}: no address (" in found and "unset it" in found


@pytest.mark.parametrize(
    ("lock", "ok", "said"),
    [
        ("psutil==0.0.1\n", False, "instead of 0.0.1"),
        ("no-such-package-at-all==1.0\n", False, "no-such-package-at-all is not installed"),
        ("nvidia-nothing==1.0\n", True, "0 as in"),
    ],
)
def test_packages_against_the_lock(tmp_path, lock, ok, said):
    path = tmp_path / "requirements.lock"
    path.write_text(lock)
    check = doctor._packages(path)
    assert check.ok is ok and said in check.found


def test_container_limit_counts(monkeypatch):
    monkeypatch.setattr(doctor, "_container_limit", lambda: 2 * 1024**3)
    assert doctor._memory().found == "2.0 GiB"


def test_a_var_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    assert doctor._var(tmp_path / "not" / "yet").ok
    (tmp_path / "file").touch()
    found = doctor._var(tmp_path / "file" / "var")
    assert not found.ok and f"{tmp_path / 'file'} cannot be written" in found.found and "TIDECAST_VAR" in found.remedy

    def read_only(dir):
        raise OSError(errno.EROFS, "Read-only file system", str(dir))

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", read_only)
    assert "cannot be written: Read-only file system" in str(doctor._var(tmp_path))
