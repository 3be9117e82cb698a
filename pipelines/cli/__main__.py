"""`python -m pipelines.cli`: the command `tidecast`."""

from pipelines.cli.app import main

main()
