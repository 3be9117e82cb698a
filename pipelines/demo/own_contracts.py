"""Contracts of a run's own: those of the settings, but for what the run alters of its main job's; and their pools."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from configs.settings import Settings


def with_contract(settings: Settings, run_dir: Path, changes: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Copy contracts and pools into a run's folder and return the settings that name them there.

    Pools and contracts of other jobs are copied as they are, also what is no YAML; who may not read a file may not read
    its copy.

    Args:
        settings: with a contract of the main job that can be loaded.
        run_dir: folder of the run; `contracts` and `pools` are made in it.
        changes: of the main job's contract: keys and values by section, such as {"planning": {"lead_s": 20}}.

    Raises:
        OSError: a file cannot be read or written, or one of the folders is there already.
    """
    chosen = settings.model_copy(update={"contracts": run_dir / "contracts"})
    for source, copy in ((settings.contracts_dir, chosen.contracts_dir), (settings.pools_dir, chosen.pools_dir)):
        copy.mkdir()
        for path in source.glob("*.yaml"):
            shutil.copy(path, copy)
    main = settings.contracts_dir / f"{settings.job.name}.yaml"
    data, own = yaml.safe_load(main.read_text()), chosen.contracts_dir / main.name
    for section, values in changes.items():
        data[section] = {**(data.get(section) or {}), **values}
    own.unlink()  # which need not be writable
    own.touch(mode=0o600)
    own.write_text(yaml.safe_dump(data))
    shutil.copymode(main, own)
    return chosen
