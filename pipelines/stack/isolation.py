"""Settings for the demonstration and the benchmarks: services and folders of their own, apart from a person's."""

from __future__ import annotations

import os

from configs.errors import SettingsError
from configs.settings import Settings
from pipelines.stack.addresses import configured_addresses, environment_variable


def isolated_settings(settings: Settings, name: str) -> Settings:
    """Copy the settings with all state below `var/NAME`, no topic prefix, and every service but Spark embedded.

    Raises:
        SettingsError: the address of a broker, Airflow, MLflow or the lake is set: what is there must not be emptied.
            That of a Spark master may be, and stays in use.
    """
    own = {environment_variable(part): it for part, it in configured_addresses(settings).items() if part != "spark"}
    if settings.lake.address:
        own["TIDECAST_LAKE__ADDRESS"] = settings.lake.address
    for variable, address in own.items():
        by_file = variable not in os.environ and "TIDECAST_FILE" in os.environ
        raise SettingsError(
            f"{variable}={address}: `{name}` fills and empties topics, tables and models, so it brings its own "
            f"services and touches none of yours. Unset {'TIDECAST_FILE' if by_file else variable} for this command."
        )
    return settings.model_copy(
        update={"var": settings.var_dir / name, "kafka": settings.kafka.model_copy(update={"prefix": ""})}
    )
