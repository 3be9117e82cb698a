"""The table of `tidecast bench site`: each row a neighbour, kept beside those of an earlier call."""

from __future__ import annotations

import shutil
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

ROWS: dict[str, Callable[[Settings, Path], dict[str, Any]]] = {
    "yarn": ring_on_yarn,
    "queue": full_queue,
    "services": ring_beside_services,
    "compose": lambda settings, folder: deploy(folder),
    "backup": back_up_and_restore,
    "upgrade": upgrade_and_back,
}


def measure_site(
    settings: Settings, rows: Collection[str], earlier: Mapping[str, Any], save: Callable[[dict[str, Any]], None]
) -> None:
    """Measure rows, each in a folder `var/bench/site/ROW` that is emptied first; those not named stay as they were.

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
    for row in rows:
        folder = own.var_dir / "site" / row
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        found[row] = {**ROWS[row](own, folder), "commit": find_commit()}
        print(f"{row}: {found[row]}", flush=True)
        save(found)
