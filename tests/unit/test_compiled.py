"""What numba keeps of compiled functions, after an edit of what they have compiled in."""

import importlib
import json
import os
import runpy
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path

import pytest
from numba.core.registry import CPUDispatcher

import models
from configs.settings import ROOT
from models import kept_in
from models.twin.sim import kernel
from tests.fakes.serving import forked

USER = """
import numba
from constant import RATE

@numba.njit(cache=True)
def rate():
    return RATE

print(rate())
"""


def missed_beforehand(said):
    """Write which functions are kept and which `precompile` leaves out, with modules that compiled nothing yet.

    A function that is read from disk has its callees in it, so that they are never asked for.
    """
    for name in [name for name in sys.modules if name.split(".")[0] == "models"]:
        del sys.modules[name]
    importlib.import_module("models.precompile").precompile()
    files = [file.relative_to(ROOT) for file in (ROOT / "models").rglob("*.py") if "numba" in file.read_text()]
    modules = [importlib.import_module(".".join(file.with_suffix("").parts)) for file in files]
    known = {one for module in modules for one in vars(module).values() if isinstance(one, CPUDispatcher)}
    kept = {one for one in known if one.targetoptions.get("inline") != "always"}
    reached, near = set(), {one for one in kept if one.signatures}
    while near:
        reached |= near
        called = {one.py_func.__globals__.get(name) for one in near for name in one.py_func.__code__.co_names}
        near = (called & known) - reached
    told = (kept, kept - reached)
    named = [sorted(f"{one.py_func.__module__}.{one.py_func.__name__}" for one in some) for some in told]
    said.write_text(json.dumps(named))


def reported(folder, home):
    """What `user.py` says in a process of its own, forked with numba imported, that keeps what is compiled at home."""
    said = home.with_name("said")

    def run():
        import numba

        os.environ["NUMBA_CACHE_DIR"] = str(kept_in(folder, home))
        numba.config.reload_config()
        sys.path.insert(0, str(folder))
        with said.open("w") as file, redirect_stdout(file):
            runpy.run_path(str(folder / "user.py"), run_name="__main__")

    forked(run)
    return said.read_text()


def test_an_edited_constant_of_another_file_is_compiled_in_again(tmp_path):
    sources, home = tmp_path / "sources", tmp_path / "home"
    sources.mkdir()
    (sources / "constant.py").write_text("RATE = 1.5\n")
    (sources / "user.py").write_text(USER)
    assert reported(sources, home) == "1.5\n"
    assert (kept := list(home.rglob("*.nbi")))
    assert reported(sources, home) == "1.5\n" and list(home.rglob("*.nbi")) == kept
    (sources / "constant.py").write_text("RATE = 22.0\n")
    assert reported(sources, home) == "22.0\n"
    assert not any(file.exists() for file in kept)


def test_the_kernels_are_kept_in_the_folder_of_the_sources_as_they_are():
    room = Path(models.__file__).parent
    assert Path(kernel.advance.stats.cache_path).is_relative_to(kept_in(room, room / "__pycache__"))


@pytest.mark.study
def test_all_that_is_kept_is_compiled_beforehand(tmp_path):
    said = tmp_path / "said"
    forked(partial(missed_beforehand, said))
    kept, missed = json.loads(said.read_text())
    assert "models.twin.sim.kernel.advance" in kept and missed == []
