"""The endpoint that Prometheus scrapes: the newest samples, in its text format and OpenMetrics'."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric

from configs.errors import CorrectableError
from models.alerts.metric import METRICS, Sample
from models.alerts.metric import Metric as Declared

_FAMILIES: dict[str, tuple[type[Any], str]] = {
    "gauge": (GaugeMetricFamily, ""), "counter": (CounterMetricFamily, "_total"), "info": (InfoMetricFamily, "_info"),
}  # fmt: skip


class EndpointError(CorrectableError):
    """The endpoint cannot be opened; the message names address and remedy."""


class Exposition:
    """The samples of the newest look, as a collector of prometheus-client."""

    def __init__(self) -> None:
        self.samples: Mapping[str, Sequence[Sample]] = {}

    def describe(self) -> list[Metric]:
        """Return nothing, so that no family's name is checked against others; Prometheus' client calls it."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Yield every metric that there is, also one without samples; Prometheus' client calls it for a scrape."""
        samples = self.samples
        return [_family(metric, samples.get(metric.name, ())) for metric in METRICS]


def _family(declared: Declared, samples: Sequence[Sample]) -> Any:
    kind, ending = _FAMILIES[declared.kind]
    of_info = declared.kind == "info"
    labels = declared.labels[:1] if of_info else declared.labels
    family: Any = kind(declared.name.removesuffix(ending), declared.text, labels=labels)
    for sample in samples:
        texts = [_clean(sample.labels[name]) for name in labels]
        rest = {name: _clean(sample.labels[name]) for name in declared.labels[1:]} if of_info else sample.value
        family.add_metric(texts, rest)
    return family


def _clean(text: str) -> str:
    """Text that UTF-8 can hold: the name of a file may not."""
    return text.encode("utf-8", "replace").decode()


def open_endpoint(exposition: Exposition, host: str, port: int) -> tuple[int, Callable[[], None]]:
    """Answer scrapes at `http://<host>:<port>/metrics` in threads; returns the port, and what closes it.

    Args:
        exposition: what is exposed.
        host: address to listen on.
        port: 0 for any free one.

    Raises:
        EndpointError: the address cannot be listened on.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(exposition)
    try:
        server, thread = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        raise EndpointError(f"cannot listen on {host}:{port}: {error}. Give another --host or --port.") from None
    assert isinstance(server, WSGIServer)

    def close() -> None:
        with suppress(OSError):
            server.shutdown()
            server.server_close()
        thread.join(5)

    return server.server_port, close
