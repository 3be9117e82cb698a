"""Forecasts of what reaches a job, sent on as those of its later queries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from configs.settings import Settings
from configs.topology import Topology
from models.placement.elastic.ahead import downstream, reaching
from models.placement.elastic.reaching import most_reaching, slot_rps
from models.placement.graph import Floats
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
"""Wall seconds, and steps of it, for which a forecast of a model of its own holds, and keeps those of others from a
query."""
TOGETHER_S, RATIO_S = 30.0, 300.0
"""Wall seconds within which the rates of queries are of one time, and over which their ratio is smoothed."""
_KINDS: dict[str, type[Forecast | Heartbeat | Decision]] = {
    "forecasts": Forecast, "heartbeats": Heartbeat, "decisions": Decision,
}  # fmt: skip
"""Topics that are followed."""
_PATIENCE = {"max_block_ms": 1_000, "request_timeout_ms": 5_000, "delivery_timeout_ms": 10_000}
"""Of the producer: whoever runs the queries does not wait for a broker that is away."""


class LaterQuery(NamedTuple):
    """A query that reads no source.

    Attributes:
        job: its name.
        rps: records/s that reach it, as stated.
        firsts: by name of the queries that read sources alone: records/s that reach each of these as stated, and those
            that it makes reach this query.
        delay_s: until they do.
        number: of the query.
    """

    job: str
    rps: float
    firsts: Mapping[str, tuple[float, float]]
    delay_s: float
    number: int

    def factors(self, known: Iterable[str]) -> dict[str, float]:
        """Return the records that reach it for one of each first query whose load is known.

        What comes from the others, or from a source that a query on the way reads, keeps its stated share.
        """
        made = {name: self.firsts[name] for name in known}
        more = self.rps / sum(rps for _, rps in made.values())
        return {name: more * rps / offered for name, (offered, rps) in made.items()}


class ForecastRelay:
    """Follows the forecasts of the queries that read sources alone, and sends them on to those that read none.

    What reaches a later query is the sum of theirs, by the rates that the topology states and, once the autoscaler has
    seen these queries, by theirs; and later by what the queries before it take by the model. It is no more than these
    can send on with the most executors that they may have, by what was decided of them: none are asked for records that
    cannot come. A query for which a model of its own forecasts gets none.
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
        self._forecasts: dict[str, Forecast] = {}
        self._seen: dict[str, tuple[float, float]] = {}
        self._ratios: dict[str, tuple[float, float]] = {}

    def step(self) -> None:
        """Send on what has come since the last call.

        Raises:
            BrokerError: the broker takes nothing.
        """
        placement = self._wanted()
        later = later_queries(self._topology, placement)
        for record in self._follower.poll(0.0):
            with suppress(MessageError):  # of another program, or another release
                said = decode(_KINDS[record.topic], record.value)
                if isinstance(said, Decision):
                    self._signer.check_record(record, said.job)
                    self._note_decision(said)
                    self._note_rate(said, later)
                else:
                    self._take(said, later, placement)

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

    def _note_rate(self, said: Decision, later: list[LaterQuery]) -> None:
        """Follow how many times as many records reach the later queries as is stated for what reaches the first ones.

        Only rates of one time tell: a decision that stays as it is is not written again. One without metrics has none.
        """
        now_s, rps = said.wall_time, said.inputs.get("arrival_rps")
        if isinstance(rps, bool) or not isinstance(rps, int | float) or not 0 <= rps < math.inf:
            self._seen.pop(said.job, None)
            return
        self._seen[said.job] = now_s, rps
        for query in later:
            names = [query.job, *query.firsts]
            seen = [self._seen.get(name, (-math.inf, 0.0)) for name in names]
            if said.job not in names or any(abs(now_s - at_s) > TOGETHER_S for at_s, _ in seen):
                continue
            factors = query.factors(query.firsts)
            expected = sum(factors[name] * rps for name, (_, rps) in zip(query.firsts, seen[1:], strict=True))
            if expected > 0:
                at_s, ratio = self._ratios.get(query.job, (now_s - TOGETHER_S, 1.0))
                share = 1 - math.exp(-min(max(now_s - at_s, 0.0), TOGETHER_S) / RATIO_S)
                self._ratios[query.job] = now_s, ratio + share * (seen[0][1] / expected - ratio)

    def _take(self, said: Forecast | Heartbeat, later: list[LaterQuery], placement: Placement) -> None:
        now_s = time.monotonic()
        if isinstance(said, Forecast) and said.kind != DOWNSTREAM:
            self._own_until[said.job] = now_s + max(OWN_S, STEPS * said.step_s / said.time_scale)
            self._forecasts[said.job] = said
        if isinstance(said, Heartbeat) and said.by != "serving":
            return
        told = [query for query in later if said.job in query.firsts and now_s >= self._own_until.get(query.job, now_s)]
        most_rps = self._most_rps(placement) if told and isinstance(said, Forecast) else []
        for query in told:
            held = {name: self._forecasts[name] for name in query.firsts if now_s < self._own_until.get(name, now_s)}
            if said.job != next(iter(held or query.firsts)):  # the first one's come with those of the others
                continue
            if isinstance(said, Forecast):
                _, ratio = self._ratios.get(query.job, (0.0, 1.0))
                most = most_rps[query.number] * max(ratio, 1.0)
                self._publisher.send("forecasts", query.job, forecast_on(held, query, most, ratio))
            else:
                self._publisher.send("heartbeats", query.job, replace(said, job=query.job))


