"""Job contracts: what a job promises its users and what the autoscaler may spend to keep the promise."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, ValidationError, model_validator

from configs.bounds import Count, JobName, NotNegative, Positive, Section, Share, describe_errors
from configs.errors import SettingsError

LEAST_BUDGET = 1e-4
"""Least share of late seconds that is promised or planned for; logs of before may hold less."""


class Executors(Section):
    """Bounds of the executor target, which the agent refuses to leave.

    Attributes:
        min, max: executors, both included.
        cores: per executor.
    """

    min: Count = 1
    max: Count = 4
    cores: Count = 1

    @model_validator(mode="after")
    def _ordered(self) -> Executors:
        if self.min > self.max:
            raise ValueError(f"min={self.min} is above max={self.max}; swap them")
        return self


BATCH_SHARE = 0.4
"""Share of the latency target that a batch should take where a contract does not say: two of them fit into it."""
UTILISATION = 0.8
"""Busy share of the capacity that is aimed for where a contract states none, until the promise asks for another."""


class Planning(Section):
    """What the scaling policies plan with; all times are wall seconds, because executors start in wall time.

    What a contract leaves out of `quantile`, `hold_s`, `catch_up_s`, `scale_down_delay_s` and `cooldown_s` follows from
    its promise and its lead time (`Contract`); the defaults here are those of a contract that states nothing.

    Attributes:
        target_utilisation: busy share of the capacity to aim for, in (0, 1]; None: by the promise, from 0.8 on.
        quantile: level of the forecast that is provisioned for, in (0, 1).
        lead_s: from the request of an executor to its first useful work; what is believed until it has been learned.
        start_growth: exponent by which `lead_s` grows with the executors that start at once: 0 where each comes to a
            computer of its own, 1 where they share one; what is believed until raises have told.
        hold_s: how long beyond the lead a scale-up should stay right.
        catch_up_s: in which a backlog is to be worked off.
        batch_s: that batches should take; None: 0.4 of the latency target, which two of them then fit into.
        scale_down_delay_s: the target never falls below the highest need of this time.
        cooldown_s: least time between two changes.
        max_step_up: most executors that start at once; None: as many as are needed and are soonest of use.
        max_step_down: most executors that one change takes.
        forecast_age_s: an older forecast is not used.
        metrics_age_s: with older metrics no decision is made.
        overhead_s: first guess of a batch's fixed time; learned from the batches.
        per_record_s: first guess of the service time of a record on one slot; learned likewise.
        scaling: exponent by which capacity grows with slots (executor cores): 1 where twice the executors do twice the
            work, less where they wait for each other (0.83 for a measured Kafka mapper); best taken from a fitted twin.
        static_executors: the number that the policy `static` keeps.
        timetable_rps: load that the policy `schedule` goes by, records/s, for equal parts of the day from midnight UTC.
    """

    target_utilisation: float | None = Field(None, gt=0, le=1)
    quantile: float = Field(0.9, gt=0, lt=1)
    lead_s: NotNegative = 10.0
    start_growth: float = Field(0.0, ge=0, le=2)
    hold_s: NotNegative = 6.0
    catch_up_s: Positive = 15.0
    batch_s: Positive | None = None
    scale_down_delay_s: NotNegative = 8.0
    cooldown_s: NotNegative = 3.0
    max_step_up: Count | None = None
    max_step_down: Count = 1
    forecast_age_s: Positive = 12.0
    metrics_age_s: Positive = 5.0
    overhead_s: NotNegative = 0.6
    per_record_s: Positive = 0.0055
    scaling: float = Field(1.0, gt=0, le=1)
    static_executors: Count = 3
    timetable_rps: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = ()

    @property
    def utilisation(self) -> float:
        """Busy share of the capacity to aim for, `UTILISATION` where none is stated."""
        return UTILISATION if self.target_utilisation is None else self.target_utilisation

    @property
    def step_up(self) -> float:
        """Most executors that start at once, infinite where none is stated."""
        return math.inf if self.max_step_up is None else self.max_step_up

    @property
    def in_turns(self) -> bool:
        """Whether executors may start in turns, because they slow each other down or few may start at once."""
        return self.start_growth > 0 or self.max_step_up is not None


class Contract(Section):
    """One job's contract.

    Attributes:
        job: name of the job, as given to `attach`.
        latency_target_s: from event time to committed result, wall seconds.
        executors: bounds of the executor target.
        error_budget: share of seconds that may be over the latency target, under 1; in a file at least 0.0001.
        window_days: any so many days of the job's own time must keep to that.
        price_per_executor_hour: in any currency, for reports and advice; None: nothing is said in money.
        planning: what the scaling policies plan with. Where it does not state them, `quantile` is 1 - √error_budget (a
            second is late if the load is above the quantile and the spare capacity is used up, too), `hold_s` 0.6 and
            `scale_down_delay_s` 0.8 of `lead_s` (who gives up an executor sooner pays for its start again),
            `catch_up_s` three latency targets, and `cooldown_s` 0.6 of one, at most 3 s.
    """

    job: JobName
    latency_target_s: Positive = 5.0
    executors: Executors = Executors()
    error_budget: Share = 0.01
    window_days: float = Field(7.0, ge=0.01, le=366)
    price_per_executor_hour: float | None = Field(None, gt=0, allow_inf_nan=False)
    planning: Planning = Planning()

    @model_validator(mode="after")
    def _derive_planning(self) -> Contract:
        stated, target_s = self.planning, self.latency_target_s
        derived = {
            "quantile": 1 - math.sqrt(max(self.error_budget, LEAST_BUDGET)),
            "hold_s": max(0.6 * stated.lead_s, 1.0), "scale_down_delay_s": max(0.8 * stated.lead_s, 1.0),
            "catch_up_s": 3 * target_s, "cooldown_s": min(0.6 * target_s, 3.0),
        }  # fmt: skip
        left_out = {
            name: float(f"{value:.4g}") for name, value in derived.items() if name not in stated.model_fields_set
        }
        self.__dict__["planning"] = stated.model_copy(update=left_out)
        return self

    @property
    def batch_s(self) -> float:
        """Wall seconds that batches should take."""
        stated = self.planning.batch_s
        return BATCH_SHARE * self.latency_target_s if stated is None else stated

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

    @property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `text`, by which decisions name their contract."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    def planned_for(self, lead_s: float, start_growth: float | None = None) -> Contract:
        """Return the contract with another lead time (wall seconds), and its growth unless None, in its planning."""
        growth = self.planning.start_growth if start_growth is None else start_growth
        known = {"lead_s": lead_s, "start_growth": growth}
        return self.model_copy(update={"planning": self.planning.model_copy(update=known)})


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
        known = ", ".join(sorted(p.stem for p in folder.glob("*.yaml"))) or "none"
        raise SettingsError(f"job {job!r} has no contract at {path}. Known contracts: {known}. Copy one and edit it.")
    try:
        data = yaml.safe_load(path.read_text())
        if not isinstance(data, dict):
            raise SettingsError(f"{path}: {data!r} is not a mapping of keys to values.")
        contract = Contract.model_validate(data)
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: not YAML: {error}") from None
    except ValidationError as error:
        raise SettingsError(
            "\n".join(f"{path.name}: {line}" for line in describe_errors(error, "configs/contract.py"))
        ) from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from None
    if contract.job != job:
        raise SettingsError(f"{path.name}: job={contract.job!r}; the file's name and the job's must be one.")
    if contract.error_budget < LEAST_BUDGET:
        what = f"no job keeps that, the least is {LEAST_BUDGET:g}"
        raise SettingsError(f"{path.name}: error_budget={contract.error_budget:g}: {what}.")
    for key, least_s in (("batch_s", contract.batch_s), ("overhead_s", contract.planning.overhead_s)):
        if contract.latency_target_s < least_s:
            what = f"a batch takes {least_s:g} s (planning.{key}), and none of its records is committed before it ends"
            remedy = f"Promise {least_s:g} s or more, or state how short its batches really are."
            raise SettingsError(f"{path.name}: latency_target_s={contract.latency_target_s:g}: {what}. {remedy}")
    return contract


def read_contracts(folder: Path) -> tuple[dict[str, Contract], dict[str, str]]:
    """Read every contract (`<job>.yaml`) in a folder; a wrong one stops no other, a missing folder has none.

    Returns:
        The contracts that can be read, by job, and the error messages of the others, by job.
    """
    contracts: dict[str, Contract] = {}
    errors: dict[str, str] = {}
    for job in jobs_with_contract(folder):
        try:
            contracts[job] = load_contract(job, folder)
        except SettingsError as error:
            errors[job] = str(error)
    return contracts, errors


def jobs_with_contract(folder: Path) -> list[str]:
    """List the jobs that have a contract file in the folder, sorted, also where it cannot be read."""
    return sorted(path.stem for path in folder.glob("*.yaml"))
