"""`tidecast bench`: what is measured."""

from pipelines.cli.bench.commands import agent, borders, dqn, lake, twin, volume
from pipelines.cli.bench.fastpath import bench as fastpath
from pipelines.cli.given import noun

app = noun("Measure; every command prints figures and fails on none.")
for command in (agent, borders, dqn, fastpath, lake, twin, volume):
    app.command("fastpath" if command is fastpath else command.__name__)(command)
