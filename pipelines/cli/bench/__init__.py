"""`tidecast bench`: one file per measurement."""

import typer

from pipelines.cli.bench import agent, borders, dqn, fastpath, lake, twin, volume

app = typer.Typer(no_args_is_help=True, help="Measure; every command prints figures and fails on none.")
for name, module in (
    ("agent", agent),
    ("borders", borders),
    ("dqn", dqn),
    ("fastpath", fastpath),
    ("lake", lake),
    ("twin", twin),
    ("volume", volume),
):
    app.command(name)(module.bench)
