"""The command beside packages of other projects that have the names of ours."""

import os
import shutil
import subprocess
import sys

import pytest

from configs.settings import ROOT


def run(*folders):
    """What the command says on stderr with these folders on PYTHONPATH."""
    command = [sys.executable, "-P", "-m", "tidecast", "--help"]
    paths = os.pathsep.join(map(str, folders))
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, cwd="/")


@pytest.mark.parametrize("package", ["configs", "pipelines"])
def test_a_package_that_comes_before_ours_is_named_with_its_place(tmp_path, package):
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    ended = run(tmp_path, ROOT)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    assert f"{tmp_path / package / '__init__.py'} is another project's `{package}`" in ended.stderr
    assert "Unset PYTHONPATH" in ended.stderr


def test_a_name_that_one_of_our_own_modules_lacks_is_shown_whole(tmp_path):
    """As after half of an update."""
    shutil.copytree(ROOT / "pipelines" / "cli", tmp_path / "pipelines" / "cli")
    for room in ("tidecast", "configs", "models"):
        (tmp_path / room).symlink_to(ROOT / room)
    (tmp_path / "pipelines" / "__init__.py").touch()
    (tmp_path / "pipelines" / "cli" / "app.py").write_text("from pipelines.cli import gone\n")
    ended = run(tmp_path)
    assert ended.returncode == 1 and "cannot import name 'gone'" in ended.stderr and "PYTHONPATH" not in ended.stderr


def test_an_import_that_fails_for_another_reason_is_shown_whole(tmp_path):
    (tmp_path / "typer.py").touch()
    ended = run(tmp_path, ROOT)
    assert ended.returncode == 1 and "Traceback" in ended.stderr and "PYTHONPATH" not in ended.stderr
