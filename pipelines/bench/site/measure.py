"""The table of `tidecast bench site`: each row a neighbour, kept beside those of an earlier call."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from configs.settings import Settings
from pipelines.bench.site.deployment import deploy
from pipelines.bench.site.full_queue import full_queue
from pipelines.bench.site.kept.backup import back_up_and_restore
from pipelines.bench.site.kept.upgrade import upgrade_and_back
from pipelines.bench.site.neighbours import ring_beside_services, ring_on_yarn
from pipelines.figures.written import find_commit
from pipelines.stack.isolation import isolated_settings
from pipelines.whole_file import write_json

ROWS: dict[str, Callable[[Settings, Path], dict[str, Any]]] = {
    "yarn": ring_on_yarn,
    "queue": full_queue,
    "services": ring_beside_services,
    "compose": lambda settings, folder: deploy(folder),
    "backup": back_up_and_restore,
    "upgrade": upgrade_and_back,
}
TESTS = "tests"
"""Part of the figures that `make test-site` measured."""
MINUTE_S = 60.0


def measure_site(
    settings: Settings, rows: Collection[str], earlier: Mapping[str, Any], save: Callable[[dict[str, Any]], None]
) -> None:
    """Measure rows, each in a folder `var/bench/site/ROW` that is emptied first; those not named stay as they were.

    Each row has the `seconds` that it took. What `keep_tests` has kept comes with them, as TESTS.

    Args:
        settings: without an address of a broker, registry or Airflow.
        rows: names, of ROWS.
        earlier: figures of an earlier call.
        save: called with all figures after each row.

    Raises:
        SettingsError: such an address is configured.
        Exception: as the rows' functions.
    """
    own, found = isolated_settings(settings, "bench"), dict(earlier)
    if (kept := _tests_file(settings)).is_file():
        found[TESTS] = json.loads(kept.read_text())
    for row in rows:
        folder, begun = own.var_dir / "site" / row, time.monotonic()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        measured = ROWS[row](own, folder)
        found[row] = {**measured, "seconds": round(time.monotonic() - begun, 1), "commit": find_commit()}
        print(f"{row}: {found[row]}", flush=True)
        save(found)


def keep_tests(settings: Settings, seconds: float, tests: int, passed: int) -> None:
    """Keep what a whole `make test-site` took for the next call of `measure_site`, in `var/bench/site`.

    Args:
        settings: with the folder `var`.
        seconds: from the beginning of its process.
        tests: that there are.
        passed: of them; others failed, or lacked something on this computer.

    Raises:
        OSError: the file cannot be written.
    """
    told = {"minutes": round(seconds / MINUTE_S, 1), "tests": tests, "missed": tests - passed, "commit": find_commit()}
    write_json(_tests_file(settings), told)


def _tests_file(settings: Settings) -> Path:
    return settings.var_dir / "bench" / "site" / "tests.json"
