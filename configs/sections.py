"""The sections of the settings: what each holds, and its bounds; `configs/default.yaml` says what every value means."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from configs.bounds import Count, JobName, Level, NotNegative, Port, Positive, Section, Share, Whole
from configs.policies import PolicyName

_HDFS = re.compile(r"hdfs://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/(?!\.{1,2}(/|$))[A-Za-z0-9._=-]+)+/?")


class Ports(Section):
    """Ports of the embedded services, on the loopback only, and of the pages of a job's driver; 0 is any free port."""

    broker: Port = 0
    controller: Port = 0
    spark_master: Port = 0
    spark_master_ui: Port = 0
    spark_worker: Port = 0
    spark_worker_ui: Port = 0
    job_ui: Port = 0
    airflow: Port = 0
    mlflow: Port = 0


class Retention(Section):
    """Hours that records stay on their topic; `control`, `contracts` and `results` keep the newest of every key."""

    events: Positive = 168
    metrics: Positive = 1560
    forecasts: Positive = 168
    decisions: Positive = 168
    outcomes: Positive = 720
    heartbeats: Positive = 1
    rejects: Positive = 720
    windows: Positive = 168
    replays: Positive = 720
    replies: Positive = 168
    wants: Positive = 1
    pools: Positive = 24


class Kafka(Section):
    """Which broker is used (`host:port`; None: the embedded one), how clients log in, and how topics are created."""

    bootstrap: str | None = None
    prefix: str = Field("", pattern=r"^[A-Za-z0-9._-]{0,100}$")
    security: dict[str, str] = Field(default_factory=dict)
    signing_keys: Path | None = None
    replication: Count = 1
    event_partitions: Count = 12
    retention_h: Retention = Retention()

    @field_validator("signing_keys")
    @classmethod
    def _absolute(cls, file: Path | None) -> Path | None:
        if file is not None and not file.is_absolute():
            raise ValueError("an absolute path is expected, as secrets lie outside of this folder")
        return file

    def without_signing_keys(self) -> dict[str, Any]:
        """Return the section as keyword arguments for a worker elsewhere, which has no such file and signs nothing."""
        return self.model_dump(exclude={"signing_keys"})

    def topic(self, name: str) -> str:
        """Name of one of Tidecast's topics on this broker: with the prefix of the settings."""
        return self.prefix + name


class Lake(Section):
    """Where the lake's tables are (None: under `var`), and for how many hours a replaced version can be read."""

    address: str | None = None
    versions_h: int = Field(168, ge=168)

    @field_validator("address")
    @classmethod
    def _kept_there(cls, address: str | None) -> str | None:
        """Only what is written into addresses without an escape: paths of Hadoop, URIs and SQL differ in all else."""
        if address is None or Path(address).is_absolute() or _HDFS.fullmatch(address):
            return address
        raise ValueError(
            f"{address!r}: no lake can be there. Name a folder of HDFS as hdfs://HOST:PORT/FOLDER (without the port: a "
            "name service of HADOOP_CONF_DIR; of letters, digits and ._=- alone), an absolute path of a mounted file "
            "system, or null for `lake` under `var`."
        )


class Ingest(Section):
    """Where an ingest reads, checks and writes its records."""

    master: str = ""


class Spark(Section):
    """Where managed jobs run (None: the embedded master), and the sizes of worker, executors and driver."""

    master: str | None = None
    worker_cores: Count = 7
    worker_memory: str = "5g"
    executor_memory: str = "512m"
    driver_memory: str = "700m"


class Mlflow(Section):
    """Where tracking store and registry are (None: SQLite under `var`), and how many versions are kept (None: all)."""

    tracking_uri: str | None = None
    experiment: str = "tidecast"
    kept_versions: int | None = Field(None, ge=10)


class Airflow(Section):
    """Where Airflow's API is (None: the embedded one), and the login if it needs one."""

    url: str | None = None
    username: str = "admin"
    password: str | None = None


class Newcomer(Section):
    """A job with a short history: the first `days` of a shipped series, for a training after a run's live load."""

    job: JobName = "ride_count"
    trace: str = "taxi 15min"
    days: Positive = 5


