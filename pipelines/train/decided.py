"""What forecasters and agents share in training: the form of a run, who cannot be judged, who serves afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from configs.errors import SettingsError
from models.forecast.selection.gate import Verdict
from pipelines.registry.store import ModelStore

Tags = Mapping[str, str]
Section = TypeVar("Section", bound=BaseModel)


def refused(registry: ModelStore, job: str, tags: Tags) -> Verdict | None:
    """Why a run's challenger cannot be judged by its figures; None where it can be."""
    version, champion = tags.get("challenger"), tags.get("champion") or None
    present = registry.champion_version(job)
    if version is None:
        return Verdict(False, tags.get("outcome", "no challenger: the run did not finish"))
    if present in (champion, version):
        return None
    return Verdict(False, f"rejected: compared with version {champion}, but {present} serves by now. Train again.")


def ruling(job: str, run_id: str, tags: Tags, decided: Verdict, **figures: Any) -> dict[str, Any]:
    """A verdict as the DAGs pass it on, with figures of its kind."""
    return {
        "job": job, "promoted": decided.promoted, "reason": decided.reason, "version": tags.get("challenger"),
        "champion": tags.get("champion") or None, "run": run_id, **figures,
    }  # fmt: skip


def let_serve(registry: ModelStore, verdict: Mapping[str, Any]) -> str | None:
    """Let the challenger of a verdict serve if it won; returns the version that serves afterwards, None for none.

    A verdict that comes late, when another version than the one compared with serves by now, changes nothing.
    """
    job, version = verdict["job"], verdict["version"]
    if verdict["promoted"] and registry.champion_version(job) == verdict["champion"]:
        registry.set_champion(job, version)
    return registry.champion_version(job)


def formed(section: Section, name: str, form: Mapping[str, Any]) -> Section:
    """A section of the settings, with the values of a form in their place.

    Raises:
        SettingsError: names the key, the value and what would be right.
    """
    try:
        return type(section).model_validate({**section.model_dump(), **form})
    except ValidationError as error:
        lines = [f"{name}.{'.'.join(map(str, e['loc']))}={e['input']!r}: {e['msg']}." for e in error.errors()]
        raise SettingsError("\n".join(lines)) from None
