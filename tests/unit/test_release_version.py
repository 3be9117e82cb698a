"""The version of what is built: it rises with each commit, and a file that no commit has is told."""

import importlib.util
import subprocess

import pytest
from packaging.version import Version

import tidecast
from configs.settings import ROOT

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


@pytest.fixture
def find_version():
    spec = importlib.util.spec_from_file_location("built_version", ROOT / "docker" / "version.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.find_version


@pytest.fixture
def clone(tmp_path):
    (tmp_path / "tidecast").mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def commit(clone, text, epoch, monkeypatch):
    monkeypatch.setenv("GIT_COMMITTER_DATE", f"{epoch} +0500")
    (clone / "tidecast" / "agent.py").write_text(text)
    for words in (["add", "."], ["commit", "-q", "-m", text]):
        subprocess.run(["git", *AUTHOR, *words], cwd=clone, check=True)


def test_it_rises_with_each_commit(find_version, clone, monkeypatch):
    commit(clone, "first", 1_700_000_000, monkeypatch)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")  # of another tool: a clone knows its commit
    assert find_version(clone) == "0.1.0.post20231114221320"
    commit(clone, "second", 1_700_000_001, monkeypatch)
    assert Version(find_version(clone)) > Version("0.1.0.post20231114221320")


def test_files_of_the_wheel_that_no_commit_has_are_told_and_newer(find_version, clone, monkeypatch):
    commit(clone, "first", 1_700_000_000, monkeypatch)
    (clone / "README.md").write_text("not of the wheel")
    clean = find_version(clone)
    (clone / "tidecast" / "stray.py").write_text("")
    assert find_version(clone).startswith(f"{clean}+dirty.2") and Version(find_version(clone)) > Version(clean)


def test_a_released_tree_goes_by_the_time_that_it_is_given(find_version, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert find_version(tmp_path) == "0.1.0.post20231114221320"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert find_version(tmp_path) == "0.1.0"


def test_a_clone_is_no_release():
    assert tidecast.__version__ == "source"
