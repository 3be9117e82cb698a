"""The twin's compiled functions after an edit of what they have compiled in."""

import importlib
import os
import sys
import time

from models.twin.sim import actuate, kernel
from models.twin.sim.compiled import SOURCES, forget_stale

USER = """
import numba
import compiled_in

@numba.njit(cache=True)
def rate():
    return compiled_in.RATE
"""


def test_an_edited_constant_of_another_file_is_compiled_in_again(tmp_path, monkeypatch):
    constant, user = tmp_path / "compiled_in.py", tmp_path / "compiled_user.py"
    constant.write_text("RATE = 1.0\n")
    user.write_text(USER)
    monkeypatch.syspath_prepend(tmp_path)

    def loaded():
        for name in ("compiled_in", "compiled_user"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module("compiled_user").rate

    first = loaded()
    assert first() == 1.0
    constant.write_text("RATE = 22.0\n")
    later = time.time() + 10
    os.utime(constant, (later, later))
    assert loaded()() == 1.0  # why `forget_stale` is needed: numba looks at the function's own file alone
    edited = loaded()
    forget_stale([edited], [constant])
    assert edited() == 22.0


def test_the_code_of_the_kernel_depends_on_these_files():
    names = {source.name for source in SOURCES}
    assert {"capacity.py", "state.py", "job.py", "actuate.py", "kernel.py"} <= names
    assert all(source.is_file() for source in SOURCES)
    for function in (kernel.advance, kernel.close, actuate.retarget):
        assert function.stats.cache_path