def later_queries(topology: Topology, placement: Placement) -> list[LaterQuery]:
    """Return the queries that read no source, and that something reaches.

    Args:
        topology: of the job.
        placement: of its operators.
    """
    blocks, ahead = applications_of(topology, placement), reaching(topology, placement)
    return [
        LaterQuery(
            one.name, ahead[at].rps,
            {blocks[first].name: (ahead[first].rps, rps) for first, rps in ahead[at].of.items()}, ahead[at].delay_s, at,
        )
        for at, one in enumerate(blocks)
        if not {*one.reads} & topology.sources.keys() and ahead[at].of
    ]  # fmt: skip


def forecast_on(
    held: Mapping[str, Forecast], query: LaterQuery, most_rps: float = math.inf, ratio: float = 1.0
) -> Forecast:  # fmt: skip
    """Return forecasts of what reaches the first queries as that of a later one: the sum of what that makes.

    One with other steps or levels than the first, or of another time, is left out.

    Args:
        held: the forecasts by the query's name, of one at least.
        query: the later one.
        most_rps: records/s that can reach it; what reaches it now can.
        ratio: of the records that reach it to those that are stated.
    """
    said = next(iter(held.values()))
    rows = {name: ahead for name, one in held.items() if (ahead := _at(one, said)) is not None}
    factors = {name: ratio * factor for name, factor in query.factors(rows).items()}
    now = [held[name].last_rps for name in rows]
    last = (
        None if None in now else sum(factor * (rps or 0.0) for factor, rps in zip(factors.values(), now, strict=True))
    )
    whole = np.sum([factors[name] * ahead for name, ahead in rows.items()], axis=0)
    coming = downstream(whole, last, 1.0, query.delay_s * said.time_scale, said.step_s)
    quantiles = np.minimum(coming, max(most_rps, last or 0.0))
    return replace(said, job=query.job, quantiles=quantiles.tolist(), kind=DOWNSTREAM, last_rps=last)


def _at(one: Forecast, said: Forecast) -> Floats | None:
    """The (steps, levels) of a forecast from the time of another one on, which may be a step younger."""
    ahead, late = np.array(one.quantiles), round((said.time - one.time) / said.step_s)
    if (one.step_s, one.levels, len(ahead)) != (said.step_s, said.levels, len(said.quantiles)) or late not in (0, 1):
        return None
    return ahead if not late else np.concatenate([ahead[1:], ahead[-1:]])
