"""Contracts of a run's own: those of the settings, but for what the run alters of its main job's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from configs.settings import Settings


def with_contract(settings: Settings, run_dir: Path, changes: Mapping[str, Mapping[str, Any]]) -> Settings:
    """Copy the contracts into a run's folder and return the settings that name them there.

    Args:
        settings: with contracts that can be loaded.
        run_dir: folder of the run; `contracts` is made in it.
        changes: of the main job's contract: keys and values by section, such as {"planning": {"lead_s": 20}}.

    Raises:
        OSError: a file cannot be read or written, or the folder is there already.
    """
    folder = run_dir / "contracts"
    folder.mkdir()
    for path in settings.contracts_dir.glob("*.yaml"):
        data = yaml.safe_load(path.read_text())
        if path.stem == settings.job.name:
            for section, values in changes.items():
                data[section] = {**(data.get(section) or {}), **values}
        (folder / path.name).write_text(yaml.safe_dump(data))
    return settings.model_copy(update={"contracts": folder})
