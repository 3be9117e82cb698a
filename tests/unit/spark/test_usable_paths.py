import re
import runpy
from pathlib import Path

import pytest

from configs.errors import SettingsError
from configs.settings import ROOT, load
from pipelines.spark import options
from pipelines.spark.usable_paths import clone_fault, refuse_unusable, var_fault
from pipelines.stack import doctor
from pipelines.stack.stack import Stack


@pytest.mark.parametrize("name", ["my code", "Müller", "日本", "it's", "a:b", "feature%2Fx", "c#", "a,b"])
def test_a_clone_may_not_lie_in_every_folder(name, monkeypatch):
    there = Path("/home/me") / name / "tidecast"
    said = clone_fault(there)
    assert str(there) in said and said.endswith("Clone into another folder.")
    monkeypatch.setattr(doctor, "ROOT", there)
    assert not doctor._clone().ok and said in str(doctor._clone())


@pytest.mark.parametrize("name", ["tidecast", "a@2", "c++", "v1.0_x-y", "~me", "k=v"])
def test_most_folders_will_do(name):
    assert clone_fault(Path("/src") / name) == "" and var_fault(Path("/src") / name) == ""


@pytest.mark.parametrize("name", ["Müller", "a,b", "a\\b"])
def test_no_service_starts_in_a_var_that_kafka_cannot_be_told_of(name, tmp_path):
    var = tmp_path / name
    with pytest.raises(SettingsError, match=f"TIDECAST_VAR={re.escape(str(var))} holds .* Set TIDECAST_VAR to"):
        Stack(load(var=var), {"broker"})
    assert not var.exists()
    assert not doctor._var(var).ok and var_fault(var) in str(doctor._var(var))


def test_var_may_have_blanks():
    refuse_unusable(Path("/home/me/my runs"), broker=True)
    refuse_unusable(Path("/home/jörg/runs"), broker=False)


def test_makefile_and_python_know_the_same_letters():
    (refused,) = re.findall(r"LC_ALL=C grep -q '(.*?)'", (ROOT / "Makefile").read_text())
    for letter in map(chr, range(32, 256)):
        assert bool(re.search(refused, letter)) == bool(clone_fault(Path("/") / letter)), letter


def test_sparks_pools_are_found_in_a_folder_with_signs(monkeypatch):
    monkeypatch.setattr("configs.settings.ROOT", Path("/src/a@2"))
    pools = runpy.run_path(options.__file__)["POOLS"]
    assert pools["spark.scheduler.allocation.file"] == "file:/src/a@2/pipelines/spark/pools.xml"
