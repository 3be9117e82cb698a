"""Addresses of the services: the setting that names each, and whether a service that is named there answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import attrgetter
from urllib.parse import urlsplit

from configs.settings import Settings
from pipelines.stack.context import StackError, accepts

SETTINGS = {
    "broker": "kafka.bootstrap",
    "spark": "spark.master",
    "airflow": "airflow.url",
    "mlflow": "mlflow.tracking_uri",
    "mlflow_ui": "mlflow.tracking_uri",
}
"""Per part of the stack, where its address stands; a part whose address is set is used there instead of started."""

_PORTS = {"http": 80, "https": 443, "spark": 7077, "tcp": 9092}


def environment_variable(part: str) -> str:
    """Name the environment variable of a part's address, e.g. TIDECAST_KAFKA__BOOTSTRAP for the broker.

    Raises:
        KeyError: no such part.
    """
    return "TIDECAST_" + SETTINGS[part].replace(".", "__").upper()


def configured_addresses(settings: Settings) -> dict[str, str]:
    """Collect the addresses that the settings name, by part; embedded parts are left out."""
    return {part: address for part, name in SETTINGS.items() if (address := attrgetter(name)(settings))}


def with_addresses(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """Copy the settings with addresses from a stack's environment, where they name none of their own.

    Args:
        settings: as read; stay as they are.
        environment: of the stack's children, with the variables of `environment_variable`, e.g. TIDECAST_SPARK__MASTER;
            a part whose variable is missing or empty stays without an address.
    """
    changed = {}
    for part in SETTINGS.keys() - configured_addresses(settings).keys():
        section, key = SETTINGS[part].split(".")
        if value := environment.get(environment_variable(part)):
            changed[section] = getattr(settings, section).model_copy(update={key: value})
    return settings.model_copy(update=changed)


def check_reachable(settings: Settings, parts: Collection[str]) -> None:
    """Check that every service of these parts that the settings name accepts a TCP connection, embedded ones apart.

    Of several hosts separated by commas one is enough; what has no host (yarn, k8s://, sqlite) is not tried. Blocks for
    at most 5 s per host.

    Raises:
        StackError: a service accepts none, or an address is malformed, e.g. its port is no number up to 65535; the
            message names its environment variable.
    """
    for part, address in configured_addresses(settings).items():
        if part not in parts:
            continue
        named = f"{environment_variable(part)}={address}"
        try:
            scheme, _, hosts = address.rpartition("://")
            scheme = scheme or ("tcp" if part == "broker" else "")
            places = [place for host in hosts.split(",") if (place := _place(scheme, host))]
        except ValueError as error:
            raise StackError(
                f"{named}: no address ({error}). Correct it, or unset it to use the embedded one."
            ) from None
        if places and not any(accepts(*place, 5.0) for place in places):
            raise StackError(
                f"{named}: nothing accepts connections there. Start it, correct the address, or unset it to use the "
                "embedded one."
            )


def _place(scheme: str, host: str) -> tuple[str, int] | None:
    """Host and port of one host of a URL, which may have several; None for what has none (yarn, k8s://, sqlite)."""
    parts = urlsplit(f"{scheme}://{host}")
    if parts.scheme not in _PORTS or not parts.hostname:
        return None
    return parts.hostname, parts.port or _PORTS[parts.scheme]
