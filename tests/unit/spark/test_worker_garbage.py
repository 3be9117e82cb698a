"""What a Python worker looks through after its tasks: what is new, and what was imported only once."""

import gc
import sys

from pipelines.spark.worker_daemon import Garbage


def test_what_was_imported_is_looked_through_once_and_later_garbage_goes(monkeypatch):
    gc.freeze()  # all that this process has imported takes a second to look through; here it may stay
    garbage, before, kept = Garbage(), gc.get_freeze_count(), [[] for _ in range(1000)]
    garbage.collect()
    frozen = gc.get_freeze_count()
    assert frozen > before + len(kept) / 2  # of what was frozen some goes meanwhile
    kept += [[kept] for _ in range(1000)]  # more than what others leave meanwhile
    garbage.collect()
    assert gc.get_freeze_count() <= frozen, "frozen again though nothing was imported"
    monkeypatch.setitem(sys.modules, "a_module_of_a_task", sys)
    garbage.collect()
    assert gc.get_freeze_count() > frozen
    looped: list = []
    looped.append(looped)
    del looped
    assert gc.collect() > 0
