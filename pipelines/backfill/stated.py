"""What a job's contract states for its backfills: its tables, and in which time zone times are read and told."""

from __future__ import annotations

from collections.abc import Mapping

from configs.backpressure import Backpressure
from configs.contract import Contract, load_contract
from configs.settings import Settings


def read_stated(settings: Settings, job: str) -> Contract:
    """Return a job's contract; of a job that has none, one that states nothing.

    Raises:
        SettingsError: its contract is wrong.
    """
    known = (settings.contracts_dir / f"{job}.yaml").is_file()
    return load_contract(job, settings.contracts_dir) if known else Contract(job=job)


def zone_of(contract: Contract, settings: Settings) -> str:
    """Return the IANA name of a job's own time zone; where its contract states none, of that of all jobs."""
    return contract.timezone or settings.replay.timezone


def tables_of(contract: Contract) -> Mapping[str, str]:
    """Return the paths of the tables that keep the records of topics, by their whole names, as a contract states."""
    return (contract.backpressure or Backpressure()).tables
