"""What forecasters and agents have in common once they are trained: the form of a run, and who serves afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from configs.errors import SettingsError
from pipelines.registry.store import Store

Section = TypeVar("Section", bound=BaseModel)


def let_serve(registry: Store, verdict: Mapping[str, Any]) -> str | None:
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
