"""What training of forecasters and agents shares: the verdict on a run, and promotion."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from configs.errors import FinalError
from models.forecast.selection.gate import Verdict
from pipelines.registry.artifacts import UnreadableError
from pipelines.registry.store import ModelStore

Tags = Mapping[str, str]
Model_co = TypeVar("Model_co", covariant=True)
ASKED_S = 3600.0
"""Wall seconds after its training within which a winner is asked about, and in which an answer is done."""
OVERTAKEN = "rejected: compared with"
"""So begins the outcome of a winner that came too late: it says nothing of what a next one is worth."""


class ServesAlreadyError(FinalError):
    """A person said no to a version that serves; the message names the command that takes it back."""


class ChampionStore(Protocol[Model_co]):
    """What is asked of a registry to load a champion (the version that serves)."""

    def champion_version(self, job: str) -> str | None:
        """Return the version of the alias `champion`, e.g. "3", or None."""

    def load(self, job: str, version: str | None = None) -> Model_co:
        """Load the model of a version."""


def load_champion(registry: ChampionStore[Model_co], job: str) -> tuple[str | None, Model_co | None, str]:
    """Load the champion (the version that serves) that a challenger is compared with.

    An outage comes through: passed over, the champion would lose to a challenger that is worse.

    Args:
        registry: of the challenger's kind (forecasters or agents).
        job: its name.

    Returns:
        The champion's version; the model; and a remark. No version and model: there is no champion. A remark and no
        model: this code cannot read it, or its files are gone.

    Raises:
        RegistryError, OSError: MLflow does not answer.
        MessageError: no job can have the name.
    """
    version = registry.champion_version(job)
    if version is None:
        return None, None, ""
    try:
        return version, registry.load(job, version), ""
    except UnreadableError as error:
        return version, None, f"The champion cannot be loaded: {error}"


def decide(registry: ModelStore, job: str, tags: Tags, by_figures: Callable[[], Verdict]) -> Verdict:
    """Return the verdict on a run's challenger, by its figures where these can decide.

    They cannot where there is no challenger, or where the job's champion (the registered version that serves) is by now
    neither the version compared with nor the challenger. Nor does one win by them where a person took a version back:
    the next is likely to be its like.

    Args:
        registry: of the challenger's kind (forecasters or agents).
        job: its name.
        tags: of the run; `challenger` and `champion` are versions as text, `outcome` says in words how the run ended.
        by_figures: returns the verdict by the run's figures; called where they decide.

    Raises:
        RegistryError: MLflow does not answer.
        MessageError: no job can have the name.
    """
    version, champion = tags.get("challenger"), tags.get("champion") or None
    present = registry.champion_version(job)
    if version is None:
        return Verdict(False, tags.get("outcome", "no challenger: the run did not finish"))
    if present not in (champion, version):
        return Verdict(False, overtaken(champion, present))
    decided = by_figures()
    if not decided.promoted or (left := registry.taken_back(job)) is None:
        return decided
    return Verdict(False, f"{_held(registry, job, left, version)} By its figures: {decided.reason}")


def _held(registry: ModelStore, job: str, left: str, version: str) -> str:
    command = _command(registry, "promote", job, version)
    return f"held: a person took version {left} back, so none is promoted by itself before a person does: `{command}`."


def _command(registry: ModelStore, does: str, *named: str) -> str:
    return " ".join(["tidecast models", does, *named, *(["--agent"] if registry.what == "agent" else [])])


def verdict_record(job: str, run_id: str, tags: Tags, decided: Verdict, **figures: Any) -> dict[str, Any]:
    """Return a verdict as a dict of JSON values, as the tasks of the DAGs pass it on.

    Args:
        job: its name.
        run_id: MLflow's id of the run that trained the challenger.
        tags: of that run.
        decided: the verdict.
        figures: further keys and values.

    Returns:
        `job`; `promoted` (bool); `reason` (words); `version` of the challenger (text; None without one); `champion`
        (version compared with, text; None without one); `run` (its id); and the figures.
    """
    return {
        "job": job, "promoted": decided.promoted, "reason": decided.reason, "version": tags.get("challenger"),
        "champion": tags.get("champion") or None, "run": run_id, **figures,
    }  # fmt: skip


def promote_winner(registry: ModelStore, verdict: Mapping[str, Any]) -> Mapping[str, Any]:
    """Point the alias `champion` at a verdict's challenger if it won and the version it was compared with still serves.

    The champion until then gets the alias `previous`. A winner that comes too late, since another version serves or a
    person has taken one back, also at this very moment, is not promoted, and its verdict is rewritten so. Of one that
    has served before, as where a task of an old run is repeated, nothing is changed or rewritten, which is printed.

    Args:
        registry: of the challenger's kind (forecasters or agents).
        verdict: as `verdict_record` returns it.

    Returns:
        The verdict as it stands: `promoted` says whether the challenger serves.

    Raises:
        RegistryError, MlflowException: MLflow does not answer, or there is no such version.
        KeyError: the verdict lacks one of these keys.
        MessageError: no job can have the name.
    """
    job, version, champion = verdict["job"], verdict["version"], verdict["champion"]
    present = registry.champion_version(job)
    if not verdict["promoted"] or present == version:
        return verdict
    if registry.has_served(job, version):
        again = f"`{_command(registry, 'promote', job, version)}` lets it serve again"
        return _left(verdict, f"version {version} has served already, and {present} serves by now; {again}")
    if present != champion:
        return _refused(registry, verdict, overtaken(champion, present))
    if (left := registry.taken_back(job)) is not None:
        return _refused(registry, verdict, _held(registry, job, left, version))
    if not registry.succeed(job, version, champion):
        return _refused(registry, verdict, overtaken(champion, registry.champion_version(job)))
    registry.write_verdict(job, verdict["run"], verdict)  # a person may have said no first
    return verdict


def overtaken(champion: str | None, present: str | None) -> str:
    """Return in words why a winner is not promoted: not the version that it was compared with serves by now.

    Args:
        champion: the version that it was compared with; None for none.
        present: the one that serves.
    """
    with_what = "no champion" if champion is None else f"version {champion}"
    return f"{OVERTAKEN} {with_what}, but {present or 'none'} serves by now. Train again."


def is_settled(registry: ModelStore, verdict: Mapping[str, Any], made_at: float, approval_s: float) -> bool:
    """Return whether nothing is left to be done of a verdict: its challenger lost or serves, or a person's word stands.

    A winner of which none of that holds could not be promoted, as MLflow was away.

    Args:
        registry: of the challenger's kind (forecasters or agents).
        verdict: as `verdict_record` returns it.
        made_at: when the challenger was registered, epoch seconds.
        approval_s: wall seconds that a person is given to answer; 0 where nobody is asked.

    Returns:
        True also where the winner has served until a person took it back or let another serve, where promotions are
        held (`taken_back`), and where the question about it may still be open: for `approval_s` and an hour (ASKED_S).

    Raises:
        RegistryError: MLflow does not answer.
        KeyError: the verdict lacks a key.
        MessageError: no job can have the name.
    """
    if not verdict["promoted"]:
        return True
    job, version = verdict["job"], verdict["version"]
    if registry.has_served(job, version) or registry.taken_back(job) is not None:
        return True
    return approval_s > 0 and time.time() < made_at + approval_s + ASKED_S


def reject_winner(registry: ModelStore, verdict: Mapping[str, Any], by: str) -> Mapping[str, Any]:
    """Write to a winner's record that a person said no; returns the verdict as it stands, not promoted.

    Of one that has served before the record stays, which is printed: a no takes nothing back.

    Args:
        registry: of the challenger's kind (forecasters or agents).
        verdict: as `verdict_record` returns it.
        by: the person's name.

    Raises:
        ServesAlreadyError: it serves, as a person let it before the question was answered; the record stays.
        RegistryError, MlflowException: MLflow does not answer, or there is no such version.
        KeyError: the verdict lacks a key.
        MessageError: no job can have the name.
    """
    job, version = verdict["job"], verdict["version"]
    back = f"`{_command(registry, 'rollback', job)}`"
    if registry.champion_version(job) == version:
        raise ServesAlreadyError(
            f"{by} said no to version {version} of {job}, which serves already: {back} takes it back."
        )
    if registry.has_served(job, version):
        return _left(
            verdict, f"{by} said no to version {version}, which has served before; {back} takes back what serves"
        )
    return _refused(registry, verdict, f"rejected by {by}. By its figures: {verdict['reason']}")


def _left(verdict: Mapping[str, Any], why: str) -> Mapping[str, Any]:
    reason = f"nothing was changed: {why}."
    print(f"{verdict['job']}: {reason}", flush=True)
    return {**verdict, "promoted": False, "reason": reason}


def _refused(registry: ModelStore, verdict: Mapping[str, Any], reason: str) -> Mapping[str, Any]:
    said = {**verdict, "promoted": False, "reason": reason}
    registry.write_verdict(verdict["job"], verdict["run"], said)
    return said
