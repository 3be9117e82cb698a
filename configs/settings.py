"""The one settings tree: frozen, unknown keys refused, read once at an entry point and passed down as sections.

Order of precedence: environment (`TIDECAST_KAFKA__BOOTSTRAP=...`) over the file named by `TIDECAST_FILE` over
`configs/default.yaml`, which also says what every value means.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, YamlConfigSettingsSource

from configs.errors import SettingsError
from configs.policies import PolicyName

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FILE = ROOT / "configs" / "default.yaml"


class Section(BaseModel):
    """A frozen part of the tree; a misspelt key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Ports(Section):
    """Ports of the embedded services on the loopback; 0 means any free one."""

    broker: int = Field(0, ge=0, le=65535)
    controller: int = Field(0, ge=0, le=65535)
    spark_master: int = Field(0, ge=0, le=65535)
    spark_master_ui: int = Field(0, ge=0, le=65535)
    spark_worker: int = Field(0, ge=0, le=65535)
    spark_worker_ui: int = Field(0, ge=0, le=65535)
    job_ui: int = Field(0, ge=0, le=65535)
    airflow: int = Field(0, ge=0, le=65535)
    mlflow: int = Field(0, ge=0, le=65535)


class Kafka(Section):
    """Where the broker is; None means the embedded one."""

    bootstrap: str | None = None
    security: dict[str, str] = Field(default_factory=dict)
    replication: int = Field(1, ge=1)
    event_partitions: int = Field(8, ge=1)


class Spark(Section):
    """Where managed jobs run and how large their executors are."""

    master: str | None = None
    worker_cores: int = Field(5, ge=1)
    worker_memory: str = "5g"
    executor_cores: int = Field(1, ge=1)
    executor_memory: str = "512m"
    driver_memory: str = "700m"


class Mlflow(Section):
    """Where the tracking store and registry are; None means the embedded SQLite store."""

    tracking_uri: str | None = None
    experiment: str = "tidecast"


class Airflow(Section):
    """Where Airflow's API is; None means the embedded one."""

    url: str | None = None
    username: str = "admin"
    password: str | None = None


class Newcomer(Section):
    """A job that begins while the main one runs: it has a contract and the first days of a shipped series."""

    job: str = "ride_count"
    trace: str = "taxi 15min"
    days: float = Field(5, gt=0)


class Replay(Section):
    """The live load: which trace, which part of it, how fast, and how untidy."""

    trace: str = "nyc_taxi"
    time_column: str = "timestamp"
    value_column: str = "value"
    timezone: str = "UTC"
    live_start: str = "2014-10-22T04:00:00"
    live_hours: float = Field(30, gt=0)
    history_days: float = Field(28, ge=0)
    speed: float = Field(720, gt=0)
    peak_rps: float = Field(330, gt=0)
    keys: int = Field(50, ge=1)
    zipf: float = Field(1.1, gt=0)
    burst_share: float = Field(0.02, ge=0, lt=1)
    late_share: float = Field(0.02, ge=0, lt=1)
    late_s: float = Field(3.0, ge=0)
    seed: int = 7
    newcomer: Newcomer | None = Newcomer()


class Job(Section):
    """A managed job of the demonstration: its name is also its contract's."""

    name: str = "word_count"
    also: tuple[str, ...] = ()
    service_ms: float = Field(4.0, ge=0)
    trigger: str = "1 second"
    state_partitions: int = Field(2, ge=1)
    max_offsets_per_trigger: int = Field(1000, ge=1)


class Serving(Section):
    """How forecasts are served."""

    poll_s: float = Field(0.2, gt=0)
    publish_s: float = Field(2.0, gt=0)
    alias_poll_s: float = Field(2.0, gt=0)


