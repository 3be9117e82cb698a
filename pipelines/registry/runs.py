"""One training run in MLflow: parameters, figures, tags, plots."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class TrackedRun:
    """One training run in MLflow; each method has written when it returns, or raises MlflowException."""

    def __init__(self, client: Any, run_id: str) -> None:
        self._client = client
        self.id = run_id

    def parameters(self, values: Mapping[str, Any]) -> None:
        """Log parameters as text, in one request; MLflow refuses another value for one that is set."""
        from mlflow.entities import Param

        self._client.log_batch(self.id, params=[Param(key, str(value)) for key, value in values.items()])

    def metrics(self, values: Mapping[str, float]) -> None:
        """Log metrics, in one request, at the present time."""
        self.curve([(0, values)])

    def curve(self, points: Iterable[tuple[int, Mapping[str, float]]]) -> None:
        """Log metrics by step, in a request for each 1,000 numbers, at the present time."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        made = [Metric(key, float(value), now, step) for step, values in points for key, value in values.items()]
        self._client.log_batch(self.id, metrics=made)

    def tags(self, values: Mapping[str, str]) -> None:
        """Set tags in one request; those of the same name are replaced."""
        from mlflow.entities import RunTag

        self._client.log_batch(self.id, tags=[RunTag(key, value) for key, value in values.items()])

    def figure(self, figure: Figure, path: str) -> None:
        """Store a plot as an artifact under a path, whose ending says the format."""
        self._client.log_figure(self.id, figure, path)

    def text(self, text: str, path: str) -> None:
        """Store a text as an artifact under a path."""
        self._client.log_text(self.id, text, path)
