"""`tidecast bench site`: the ring on neighbours that are not the embedded ones, and the containers."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from configs.settings import load
from pipelines.cli.options import JsonFile, choose_names
from pipelines.figures.form import read_figure
from pipelines.figures.written import write_figure


def measure_real_neighbours(
    rows: Annotated[str, typer.Option(help="Rows of the table, with commas between; all by default.")] = "",
    as_json: JsonFile = None,
) -> None:
    """Close a short ring on real neighbours, and see what a deployment keeps over a restart, a restore and an upgrade.

    `yarn`: the job on YARN, its state and the lake on HDFS, of whose nodes one leaves. `queue`: a queue of YARN that is
    full. `services`: three brokers with logins and ACLs, of which one is killed, PostgreSQL under Airflow and MLflow,
    MLflow with logins, a hundred DAGs of others. `compose`: `docker/compose.yaml` on stand-ins of the official images;
    needs podman, root and 15 GB under `var`. `backup`: what a short ring leaves, by `tidecast backup` and `restore` on
    an empty folder, started there. `upgrade`: serving and autoscaler of the release before (the newest tag; without one
    the last commit of the day before the newest of `CHANGELOG.md`) replaced by this one's beside a job under load, and
    back; needs the clone's history. Some ten minutes each; what the file of `--json` says of the others stays.

    Raises:
        SettingsError: no such row; or the address of a service is set (status 2).
        SiteError: what a row needs is not installed, or something did not happen in time (status 2).
        StackError, ProcessError, JavaError, JarsError, BrokerError, DemoError: a service does not start, or a stage
            did not get through (status 2).
        FigureError: the file of `--json` is there and is no figure (status 2).
        OSError: a file cannot be written.
    """
    from pipelines.bench.site.measure import ROWS, measure_site

    names = choose_names("--rows", rows, ROWS)
    earlier = read_figure(as_json).data if as_json is not None and as_json.exists() else {}
    measure_site(load(), names, earlier, partial(write_figure, as_json))
