"""Job contracts: what a job promises its users and what the autoscaler may spend to keep the promise."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, ValidationError, model_validator

from configs.bounds import Count, JobName, NotNegative, Positive, Section, Share, explained
from configs.errors import SettingsError


class Executors(Section):
    """Bounds of the executor target; the agent refuses decisions beyond them."""

    min: Count = 1
    max: Count = 4
    cores: Count = 1

    @model_validator(mode="after")
    def _ordered(self) -> Executors:
        if self.min > self.max:
            raise ValueError(f"min={self.min} is above max={self.max}; swap them")
        return self


class Planning(Section):
    """Knobs of the policies; times are wall seconds, because executors start in wall time.

    `scaling` is the exponent by which capacity grows with slots: 1 where twice the executors do twice the work, less
    where they wait for each other (0.83 for a measured Kafka mapper). It is best taken from a fitted twin.
    `timetable_rps` is what the policy `schedule` goes by: records/s for equal parts of the day, from midnight UTC.
    """

    target_utilisation: float = Field(0.8, gt=0, le=1)
    quantile: float = Field(0.9, gt=0, lt=1)
    lead_s: NotNegative = 10.0
    hold_s: NotNegative = 6.0
    catch_up_s: Positive = 15.0
    batch_s: Positive = 2.0
    scale_down_delay_s: NotNegative = 8.0
    cooldown_s: NotNegative = 3.0
    max_step_up: Count = 1
    max_step_down: Count = 1
    forecast_age_s: Positive = 12.0
    metrics_age_s: Positive = 5.0
    overhead_s: NotNegative = 0.6
    per_record_s: Positive = 0.0055
    scaling: float = Field(1.0, gt=0, le=1)
    static_executors: Count = 3
    timetable_rps: tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...] = ()


class Contract(Section):
    """One job's contract.

    Attributes:
        job: name of the job, as given to `attach`.
        latency_target_s: event time to committed result, wall seconds.
        executors: bounds of the executor target.
        error_budget: share of seconds that may be over the target.
        planning: knobs of the planner.
    """

    job: JobName
    latency_target_s: Positive = 5.0
    executors: Executors = Executors()
    error_budget: Share = 0.01
    planning: Planning = Planning()

    @property
    def text(self) -> str:
        """All of it as JSON, the same for equal contracts."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @property
    def hash(self) -> str:
        """By which a decision names its contract: the first 16 hexadecimal digits of its text's SHA-256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]


def load_contract(job: str, folder: Path) -> Contract:
    """The contract in `<folder>/<job>.yaml`.

    Raises:
        SettingsError: no such contract, it cannot be read, or a key or value in it is wrong.
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
            "\n".join(f"{path.name}: {line}" for line in explained(error, "configs/contract.py"))
        ) from None
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"{path}: cannot be read: {error}") from None
    if contract.job != job:
        raise SettingsError(f"{path.name}: job={contract.job!r}; the file's name and the job's must be one.")
    return contract


def read_contracts(folder: Path) -> tuple[dict[str, Contract], dict[str, str]]:
    """Every contract in the folder, by job; and what is wrong with those that are none."""
    found: dict[str, Contract] = {}
    wrong: dict[str, str] = {}
    for job in contracted(folder):
        try:
            found[job] = load_contract(job, folder)
        except SettingsError as error:
            wrong[job] = str(error)
    return found, wrong


def contracted(folder: Path) -> list[str]:
    """The jobs that have a contract, also where that cannot be read: one file must not stop another's job."""
    return sorted(path.stem for path in folder.glob("*.yaml"))
