"""`tidecast models`: what is registered, and the way back."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.given import here, noun

app = noun("Registered forecasters, and the way back to the last good one.")
Job = Annotated[str, typer.Argument(help="The job they forecast, e.g. word_count.")]


@app.command("list")
def show(job: Job) -> None:
    """Print every version of a job's forecaster, its aliases, and how right it has been on the running job."""
    from pipelines.registry import Registry

    registry = Registry(here())
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
def rollback(job: Job) -> None:
    """Let the version serve again that served before; serving takes it up within seconds, without a gap."""
    from pipelines.registry import Registry

    left, back = Registry(here()).roll_back(job)
    print(f"{job}: version {back} serves again instead of {left}")
