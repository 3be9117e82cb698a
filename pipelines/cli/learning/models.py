"""`tidecast models`: what is registered, and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from configs.errors import SettingsError
from pipelines.cli.options import checked_job, command_group, settings_of_stack

if TYPE_CHECKING:
    from pipelines.registry.aliases import AliasStore

app = command_group("Registered forecasters, and the way back to the last good one.")
Job = Annotated[str, typer.Argument(help="The job they forecast, e.g. word_count.", callback=checked_job)]
Agent = Annotated[bool, typer.Option("--agent", help="The learned policy (DQN) of the job, not its forecaster.")]


@app.command("list")
def list_versions(job: Job) -> None:
    """Print every version of a job's forecaster, its aliases, and how right it has been on the running job.

    `live WAPE` is the sum of misses over the sum of the load (0.1: 10 %) in the `live steps` that it forecast; `-`
    where it served none. The alias `champion` is the version that serves.

    Raises:
        RegistryError: MLflow does not answer (status 2).
        OSError: `var/mlflow` cannot be written.
        SettingsError: a setting is wrong, or no job can have the name (status 2).
    """
    from pipelines.registry import Registry

    registry = Registry(settings_of_stack())
    versions = registry.versions(job)
    aliases = registry.aliases(job)
    print(f"{'version':>7}  {'kind':16} {'alias':20} {'live steps':>10} {'live WAPE':>9}  verdict")
    for version in versions:
        tags, names = version.tags, ", ".join(aliases.get(str(version.version), []))
        print(
            f"{version.version!s:>7}  {tags.get('kind', '?'):16} {names:20} {tags.get('live.n', '-'):>10} "
            f"{tags.get('live.wape', '-'):>9}  {tags.get('verdict', '')}"
        )
    if not versions:
        print(f"no forecaster of {job!r} is registered; run the DAG retrain_forecaster once")


@app.command()
def rollback(job: Job, agent: Agent = False) -> None:
    """Let the version serve again that served before, without a gap; a second call goes further back.

    What was taken back is not gone back to, until `tidecast models promote` lets it serve again, which undoes a
    rollback. Servers ask for the version every `serving.alias_poll_s` (2 s); the command does not wait for them.
    Training promotes no other version by itself until a person does, by `tidecast models promote` or the alias in
    MLflow.

    Raises:
        RegistryError: nothing served before but what was taken back, MLflow does not answer, or the model is another
            deployment's (status 2).
        MlflowException, OSError: MLflow refuses to change an alias or tag; `var/mlflow` cannot be written (status 1).
        SettingsError: a setting is wrong, or no job can have the name (status 2).
    """
    left, back = _store(agent).roll_back(job)
    print(f"{job}: version {back} serves again instead of {left}")


@app.command()
def promote(
    job: Job, version: Annotated[str, typer.Argument(help="The one that is to serve, e.g. 3.")], agent: Agent = False
) -> None:
    """Let a version serve by a person's word; later winners of trainings are then promoted by themselves again.

    After a rollback, the version that serves may be named, too: it stays, and only the hold on later winners ends.

    Raises:
        RegistryError: MLflow does not answer, or the model is another deployment's (status 2).
        MlflowException, OSError: MLflow refuses to change an alias or tag; `var/mlflow` cannot be written (status 1).
        SettingsError: no such version, a setting is wrong, or no job can have the name (status 2).
    """
    store = _store(agent)
    there = [str(one.version) for one in store.versions(job)]
    if version not in there:
        what = "agent" if agent else "forecaster"
        known = f"There are {', '.join(there)}" if there else "There is none yet"
        raise SettingsError(f"{job}: its {what} has no version {version!r}. {known}.")
    store.promote(job, version)
    print(f"{job}: version {version} serves")


def _store(agent: bool) -> AliasStore:
    from pipelines.registry import AgentRegistry, Registry

    return AgentRegistry(settings_of_stack()) if agent else Registry(settings_of_stack())
