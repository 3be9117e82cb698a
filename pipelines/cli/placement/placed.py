"""What the commands of plans and of jobs that run in blocks share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from configs.errors import CorrectableError, SettingsError
from configs.settings import Settings
from pipelines.cli.options import settings_from_options, settings_of_stack

if TYPE_CHECKING:
    from configs.topology import Topology
    from models.placement.plan.measured import Placement


class UnplannedError(CorrectableError):
    """A topology for which there is no plan, or a plan that cannot be applied; the message says what is missing."""


def topology_file(topology: str) -> Path:
    """Return the file of a topology that is named, or whose file is."""
    file = Path(topology)
    return file if file.suffix == ".yaml" else settings_from_options().topologies_dir / f"{topology}.yaml"


@contextmanager
def planned() -> Iterator[None]:
    """Tell a person in a line what there is no plan for.

    Raises:
        UnplannedError: instead of a `PlanError`.
    """
    from models.placement.plan.choose import PlanError

    try:
        yield
    except PlanError as error:
        raise UnplannedError(str(error)) from None


def with_broker() -> Settings:
    """Return the settings, with the broker of `make up` where they name none.

    Raises:
        SettingsError: no stack is running, and they name none.
    """
    settings = settings_of_stack()
    if settings.kafka.bootstrap is None:
        raise SettingsError(
            "no stack is running and kafka.bootstrap is not set. `make up` starts one, or set "
            "TIDECAST_KAFKA__BOOTSTRAP=host:port."
        )
    return settings


def run_job(
    settings: Settings, file: Path, placement: Placement | None = None, factor: float = 1.0,
    planned_for: Topology | None = None,
) -> None:  # fmt: skip
    """Run a job's queries until ctrl-C; one that was never begun is begun as planned.

    Args:
        settings: with a broker.
        file: its topology.
        placement: of the queries of one that was never begun; None: as planned for the stated rates.
        factor: of the stated rates, for which that was planned.
        planned_for: topology for which that was planned.

    Raises:
        SettingsError: the topology is wrong, names no code or was edited meanwhile, or a topic has too few partitions.
        UnplannedError: the clusters have no room, or one of them is away.
        BrokerError, StackError, ProcessError: the broker, a cluster or a query does not start.
    """
    from pipelines.placement.running import begin_job, run_blocks

    with planned():
        folder = begin_job(settings, file, placement=placement, factor=factor, planned=planned_for)
    try:
        run_blocks(settings, folder)
    except KeyboardInterrupt:
        print(f"stopped; `tidecast job up {file.stem}` goes on from here")