class Training(Section):
    """How forecasters are trained and judged; times are trace time."""

    step_s: float = Field(1800, gt=0)
    horizon: int = Field(12, ge=1)
    levels: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    models: tuple[str, ...] = Field(("seasonal_naive", "ridge", "blend", "gru"), min_length=1)
    context: int = Field(48, ge=2)
    hidden: int = Field(32, ge=1)
    epochs: int = Field(40, ge=1)
    learning_rate: float = Field(5e-3, gt=0)
    lanes: int = Field(16, ge=1)
    holdout_steps: int = Field(48, ge=1)
    minimum_steps: int = Field(96, ge=1)
    improvement: float = Field(0.0, ge=0, lt=1)
    approval_s: float = Field(0.0, ge=0)
    seed: int = 7

    @model_validator(mode="after")
    def _levels_rise(self) -> Training:
        if not self.levels or list(self.levels) != sorted(set(self.levels)) or 0.5 not in self.levels:
            raise ValueError(f"levels={self.levels}: they must rise, lie in (0, 1) and hold 0.5")
        return self


class AgentTraining(Section):
    """How the agents of learned policies are trained and judged."""

    transitions: int = Field(300_000, ge=1)
    fine_transitions: int = Field(100_000, ge=1)
    knobs: int = Field(8, ge=2)
    seeds: int = Field(2, ge=1)
    tolerance: float = Field(0.0, ge=0, lt=1)
    seed: int = 7


class Autoscaler(Section):
    """The autoscaler query."""

    policy: PolicyName = "forecast"
    trigger: str = "500 milliseconds"
    mode: Literal["observe", "act"] = "act"
    alias_poll_s: float = Field(2.0, gt=0)


class Settings(BaseSettings):
    """Everything Tidecast can be told; see `configs/default.yaml` for the meaning of each value."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="TIDECAST_",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    var: Path = Path("var")
    contracts: Path = Path("configs/contracts")
    ports: Ports = Ports()
    kafka: Kafka = Kafka()
    spark: Spark = Spark()
    mlflow: Mlflow = Mlflow()
    airflow: Airflow = Airflow()
    replay: Replay = Replay()
    job: Job = Job()
    serving: Serving = Serving()
    training: Training = Training()
    agent_training: AgentTraining = AgentTraining()
    autoscaler: Autoscaler = Autoscaler()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments over environment over files."""
        files = [DEFAULT_FILE]
        if own := os.environ.get("TIDECAST_FILE"):
            files.append(Path(own))
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls, yaml_file=files)

    @property
    def var_dir(self) -> Path:
        """The folder everything a run writes goes under, absolute."""
        return self.var if self.var.is_absolute() else ROOT / self.var

    @property
    def contracts_dir(self) -> Path:
        """The folder of the job contracts, absolute."""
        return self.contracts if self.contracts.is_absolute() else ROOT / self.contracts

    @property
    def lake_dir(self) -> Path:
        """Root of the Delta tables."""
        return self.var_dir / "lake"


_SECTIONS = set(Settings.model_fields)
_NOT_SETTINGS = {"TIDECAST_FILE", "TIDECAST_STACK"}


def load(**overrides: Any) -> Settings:
    """Read the settings; overrides are whole or partial sections, e.g. `load(replay={"speed": 360})`.

    Raises:
        SettingsError: names the key, the value seen and what would be right.
    """
    own = os.environ.get("TIDECAST_FILE")
    if own and not Path(own).is_file():
        raise SettingsError(f"TIDECAST_FILE={own}: no such file. Name an existing YAML file or unset it.")
    for name in os.environ:
        section = name.removeprefix("TIDECAST_").split("__")[0].lower()
        if name.startswith("TIDECAST_") and name not in _NOT_SETTINGS and section not in _SECTIONS:
            raise SettingsError(f"{name}: no such setting. Sections are {', '.join(sorted(_SECTIONS))}.")
    try:
        return Settings(**overrides)
    except ValidationError as error:
        lines = [_explain(".".join(map(str, e["loc"])), e) for e in error.errors()]
        raise SettingsError("\n".join(lines)) from None
    except yaml.YAMLError as error:
        raise SettingsError(f"settings file is not YAML: {error}") from None


def _explain(where: str, error: Any) -> str:
    if error["type"] == "extra_forbidden":
        remedy = "Look for a misspelling; configs/default.yaml lists every key."
        return f"{where}={error['input']!r}: no such setting. {remedy}"
    return f"{where}={error['input']!r}: {error['msg']}."
