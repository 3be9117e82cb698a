"""What training of forecasters and agents shares: the form of a run, its verdict, and promotion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from configs.errors import SettingsError
from models.forecast.selection.gate import Verdict
from pipelines.registry.store import ModelStore

Tags = Mapping[str, str]
Section = TypeVar("Section", bound=BaseModel)


def verdict_without_figures(registry: ModelStore, job: str, tags: Tags) -> Verdict | None:
    """Return a verdict against a run's challenger that no figures can change; None where its figures decide.

    Args:
        registry: of the challenger's kind.
        job: its name.
        tags: of the run.

    Returns:
        Not promoted, because there is no challenger, or because another version is champion by now than the one that it
        was compared with.

    Raises:
        RegistryError: MLflow does not answer.
    """
    version, champion = tags.get("challenger"), tags.get("champion") or None
    present = registry.champion_version(job)
    if version is None:
        return Verdict(False, tags.get("outcome", "no challenger: the run did not finish"))
    if present in (champion, version):
        return None
    return Verdict(False, f"rejected: compared with version {champion}, but {present} serves by now. Train again.")


def verdict_record(job: str, run_id: str, tags: Tags, decided: Verdict, **figures: Any) -> dict[str, Any]:
    """Return a verdict as the DAGs hand it on, as JSON values.

    Args:
        job: its name.
        run_id: that trained the challenger.
        tags: of the run.
        decided: the verdict.
        figures: further keys.

    Returns:
        `job`, `promoted`, `reason`, `version` (None without a challenger), `champion` (the version compared with, None
        without one), `run`, and the figures.
    """
    return {
        "job": job, "promoted": decided.promoted, "reason": decided.reason, "version": tags.get("challenger"),
        "champion": tags.get("champion") or None, "run": run_id, **figures,
    }  # fmt: skip


def promote_winner(registry: ModelStore, verdict: Mapping[str, Any]) -> str | None:
    """Make the challenger of a verdict champion if it won and the champion is still the one it was compared with.

    Args:
        registry: of the challenger's kind.
        verdict: with `job`, `version`, `promoted` and `champion`, as `verdict_record` returns it.

    Returns:
        The version that is champion afterwards; None for none.

    Raises:
        RegistryError: MLflow does not answer.
        MlflowException: no such version.
        KeyError: the verdict lacks one of these.
    """
    job, version = verdict["job"], verdict["version"]
    if verdict["promoted"] and registry.champion_version(job) == verdict["champion"]:
        registry.set_champion(job, version)
    return registry.champion_version(job)


def with_form_values(section: Section, name: str, form: Mapping[str, Any]) -> Section:
    """Return a section of the settings with the values of a form in place of its own.

    Args:
        section: of the settings.
        name: of the section, for messages.
        form: keys of the section and their values.

    Raises:
        SettingsError: an unknown key or a wrong value; one line for each, with what would be right.
    """
    try:
        return type(section).model_validate({**section.model_dump(), **form})
    except ValidationError as error:
        lines = [f"{name}.{'.'.join(map(str, e['loc']))}={e['input']!r}: {e['msg']}." for e in error.errors()]
        raise SettingsError("\n".join(lines)) from None