class Surge(Section):
    """A stretch of the live load that no history announces: `factor` times as high for `minutes` of the trace."""

    after_h: NotNegative
    minutes: Positive
    factor: Positive


class Replay(Section):
    """The live load: which part of which trace, how fast, and how skewed, bursty and late its records are."""

    trace: str = "nyc_taxi"
    time_column: str = "timestamp"
    value_column: str = "value"
    timezone: str = "UTC"
    live_start: str = "2014-10-22T04:00:00"
    live_hours: Positive = 24
    history_days: NotNegative = 28
    speed: Positive = 200
    peak_rps: Positive | None = None
    keys: Count = 50
    zipf: Positive = 1.1
    burst_share: Share = 0.02
    surge: Surge | None = None
    late_share: Share = 0.02
    late_s: NotNegative = 3.0
    withheld_share: Share = 0.0
    backfill_after_s: NotNegative = 0.0
    seed: int = 7
    newcomer: Newcomer | None = Newcomer()


class DemoJob(Section):
    """The managed job of a run, whose contract has the same name, and further jobs beside it."""

    name: JobName = "word_count"
    also: tuple[JobName, ...] = ()
    service_ms: NotNegative = 40.0
    trigger: str = "2 seconds"
    state_partitions: Count = 2
    max_offsets_per_trigger: Count = 500


class Serving(Section):
    """How forecasts are served: by the stream server, the fast path (store, socket, HTTP), or a Spark query."""

    path: Literal["stream", "fast", "spark"] = "stream"
    poll_s: Positive = 0.2
    alias_poll_s: Positive = 2.0
    store: Path = Path("fast")
    history: int = Field(20_000, ge=3_000)
    map_bytes: int = Field(1 << 37, ge=1 << 26)
    http_port: Port = 0
    token: str | None = None
    cores: Count = 1
    master: str = ""


class Training(Section):
    """How forecasters are trained and compared; `step_s` is trace seconds, `approval_s` wall seconds."""

    step_s: Positive = 1800
    horizon: Count = 12
    levels: tuple[Level, ...] = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
    models: tuple[str, ...] = Field(("seasonal_naive", "ridge", "blend", "networked_blend"), min_length=1)
    context: int = Field(48, ge=2)
    hidden: Count = 32
    epochs: Count = 40
    learning_rate: Positive = 5e-3
    lanes: Count = 16
    holdout_steps: int = Field(96, ge=24)
    minimum_steps: Count = 96
    improvement: Share = 0.0
    approval_s: NotNegative = 0.0
    seed: int = 7

    @model_validator(mode="after")
    def _levels_rise(self) -> Training:
        if not self.levels or list(self.levels) != sorted(set(self.levels)) or 0.5 not in self.levels:
            raise ValueError(f"levels={self.levels}: they must rise, lie in (0, 1) and hold 0.5")
        return self


class AgentTraining(Section):
    """How DQN policies ("agents" in the registry) are trained, and compared with other policies in the job's twin.

    With fewer transitions than the minimum nothing is learned: three decisions of all runs precede the first update.
    """

    transitions: int = Field(300_000, ge=800)
    fine_transitions: int = Field(100_000, ge=300)
    knobs: int = Field(16, ge=2)
    seeds: int = Field(4, ge=3)
    gain: Share = 0.03
    seed: Whole = 7


class Retraining(Section):
    """How many jobs a DAG run trains at the same time, and how long that may take, in wall seconds.

    A run begins its last training within `begin_s` of its start; no training takes longer than `longest_s`.
    """

    at_once: Count = 1
    begin_s: Positive = 14_400
    longest_s: Positive = 14_400


class Autoscaler(Section):
    """Which policy decides and how often, and whether its decisions are carried out (`act`) or only published."""

    policy: PolicyName = "mpc"
    trigger: str = "1 second"
    mode: Literal["observe", "act"] = "act"
    alias_poll_s: Positive = 2.0
    cores: Count = 1
    master: str = ""
