"""Services of one's own that the settings name: they are used where they are instead of being started."""

from __future__ import annotations

import socket
from collections.abc import Collection
from urllib.parse import urlsplit

from configs.settings import Settings
from pipelines.stack.place import StackError

NAMES = {
    "broker": "TIDECAST_KAFKA__BOOTSTRAP",
    "spark": "TIDECAST_SPARK__MASTER",
    "airflow": "TIDECAST_AIRFLOW__URL",
    "mlflow": "TIDECAST_MLFLOW__TRACKING_URI",
}


def addresses(settings: Settings) -> dict[str, str]:
    """The parts whose address is in the settings, and that address."""
    named = {
        "broker": settings.kafka.bootstrap,
        "spark": settings.spark.master,
        "airflow": settings.airflow.url,
        "mlflow": settings.mlflow.tracking_uri,
        "mlflow_ui": settings.mlflow.tracking_uri,
    }
    return {part: address for part, address in named.items() if address}


def check(settings: Settings, parts: Collection[str]) -> None:
    """Raise `StackError` for a named service where nothing accepts connections."""
    for part, address in addresses(settings).items():
        if part not in parts or part not in NAMES:
            continue
        places = [place for one in address.split(",") if (place := _place(one))]
        if places and not any(_accepts(*place) for place in places):
            raise StackError(
                f"{NAMES[part]}={address}: nothing accepts connections there. "
                f"Start it, correct the address, or unset it to use the embedded one."
            )


def _place(address: str) -> tuple[str, int] | None:
    """Host and port of `host:port` or a URL; None for what has none (yarn, k8s://, sqlite)."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme not in ("tcp", "spark", "http", "https") or not parts.hostname:
        return None
    port = parts.port or {"http": 80, "https": 443, "spark": 7077, "tcp": 9092}[parts.scheme]
    return parts.hostname, port


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=5):
            return True
    except OSError:
        return False
