"""Who may see and change what in the console: what it asks of whoever knows the logins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ModeChange:
    """A change of a job's mode, as the audit trail keeps it.

    Attributes:
        job: its name.
        before: mode that it had been given; None where nobody had given one.
        after: mode that it is given.
        by: login of who does it.
        failed: why it did not come to that; "" where it did, or is about to.
    """

    job: str
    before: str | None
    after: str
    by: str
    failed: str = ""

    def facts(self) -> dict[str, Any]:
        """Return it as JSON values, without what is empty."""
        return {name: value for name, value in asdict(self).items() if value != ""}


@dataclass(frozen=True)
class Access:
    """The logins that the console goes by.

    Attributes:
        viewer: a FastAPI dependency that returns the login of a caller who may look, and else raises an HTTPException
            of status 401 (no valid login) or 403 (not allowed).
        editor: the same for a caller who may change a job's mode.
        record: writes a change to the audit trail; what it raises keeps the change from being made.
        login_url: page to log in at, relative to the console's own address.
        origins: addresses (`https://host:port`) by which browsers reach the pages, besides the one that a request
            names itself.
        drifts: returns the drifts that the ingest has reported, newest first, as Airflow's API tells asset events.
        advice: returns what the DAG plan_placement has told of each topology last: `at` (epoch seconds), `told`, and
            `asks`, whether a person was asked.
    """

    viewer: Callable[..., Any]
    editor: Callable[..., Any]
    record: Callable[[ModeChange], None]
    login_url: str = ""
    origins: tuple[str, ...] = ()
    drifts: Callable[[], Sequence[Mapping[str, Any]]] = list
    advice: Callable[[], Mapping[str, Any]] = dict
