"""Forecasts of what reaches a job, sent on as those of its later queries."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from configs.sections import Kafka
from configs.topology import Topology
from models.placement.elastic.ahead import downstream, factors_and_delays
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Placement
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from tidecast.messages import Forecast, Heartbeat, MessageError, decode

DOWNSTREAM = "downstream"
"""Kind of a forecast that was made of another query's."""
OWN_S, STEPS = 120.0, 2.5
"""Wall seconds, and steps of it, for which a forecast of a model of its own keeps those of others from a query."""
_PATIENCE = {"max_block_ms": 1_000, "request_timeout_ms": 5_000, "delivery_timeout_ms": 10_000}
"""Of the producer: whoever runs the queries does not wait for a broker that is away."""


class LaterQuery(NamedTuple):
    """A query that reads no source: records that reach it for one of the first query's, seconds later."""

    job: str
    factor: float
    delay_s: float


class ForecastRelay:
    """Follows the forecasts of the first query that reads sources, and sends them on to those that read none.

    What reaches a later query is that of the first one, by the rates that the topology states, and later by what the
    queries before it take by the model. A query for which a model of its own forecasts gets none.
    """

    def __init__(self, kafka: Kafka, topology: Topology, wanted: Callable[[], Placement]) -> None:
        """Nothing is followed yet.

        Args:
            kafka: the broker.
            topology: of the job.
            wanted: where its queries are wanted.

        Raises:
            BrokerError: the broker does not answer, or has none of Tidecast's topics.
        """
        self._topology, self._wanted = topology, wanted
        self._follower = Follower(kafka, ["forecasts", "heartbeats"], start="latest")
        self._publisher = Publisher(kafka, **_PATIENCE)
        self._own_until: dict[str, float] = {}

    def step(self) -> None:
        """Send on what has come since the last call.

        Raises:
            BrokerError: the broker takes nothing.
        """
        first, later = later_queries(self._topology, self._wanted())
        for record in self._follower.poll(0.0):
            with suppress(MessageError):  # of another program, or another release
                kind: type[Forecast | Heartbeat] = Forecast if record.topic == "forecasts" else Heartbeat
                self._take(decode(kind, record.value), first, later)

    def close(self) -> None:
        """Close the connections.

        Raises:
            BrokerError: something that was sent was not accepted.
        """
        self._follower.close()
        self._publisher.close()

    def _take(self, said: Forecast | Heartbeat, first: str, later: list[LaterQuery]) -> None:
        now_s = time.monotonic()
        if isinstance(said, Forecast) and said.kind != DOWNSTREAM:
            self._own_until[said.job] = now_s + max(OWN_S, STEPS * said.step_s / said.time_scale)
        if said.job != first or (isinstance(said, Heartbeat) and said.by != "serving"):
            return
        for query in later:
            if now_s < self._own_until.get(query.job, now_s):
                continue
            if isinstance(said, Forecast):
                self._publisher.send("forecasts", query.job, forecast_on(said, query))
            else:
                self._publisher.send("heartbeats", query.job, replace(said, job=query.job))


def later_queries(topology: Topology, placement: Placement) -> tuple[str, list[LaterQuery]]:
    """Return the name of the first query that reads sources alone, and the queries that read none.

    Args:
        topology: of the job.
        placement: of its operators.
    """
    blocks, ahead, sources = applications_of(topology, placement), factors_and_delays(topology, placement), {
        *topology.sources
    }  # fmt: skip
    first = next(at for at, one in enumerate(blocks) if {*one.reads} <= sources)
    reached, _ = ahead[first]
    later = [
        LaterQuery(one.name, ahead[at][0] / reached, ahead[at][1])
        for at, one in enumerate(blocks)
        if not {*one.reads} & sources and reached > 0
    ]
    return blocks[first].name, later


def forecast_on(said: Forecast, query: LaterQuery) -> Forecast:
    """Return a forecast of what reaches the first query as that of a later one."""
    now, delay = said.last_rps, query.delay_s * said.time_scale
    quantiles = downstream(np.array(said.quantiles), now, query.factor, delay, said.step_s)
    last = None if now is None else query.factor * now
    return replace(said, job=query.job, quantiles=quantiles.tolist(), kind=DOWNSTREAM, last_rps=last)
