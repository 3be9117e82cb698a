"""The sections of the settings: what each holds, and its bounds; `configs/default.yaml` says what every value means."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from configs.policies import PolicyName
from tidecast.fields import job_name

JobName = Annotated[str, AfterValidator(job_name)]


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


class Retention(Section):
    """Hours that records stay on their topic; `control`, `contracts` and `results` keep the newest of every key."""

    events: float = Field(168, gt=0)
    metrics: float = Field(1560, gt=0)
    forecasts: float = Field(168, gt=0)
    decisions: float = Field(168, gt=0)
    outcomes: float = Field(720, gt=0)
    heartbeats: float = Field(1, gt=0)
    rejects: float = Field(720, gt=0)
    windows: float = Field(168, gt=0)


class Kafka(Section):
    """Where the broker is; None means the embedded one."""

    bootstrap: str | None = None
    prefix: str = Field("", pattern=r"^[A-Za-z0-9._-]{0,100}$")
    security: dict[str, str] = Field(default_factory=dict)
    replication: int = Field(1, ge=1)
    event_partitions: int = Field(8, ge=1)
    retention_h: Retention = Retention()

    def topic(self, name: str) -> str:
        """What one of Tidecast's topics is called on this broker."""
        return self.prefix + name


class Lake(Section):
    """How long the lake's tables can be read as they were."""

    versions_h: int = Field(168, ge=168)


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

    job: JobName = "ride_count"
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


class DemoJob(Section):
    """A managed job of the demonstration: its name is also its contract's."""

    name: JobName = "word_count"
    also: tuple[JobName, ...] = ()
    service_ms: float = Field(4.0, ge=0)
    trigger: str = "1 second"
    state_partitions: int = Field(2, ge=1)
    max_offsets_per_trigger: int = Field(1000, ge=1)


class Serving(Section):
    """How forecasts are served: by the streaming server, or by the fast path (store, socket, HTTP)."""

    path: Literal["stream", "fast"] = "stream"
    poll_s: float = Field(0.2, gt=0)
    alias_poll_s: float = Field(2.0, gt=0)
    store: Path = Path("fast")
    history: int = Field(20_000, ge=3_000)
    map_bytes: int = Field(1 << 32, ge=1 << 26)
    http_port: int = Field(0, ge=0, le=65535)
    token: str | None = None


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
    knobs: int = Field(16, ge=2)
    seeds: int = Field(4, ge=1)
    tolerance: float = Field(0.01, ge=0, lt=1)
    seed: int = 7


class Autoscaler(Section):
    """The autoscaler query."""

    policy: PolicyName = "forecast"
    trigger: str = "500 milliseconds"
    mode: Literal["observe", "act"] = "act"
    alias_poll_s: float = Field(2.0, gt=0)
