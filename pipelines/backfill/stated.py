"""What a job's contract states for its backfills, and in which time zone their times are read and told."""

from __future__ import annotations

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
