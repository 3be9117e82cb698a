"""Job contracts: what a job promises its users and what the autoscaler may spend to keep the promise."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from configs.alerts import Alerts
from configs.backpressure import Backpressure
from configs.bounds import DAY_S, JobName, Key, Section, Share, ZoneName
from configs.configurations import StatedConfigurations
from configs.errors import SettingsError
from configs.files import read_section
from configs.planning import BATCH_SHARE, Executors, Planning
from tidecast.fields import JOB_NAME

__all__ = [
    "BATCH_SHARE", "LEAST_BUDGET", "Contract", "Executors", "Planning",
    "jobs_with_contract", "load_contract", "read_contract", "read_contracts",
]  # fmt: skip

LEAST_BUDGET = 1e-4
"""Least share of late seconds that is promised or planned for; logs of before may hold less."""
YEAR_S = 366 * DAY_S


class Contract(Section):
    """One job's contract.

    Attributes:
        job: name of the job, as given to `attach`.
        latency_target_s: from a record's arrival at the broker to the commit of its batch, wall seconds.
        executors: bounds of the executor target.
        error_budget: share of seconds that may be over the latency target, under 1; in a file at least 0.0001.
        window_days: any so many days of the job's own time must keep to that.
        timezone: IANA name, in which the times of backfills are read and told; None: the setting `replay.timezone`.
        price_per_executor_hour: in any currency, for reports and advice; None: nothing is said in money.
        planning: what the scaling policies plan with. Where it does not state them, `quantile` is 1 - √error_budget (a
            second is late if the load is above the quantile and the spare capacity is used up, too), `hold_s` 0.6 and
            `scale_down_delay_s` 0.8 of `lead_s` (who gives up an executor sooner pays for its start again),
            `catch_up_s` three latency targets, and `cooldown_s` 0.6 of one, at most 3 s. Of these the delay alone goes
            with the lead time that is learned.
        backpressure: what holds where a replay shares the job; None: all of it follows from the promise.
        configurations: of a managed job, one of which each start takes, by what they have earned; empty: none.
        alerts: who is told when something is wrong, where nobody looks at Prometheus; None: nobody.
    """

    job: JobName
    latency_target_s: float = Field(5.0, gt=0, le=YEAR_S)
    executors: Executors = Executors()
    error_budget: Share = 0.01
    window_days: float = Field(7.0, ge=0.01, le=366)
    timezone: ZoneName | None = None
    price_per_executor_hour: float | None = Field(None, gt=0)
    planning: Planning = Planning()
    backpressure: Backpressure | None = None
    configurations: StatedConfigurations = Field(default_factory=dict)
    delay_stated: ClassVar[bool] = True  # `scale_down_delay_s`; one without it says so in its `__dict__`, beside fields
    alerts: Alerts | None = Field(None, exclude=True)  # its address is a secret, and decisions do not depend on it

    @model_serializer(mode="wrap")
    def _as_before(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        said: dict[str, Any] = write(self)
        for key in ("backpressure", "configurations", "timezone"):
            if not said[key]:  # releases that know no such key read the contracts without one
                del said[key]
        return said

    @model_validator(mode="after")
    def _derive_planning(self) -> Contract:
        stated, target_s = self.planning, self.latency_target_s
        derived = {
            "quantile": 1 - math.sqrt(max(self.error_budget, LEAST_BUDGET)),
            "hold_s": max(0.6 * stated.lead_s, 1.0), "scale_down_delay_s": _delay_s(stated.lead_s),
            "catch_up_s": 3 * target_s, "cooldown_s": min(0.6 * target_s, 3.0),
        }  # fmt: skip
        left_out = {
            name: float(f"{value:.4g}") for name, value in derived.items() if name not in stated.model_fields_set
        }
        self.__dict__["planning"] = stated.model_copy(update=left_out)
        if "scale_down_delay_s" in left_out:
            self.__dict__["delay_stated"] = False
        return self

    @property
    def batch_s(self) -> float:
        """Wall seconds that batches should take."""
        stated = self.planning.batch_s
        return BATCH_SHARE * self.latency_target_s if stated is None else stated

    @property
    def admits_by_forecast(self) -> bool:
        """Whether replays are admitted beside what is forecast; else beside what comes, by the paper's rule alone."""
        return self.backpressure is None or self.backpressure.admit_by != "arrivals"

    @property
    def text(self) -> str:
        """The contract as JSON with sorted keys; equal contracts have the same text.

        A price and a growth are in it only where there are such, and the time for a batch always, so that releases that
        know nothing of these read the others.
        """
        said = self.model_dump(mode="json")
        said["planning"]["batch_s"] = self.batch_s
        for section, key in ((said, "price_per_executor_hour"), (said["planning"], "start_growth")):
            if not section[key]:
                del section[key]
        return json.dumps(said, sort_keys=True, separators=(",", ":"))

    def to_json_values(self) -> dict[str, Any]:
        """Return what `model_validate` makes the same contract of, but for alerts and tables; `text` has each value.

        A delay that it does not state is left out, so that it goes with the learned lead time there, too.
        """
        said = self.model_dump(mode="json")
        if not self.delay_stated:
            del said["planning"]["scale_down_delay_s"]
        return said

    @cached_property  # each step of a job names it, and making it takes a tenth of what the step takes
    def hash(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `text`, by which decisions name their contract."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def __hash__(self) -> int:
        return hash(self.hash)  # its fields have none where it holds tables

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Contract:
        """Return a copy, as pydantic does; one with other values has a hash of its own, other planning is stated."""
        copy = super().model_copy(update=update, deep=deep)
        copy.__dict__.pop("hash", None)
        if update and "planning" in update:
            copy.__dict__.pop("delay_stated", None)
        return copy

    def delay_for(self, lead_s: float) -> float:
        """Return how long an executor is kept that nobody needs, in wall seconds, with a lead time of `lead_s`."""
        return self.planning.scale_down_delay_s if self.delay_stated else float(f"{_delay_s(lead_s):.4g}")

    def planned_for(
        self, lead_s: float, start_growth: float | None = None, down_delay_s: float | None = None
    ) -> Contract:
        """Return the contract with another lead time (wall seconds) in its planning.

        Args:
            lead_s: that lead time.
            start_growth: its growth with the executors that start at once; None: the contract's.
            down_delay_s: how long an executor is kept that nobody needs; None: the contract's.
        """
        plan = self.planning
        growth = plan.start_growth if start_growth is None else start_growth
        return _planned_for(self, lead_s, growth, plan.scale_down_delay_s if down_delay_s is None else down_delay_s)


def _delay_s(lead_s: float) -> float:
    return max(0.8 * lead_s, 1.0)


@lru_cache(maxsize=1 << 12)  # each step of a job asks for one, and raises alone change which
def _planned_for(contract: Contract, lead_s: float, start_growth: float, down_delay_s: float) -> Contract:
    known = {"lead_s": lead_s, "start_growth": start_growth, "scale_down_delay_s": down_delay_s}
    return contract.model_copy(update={"planning": contract.planning.model_copy(update=known)})


def load_contract(job: str, folder: Path) -> Contract:
    """Read and check the contract `<folder>/<job>.yaml`; keys that are left out have their defaults.

    A contract states a job's latency target (wall seconds), its bounds of executors and how it is planned.

    Raises:
        SettingsError: there is no such file, it cannot be read or is not YAML, a key or value in it is wrong, or its
            `job` is not `job`, or no job can keep what it promises; the message names the file, the key, its value and
            the remedy.
    """
    path = folder / f"{job}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
        remedy = f"Known contracts: {known}. Copy one and edit it." if known else "docs/attach.md shows a first one."
        raise SettingsError(f"job {job!r} has no contract at {path}. {remedy}")
    return read_contract(path, job, "the file's name and the job's must be one. Rename one of them.")


def read_contract(path: Path, job: str, unlike: str) -> Contract:
    """Read and check a job's contract from a file of whatever name; keys that are left out have their defaults.

    Args:
        path: of the file.
        job: whose contract it has to be.
        unlike: what to say where it is another job's.

    Raises:
        SettingsError: the file cannot be read or is not YAML, a key or value in it is wrong, it is another job's, or
            no job can keep what it promises; the message names the file, the key, its value and the remedy.
    """
    contract, read = read_section(path, Contract, "docs/contract.md", "contract", f"job: {job}")
    if contract.job != job:
        raise SettingsError(f"{path.name}, line {read.line_of(('job',))}: job={contract.job!r}; {unlike}")
    unkept = [(read.line_of(key), ".".join(map(str, key)), what) for key, what in _list_unkept(contract)]
    if unkept:
        raise SettingsError("\n".join(f"{path.name}, line {line}: {key}={what}" for line, key, what in unkept))
    return contract


def _list_unkept(contract: Contract) -> Iterator[tuple[Key, str]]:
    """What no job can keep: keys, and their values with the reason and the remedy."""
    target_s, overhead_s = contract.latency_target_s, contract.planning.overhead_s
    if contract.error_budget < LEAST_BUDGET:
        yield ("error_budget",), f"{contract.error_budget:g}: no job keeps that, the least is {LEAST_BUDGET:g}. Say so."
    for key, least_s in (("batch_s", contract.batch_s), ("overhead_s", overhead_s)):
        if target_s < least_s:
            what = f"a batch takes {least_s:g} s (planning.{key}), and none of its records is committed before it ends"
            remedy = f"Promise {least_s:g} s or more, or state how short its batches really are."
            yield ("latency_target_s",), f"{target_s:g}: {what}. {remedy}"
            return
    for number, path in enumerate(contract.backpressure.paths if contract.backpressure else ()):
        if path.ops not in ((), (contract.job,)):
            what = "a running job is one operator, called as the job. Leave ops out."
            yield ("backpressure", "paths", number, "ops"), f"{', '.join(path.ops)}: {what}"
        if path.max_ms is not None and path.max_ms < 1000 * overhead_s:
            what = f"a batch takes {overhead_s:g} s (planning.overhead_s) even without work"
            remedy = f"State {1000 * overhead_s:g} ms or more, or how short its batches really are."
            yield ("backpressure", "paths", number, "max_ms"), f"{path.max_ms:g}: {what}. {remedy}"


def read_contracts(folder: Path) -> tuple[dict[str, Contract], dict[str, str]]:
    """Read every contract (`<job>.yaml`) in a folder; a wrong one stops no other, a missing folder has none.

    Returns:
        The contracts that can be read, by job, and the error messages of the others, by job.
    """
    contracts: dict[str, Contract] = {}
    errors: dict[str, str] = {}
    for job in sorted(path.stem for path in folder.glob("*.yaml")):
        try:
            contracts[job] = load_contract(job, folder)
        except SettingsError as error:
            errors[job] = str(error)
    return contracts, errors


def jobs_with_contract(folder: Path) -> list[str]:
    """List the jobs with a contract file in the folder, sorted, be it wrong; one whose name no job can have is none."""
    return sorted(filter(JOB_NAME.pattern.fullmatch, (path.stem for path in folder.glob("*.yaml"))))
