"""What numba keeps of compiled functions, after an edit of what they have compiled in."""

import os
import subprocess
import sys
from pathlib import Path

import models
from models import kept_in
from models.twin.sim import kernel

USER = """
import numba
from constant import RATE

@numba.njit(cache=True)
def rate():
    return RATE

print(rate())
"""


def reported(folder, home):
    env = {**os.environ, "NUMBA_CACHE_DIR": str(kept_in(folder, home))}
    return subprocess.run([sys.executable, "user.py"], cwd=folder, env=env, capture_output=True, check=True).stdout


def test_an_edited_constant_of_another_file_is_compiled_in_again(tmp_path):
    sources, home = tmp_path / "sources", tmp_path / "home"
    sources.mkdir()
    (sources / "constant.py").write_text("RATE = 1.5\n")
    (sources / "user.py").write_text(USER)
    assert reported(sources, home) == b"1.5\n"
    kept = list(home.rglob("*.nbi"))
    assert reported(sources, home) == b"1.5\n" and list(home.rglob("*.nbi")) == kept
    (sources / "constant.py").write_text("RATE = 22.0\n")
    assert reported(sources, home) == b"22.0\n"
    assert not any(file.exists() for file in kept)


def test_the_kernels_are_kept_in_the_folder_of_the_sources_as_they_are():
    room = Path(models.__file__).parent
    assert Path(kernel.advance.stats.cache_path).is_relative_to(kept_in(room, room / "__pycache__"))
