"""A namespace of their own for the demonstration and the benchmarks, where what a person works with is out of reach."""

from __future__ import annotations

from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.stack.addresses import own, variable


def apart(settings: Settings, name: str) -> Settings:
    """The settings with all state in `var/NAME`: broker, lake, models, Airflow and the fast path's store.

    What is emptied there was made by the same command before. A broker, registry or Airflow of a person's own is no
    place for it; a Spark master is, because nothing stays on it.

    Raises:
        SettingsError: one of them is configured.
    """
    for part, address in own(settings).items():
        if part != "spark":
            raise SettingsError(
                f"{variable(part)}={address}: `{name}` fills and empties topics, tables and models, so it brings its "
                f"own services and touches none of yours. Unset {variable(part)} for this command."
            )
    return settings.model_copy(
        update={"var": settings.var_dir / name, "kafka": settings.kafka.model_copy(update={"prefix": ""})}
    )
