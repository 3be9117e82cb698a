"""`make release` in a clone of its own: what it builds, twice, and what it refuses; an engine that notes its orders."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from packaging.version import Version

from configs.settings import ROOT
from tests.integration.test_wheel import uv

pytestmark = pytest.mark.integration
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
ENGINE = """#!/bin/sh
if [ "$1" = image ]; then echo sha256:0123; exit; fi
for last; do :; done
{ echo "$@"; ls "$last"; cat "$last/COMMIT"; stat -c '%Y %n' "$last/COMMIT" "$last/LICENSE"; } >> "$NOTED"
"""


def git(folder, *words):
    done = subprocess.run(["git", *AUTHOR, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path):
    """What a wheel needs, committed."""
    made = tmp_path / "clone"
    for name in (
        "docker/release", "docker/version.py", "docker/Dockerfile", "pyproject.toml", "LICENSE", ".gitignore",
    ):  # fmt: skip
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, made / name)
    shutil.copytree(ROOT / "tidecast", made / "tidecast", ignore=shutil.ignore_patterns("__pycache__"))
    git(made, "init", "-q")
    git(made, "add", ".")
    git(made, "commit", "-q", "-m", "all")
    return made


def release(clone, tmp_path):
    engine = tmp_path / "podman"
    engine.write_text(ENGINE)
    engine.chmod(0o755)
    env = os.environ | {"ENGINE": str(engine), "UV": uv(), "NOTED": str(tmp_path / "noted")}
    return subprocess.run([str(clone / "docker" / "release")], env=env, capture_output=True, text=True)


def test_a_commit_makes_the_same_bytes_again_its_labels_say_which_and_the_next_one_is_newer(clone, tmp_path):
    commit, made_at = git(clone, "rev-parse", "HEAD"), git(clone, "log", "-1", "--format=%ct")
    first = release(clone, tmp_path)
    assert first.returncode == 0, first.stderr
    (wheel,) = (clone / "dist").glob("*.whl")
    version = wheel.name.split("-")[1]
    content = wheel.read_bytes()
    wheel.unlink()
    for file in (clone / "tidecast").rglob("*"):
        os.utime(file, (1, 1))  # as another clone has other times
    assert release(clone, tmp_path).returncode == 0
    assert wheel.read_bytes() == content
    assert "tidecast/agent.py" in zipfile.ZipFile(wheel).namelist()
    subprocess.run(["sha256sum", "-c", f"tidecast-{version}.sha256"], cwd=clone / "dist", check=True)
    assert (clone / "dist" / f"tidecast-{version}.image").read_text() == f"tidecast:{version} sha256:0123\n"

    noted = Path(tmp_path / "noted").read_text().splitlines()
    for words in (f"image.version={version}", f"image.revision={commit}", f"--timestamp {made_at}"):
        assert words in noted[0]
    assert commit in noted and f"{made_at} " in noted[-1]
    assert not any(line.startswith("dist") for line in noted)  # what is not committed is not in it

    later = str(int(made_at) + 1)
    with (clone / "LICENSE").open("a") as file:
        file.write("\n")
    subprocess.run(
        ["git", *AUTHOR, "commit", "-qam", "later"], cwd=clone, check=True,
        env=os.environ | {"GIT_COMMITTER_DATE": f"{later} +0000"},
    )  # fmt: skip
    assert release(clone, tmp_path).returncode == 0
    older, newer = sorted(Version(wheel.name.split("-")[1]) for wheel in (clone / "dist").glob("*.whl"))
    assert newer > older == Version(version) >= Version("0.1.0.post20260101000000")


@pytest.mark.parametrize("change", ["tidecast/agent.py", "stray.py"])
def test_files_that_no_commit_has_are_refused(clone, tmp_path, change):
    with (clone / change).open("a") as file:
        file.write("\n")
    done = release(clone, tmp_path)
    assert done.returncode == 2 and change in done.stderr and "Commit them" in done.stderr
    assert not (clone / "dist").exists() and not (tmp_path / "noted").exists()
