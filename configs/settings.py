"""The one settings tree: frozen, unknown keys refused, read once at an entry point and passed down as sections.

Order of precedence: environment (`TIDECAST_KAFKA__BOOTSTRAP=...`) over the file named by `TIDECAST_FILE` over
`configs/default.yaml`, which also says what every value means.
"""

from __future__ import annotations

import os
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, YamlConfigSettingsSource
from pydantic_settings import SettingsError as SettingsSourceError

from configs.bounds import describe_errors
from configs.errors import SettingsError
from configs.files import QUICK
from configs.sections import (
    AgentTraining,
    Airflow,
    Autoscaler,
    DemoJob,
    Ingest,
    Kafka,
    Lake,
    Mlflow,
    Ports,
    Replay,
    Retraining,
    Serving,
    Spark,
    Training,
)

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FILE = ROOT / "configs" / "default.yaml"


class _SettingsFiles(YamlConfigSettingsSource):
    """The files; our own is parsed once, and in C where PyYAML has that: in Python it takes 20 ms of every start.

    Not a person's, for that parser ends the process where brackets are nested too deep.
    """

    def _read_file(self, file_path: Any) -> dict[str, Any]:
        if file_path != DEFAULT_FILE:
            return super()._read_file(file_path)
        return deepcopy(_read_defaults(file_path.stat().st_mtime_ns))


@cache
def _read_defaults(changed_ns: int) -> dict[str, Any]:
    """Our own file as it was last changed then."""
    with DEFAULT_FILE.open(encoding="utf-8") as file:
        return dict(yaml.load(file, QUICK))


class Settings(BaseSettings):
    """Everything Tidecast can be told, frozen; `configs/default.yaml` has the meaning and unit of each value.

    Made by `load`, which explains what is wrong; made directly it raises pydantic's `ValidationError`.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        env_prefix="TIDECAST_",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    var: Path = Path("var")
    contracts: Path = Path("configs/contracts")
    topologies: Path = Path("configs/topologies")
    ports: Ports = Ports()
    kafka: Kafka = Kafka()
    lake: Lake = Lake()
    ingest: Ingest = Ingest()
    spark: Spark = Spark()
    mlflow: Mlflow = Mlflow()
    airflow: Airflow = Airflow()
    replay: Replay = Replay()
    job: DemoJob = DemoJob()
    serving: Serving = Serving()
    training: Training = Training()
    agent_training: AgentTraining = AgentTraining()
    retraining: Retraining = Retraining()
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
        """Return where values are looked for, first hit wins: arguments, environment, TIDECAST_FILE, `default.yaml`.

        Also within a section: a file that states one key of it leaves the others as they are.
        """
        files = [DEFAULT_FILE]
        if own := os.environ.get("TIDECAST_FILE"):
            files.append(Path(own))
        return init_settings, env_settings, _SettingsFiles(settings_cls, yaml_file=files, deep_merge=True)

    @property
    def var_dir(self) -> Path:
        """Absolute path of the folder that everything a run writes goes under."""
        return self.var if self.var.is_absolute() else ROOT / self.var

    @property
    def replayed(self) -> tuple[str, ...]:
        """Names of the jobs to which the trace is replayed, the main one first."""
        return (self.job.name, *self.job.also)

    def speed(self, job: str) -> float:
        """Return job seconds per wall second: `replay.speed` for jobs of the replay or `replay.newcomer`, else 1."""
        newcomer = self.replay.newcomer
        fast = (*self.replayed, *([newcomer.job] if newcomer else []))
        return self.replay.speed if job in fast else 1.0

    @property
    def contracts_dir(self) -> Path:
        """Absolute path of the folder of job contracts."""
        return self.contracts if self.contracts.is_absolute() else ROOT / self.contracts

    @property
    def pools_dir(self) -> Path:
        """Absolute path of the folder of pools, beside that of the contracts."""
        return self.contracts_dir.with_name("pools")

    @property
    def topologies_dir(self) -> Path:
        """Absolute path of the folder of topologies."""
        return self.topologies if self.topologies.is_absolute() else ROOT / self.topologies

    @property
    def store_dir(self) -> Path:
        """Absolute path of the folder of the fast path's store, its socket and its token."""
        return self.var_dir / self.serving.store

    @property
    def lake_address(self) -> str:
        """Where the Delta tables are: `lake.address`, else the absolute path of the folder `lake` under `var`."""
        return self.lake.address or str(self.var_dir / "lake")


_SECTIONS = set(Settings.model_fields)
_NOT_SETTINGS = {
    "TIDECAST_FILE", "TIDECAST_ORDER", "TIDECAST_ORDER_TIME", "TIDECAST_SIGNING_KEY", "TIDECAST_STACK",
}  # fmt: skip
"""Variables of other things; none may be called as a section, whose value as JSON it would be."""


def load(**overrides: Any) -> Settings:
    """Read the settings: overrides over environment (`TIDECAST_KAFKA__BOOTSTRAP`) over TIDECAST_FILE over the defaults.

    Args:
        overrides: whole or partial sections, e.g. `load(replay={"speed": 360})`.

    Raises:
        SettingsError: a wrong key or value (the message names both and what would be right); a variable `TIDECAST_...`
            of no section, or one that should hold JSON and does not; a file that is missing, cannot be read or holds no
            mapping in YAML.
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
        raise SettingsError("\n".join(describe_errors(error, "configs/default.yaml"))) from None
    except SettingsSourceError as error:  # a whole section or a list in one variable, which may hold a password
        text = getattr(error.__cause__, "doc", None)
        given = [name for name, value in os.environ.items() if name.upper().startswith("TIDECAST_") and value == text]
        raise SettingsError(
            f"{' or '.join(given) or error}: not JSON ({error.__cause__}). Write it as JSON, "
            "or one variable per key, as TIDECAST_REPLAY__SPEED."
        ) from None
    except yaml.YAMLError as error:  # whose own words show what stands there: a password that begins with `!` or `*`
        mark = getattr(error, "problem_mark", None)
        line = "it" if mark is None else f"line {mark.line + 1}"
        raise SettingsError(
            f"{_named(own)}: no settings can be read: {line} is not YAML. Quote a text that begins with a sign, as "
            "! or *, and close each quote and bracket."
        ) from None
    # The last three, in turn: a key is no text; `!!bool x`; brackets without end.
    except (OSError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as error:
        raise SettingsError(
            f"{_named(own)}: no settings can be read: {error}. A mapping in YAML is expected."
        ) from None


def _named(own: str | None) -> str:
    return f"TIDECAST_FILE={own}" if own else str(DEFAULT_FILE)
