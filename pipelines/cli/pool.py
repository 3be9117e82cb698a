"""`tidecast pool`: the cores that several jobs share."""

from __future__ import annotations

from typing import Annotated

import typer

from pipelines.cli.options import command_group, settings_from_options

app = command_group("Check how a cluster's cores are shared between jobs.")


@app.command("check")
def check_pool(name: Annotated[str, typer.Argument(help="A pool, as its file is called.")]) -> None:
    """Say what is wrong in a pool's file, NAME.yaml, line by line, or what its jobs have a right to.

    The file is in the folder `pools` beside that of the contracts (`configs/pools` where settings name no other).

    Raises:
        SettingsError: there is no such pool, something in it is wrong, or one of its jobs is in another one, too
            (status 2).
    """
    from configs.contract import read_contracts
    from configs.errors import SettingsError
    from configs.pool import load_pool, read_pools

    settings = settings_from_options()
    contracts, _ = read_contracts(settings.contracts_dir)
    pool = load_pool(name, settings.pools_dir, contracts)
    _, wrong = read_pools(settings.pools_dir, contracts)
    if name in wrong:
        raise SettingsError(wrong[name])
    price = pool.price_per_core_hour
    typer.echo(
        f"{pool.name}: {pool.cores} cores" + ("" if price is None else f", {pool.cores * price:g} an hour at most")
    )
    for job, stated in pool.jobs.items():
        bounds = contracts[job].executors
        least = max(stated.floor, bounds.min)
        told = f"{least} to {bounds.max} executors of {bounds.cores} cores, a late second costs {stated.weight:g}"
        typer.echo(f"  {job}: {told}{', frozen' if stated.frozen else ''}")
