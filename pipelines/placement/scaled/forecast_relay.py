"""Forecasts of what reaches a job, sent on as those of its later queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from configs.settings import Settings
from configs.topology import Topology
from models.placement.elastic.ahead import downstream, factors_and_delays
from models.placement.elastic.reaching import most_reaching, slot_rps
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Placement
from pipelines.kafka.broker import Follower
from pipelines.kafka.publisher import Publisher
from pipelines.kafka.signing import Signer
from pipelines.placement.scaled.contracts import most_cores
from tidecast.messages import Decision, Forecast, Heartbeat, MessageError, decode

DOWNSTREAM = "downstream"
"""Kind of a forecast that was made of another query's."""
OWN_S, STEPS = 120.0, 2.5
"""Wall seconds, and steps of it, for which a forecast of a model of its own keeps those of others from a query."""
_KINDS: dict[str, type[Forecast | Heartbeat | Decision]] = {
    "forecasts": Forecast, "heartbeats": Heartbeat, "decisions": Decision,
}  # fmt: skip
"""Topics that are followed."""
_PATIENCE = {"max_block_ms": 1_000, "request_timeout_ms": 5_000, "delivery_timeout_ms": 10_000}
"""Of the producer: whoever runs the queries does not wait for a broker that is away."""


class LaterQuery(NamedTuple):
    """A query that reads no source: records that reach it for one of the first query's, seconds later; its number."""

    job: str
    factor: float
    delay_s: float
    number: int


class ForecastRelay:
    """Follows the forecasts of the first query that reads sources, and sends them on to those that read none.

    What reaches a later query is that of the first one, by the rates that the topology states, and later by what the
    queries before it take by the model. It is no more than these can send on with the most executors that they may
    have, by what was decided of them: none are asked for records that cannot come. A query for which a model of its own
    forecasts gets none.
    """

    def __init__(self, settings: Settings, topology: Topology, wanted: Callable[[], Placement]) -> None:
        """Nothing is followed yet.

        Args:
            settings: with the broker, and the folder of the contracts.
            topology: of the job.
            wanted: where its queries are wanted.

        Raises:
            BrokerError: the broker does not answer, or has none of Tidecast's topics.
            SettingsError: the file of signing keys is wrong.
        """
        self._settings, self._topology, self._wanted = settings, topology, wanted
        self._signer = Signer.of(settings.kafka)
        self._signer.check_file()
        with ExitStack() as opened:
            self._follower = opened.enter_context(closing(Follower(settings.kafka, [*_KINDS], start="latest")))
            self._publisher = opened.enter_context(closing(Publisher(settings.kafka, **_PATIENCE)))
            self._opened = opened.pop_all()
        self._own_until: dict[str, float] = {}
        self._slot_rps: dict[str, float] = {}

    def step(self) -> None:
        """Send on what has come since the last call.

        Raises:
            BrokerError: the broker takes nothing.
        """
        placement = self._wanted()
        first, later = later_queries(self._topology, placement)
        for record in self._follower.poll(0.0):
            with suppress(MessageError):  # of another program, or another release
                said = decode(_KINDS[record.topic], record.value)
                if isinstance(said, Decision):
                    self._signer.check_record(record, said.job)
                    self._note_decision(said)
                else:
                    self._take(said, first, later, placement)

    def close(self) -> None:
        """Close the connections.

        Raises:
            BrokerError: something that was sent was not accepted.
        """
        self._opened.close()

    def _note_decision(self, said: Decision) -> None:
        """Keep what a slot of a query can do, if its executors follow what is decided, and that tells."""
        able = slot_rps(said.inputs) if said.mode == "act" else None
        if able is None:
            self._slot_rps.pop(said.job, None)
        else:
            self._slot_rps[said.job] = able

    def _most_rps(self, placement: Placement) -> list[float]:
        """The records/s that can reach each query at most."""
        able_rps = dict[int, float]()
        for number, block in enumerate(applications_of(self._topology, placement)):
            if (own_rps := self._slot_rps.get(block.name)) is not None:
                cores = most_cores(self._settings, self._topology, placement, number)
                able_rps |= {} if cores is None else {number: cores * own_rps}
        return most_reaching(self._topology, placement, able_rps)

    def _take(self, said: Forecast | Heartbeat, first: str, later: list[LaterQuery], placement: Placement) -> None:
        now_s = time.monotonic()
        if isinstance(said, Forecast) and said.kind != DOWNSTREAM:
            self._own_until[said.job] = now_s + max(OWN_S, STEPS * said.step_s / said.time_scale)
        if said.job != first or (isinstance(said, Heartbeat) and said.by != "serving"):
            return
        most_rps = self._most_rps(placement) if isinstance(said, Forecast) else []
        for query in later:
            if now_s < self._own_until.get(query.job, now_s):
                continue
            if isinstance(said, Forecast):
                self._publisher.send("forecasts", query.job, forecast_on(said, query, most_rps[query.number]))
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
        LaterQuery(one.name, ahead[at][0] / reached, ahead[at][1], at)
        for at, one in enumerate(blocks)
        if not {*one.reads} & sources and reached > 0
    ]
    return blocks[first].name, later


def forecast_on(said: Forecast, query: LaterQuery, most_rps: float = math.inf) -> Forecast:
    """Return a forecast of what reaches the first query as that of a later one.

    Args:
        said: the forecast.
        query: the later one.
        most_rps: records/s that can reach it; what reaches it now can.
    """
    now, delay = said.last_rps, query.delay_s * said.time_scale
    last = None if now is None else query.factor * now
    coming = downstream(np.array(said.quantiles), now, query.factor, delay, said.step_s)
    quantiles = np.minimum(coming, max(most_rps, last or 0.0))
    return replace(said, job=query.job, quantiles=quantiles.tolist(), kind=DOWNSTREAM, last_rps=last)
