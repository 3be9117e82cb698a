"""What a follower knows as samples of the metrics: what is exposed, and what alerts are computed from."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from configs.bounds import DAY_S
from configs.contract import Contract
from models.alerts.followed import STRANGE, Followed
from models.alerts.knowledge import Knowledge
from models.alerts.metric import Sample
from models.policy.core.budget import Account, Promise
from models.policy.live.burn import fast_rate
from models.pool.state import PoolState

Value = tuple[str, float | None, dict[str, str]]
"""Of a job: a metric's name after `tidecast_job_`, its value, None where there is none, and its labels beside `job`."""
_LONGEST = 100
"""Characters of a label's text; names of models come from messages."""
_LEVELS = {"0.5": "latency_p50_s", "0.95": "latency_p95_s", "1": "latency_max_s"}


def samples_of(known: Knowledge, now: float, report: Callable[[str, Exception], None]) -> dict[str, list[Sample]]:
    """Return the samples of all metrics by name; a job that has none to give is left out and reported.

    Args:
        known: what is known.
        now: epoch seconds.
        report: called with a job and what was wrong with it.
    """
    found: dict[str, list[Sample]] = defaultdict(list)
    for job in sorted({*known.jobs, *known.contracts, *known.wrong}):
        try:
            of_job = list(_of_job(job, known))
        except STRANGE as error:
            report(job, error)
            continue
        for sample in of_job:
            found[sample.metric].append(sample)
    for sample in [*_of_all(known, now), *_of_pools(known.pools)]:
        found[sample.metric].append(sample)
    return {name: [one for one in samples if math.isfinite(one.value)] for name, samples in found.items()}


def _of_job(job: str, known: Knowledge) -> Iterator[Sample]:
    seen, contract = known.jobs.get(job, Followed()), known.contracts.get(job)
    if "metrics" in known.unread:
        seen = replace(seen, sample=None, batch=None, account=Account())
    values = [
        ("contract_valid", job not in known.wrong, {}),
        *_measured(seen), *([] if "heartbeats" in known.unread else _heard(seen)), *_decided(seen), *_forecast(seen),
        *([] if contract is None else _promised(seen, contract)),
    ]  # fmt: skip
    if drift := known.drifts.get(job):
        values += [("drift_timestamp_seconds", drift.reported, {}), ("drift_ratio", drift.factor, {})]
    for name, value, labels in values:
        if value is not None:
            texts = {label: text[:_LONGEST] for label, text in labels.items()}
            yield Sample(f"tidecast_job_{name}", {"job": job, **texts}, float(value))


def _measured(seen: Followed) -> Iterator[Value]:
    if sample := seen.sample:
        yield "arrival_records_per_second", sample.arrival_rps, {}
        yield "lag_records", sample.lag_records, {}
        yield "executors", sample.executors, {}
        yield "pending_executors", sample.pending_executors, {}
        yield "metric_timestamp_seconds", sample.wall_time, {}
        if sample.mode is not None:
            yield "mode", 1, {"mode": sample.mode}
    if batch := seen.batch:
        for level, name in _LEVELS.items():
            yield "latency_seconds", getattr(batch, name), {"level": level}


def _heard(seen: Followed) -> Iterator[Value]:
    """When the autoscaler, and serving where it is used, gave their last signs, of a job that is measured."""
    if seen.sample is None:
        return
    served = seen.forecast is not None or "serving" in seen.heard
    for by in ("autoscaler", "serving") if served else ("autoscaler",):
        yield "heartbeat_timestamp_seconds", max(seen.heard.get(by, 0.0), seen.measured_since), {"by": by}


def _decided(seen: Followed) -> Iterator[Value]:
    yield "target_executors", seen.target, {}
    yield "unfollowed_timestamp_seconds", seen.unfollowed_at, {}
    if decision := seen.decision:
        yield "decision_timestamp_seconds", decision.wall_time, {}
        yield "shortage", "shortage" in decision.codes, {}
        yield "response_changed", "response_changed" in decision.codes, {}
    yield "decisions_total", seen.decisions, {}
    for status, count in seen.outcomes.items():
        yield "outcomes_total", count, {"status": status}


def _forecast(seen: Followed) -> Iterator[Value]:
    if forecast := seen.forecast:
        middle = min(range(len(forecast.levels)), key=lambda at: abs(forecast.levels[at] - 0.5))
        yield "forecast_records_per_second", forecast.quantiles[0][middle], {}
        yield "forecast_timestamp_seconds", forecast.wall_time, {}
        served = {"model": forecast.model, "version": forecast.version, "kind": forecast.kind}
        yield "champion_info", 1, served


def _promised(seen: Followed, contract: Contract) -> Iterator[Value]:
    yield "latency_target_seconds", contract.latency_target_s, {}
    yield "error_budget_ratio", contract.error_budget, {}
    yield "least_executors", contract.executors.min, {}
    yield "most_executors", contract.executors.max, {}
    yield "late_seconds_total", seen.late_s, {}
    yield "production_seconds_total", seen.production_s, {}
    if contract.error_budget > 0 and seen.sample is not None:
        promise = Promise.of(contract)
        late_s, window_s = seen.window_late_s(promise), promise.window_days * DAY_S / seen.sample.time_scale
        yield "window_late_seconds", late_s, {}
        yield "error_budget_left_ratio", 1 - late_s / (promise.budget * window_s), {}
        yield "burn_rate_limit", fast_rate(promise.budget), {}
    burn = None if seen.rests else seen.account.burn(contract.error_budget)
    for window, rate in zip(("long", "short"), burn or (), strict=False):
        yield "burn_rate", rate, {"window": window}


def _of_pools(pools: Mapping[str, PoolState]) -> Iterator[Sample]:
    for name, state in sorted(pools.items()):
        shares = state.jobs
        granted = sum(((one.granted or 0) + one.granted_replay) * (one.cores or 0) for one in shares)
        short = 0 if state.enough_cores is None else max(math.ceil(state.enough_cores - state.usable), 0)
        values = {
            "cores": state.cores, "usable_cores": state.usable, "granted_cores": granted, "short_cores": short,
            "shortage_timestamp_seconds": state.short_from, "division_timestamp_seconds": state.wall_time,
        }  # fmt: skip
        for metric, value in values.items():
            if value is not None:
                yield Sample(f"tidecast_pool_{metric}", {"pool": name}, float(value))
        for share in shares:
            for metric, many in (("wanted_executors", share.wanted), ("granted_executors", share.granted)):
                if many is not None:
                    yield Sample(f"tidecast_job_{metric}", {"job": share.job, "pool": name}, float(many))


def _of_all(known: Knowledge, now: float) -> Iterator[Sample]:
    def of(name: str, values: Mapping[str, float | None], label: str) -> Sequence[Sample]:
        return [Sample(f"tidecast_{name}", {label: text}, float(v)) for text, v in values.items() if v is not None]

    yield Sample("tidecast_follower_timestamp_seconds", {}, now)
    if known.broker_up is not None:
        yield Sample("tidecast_broker_up", {}, float(known.broker_up))
    yield from of("refused_records_total", dict(known.refused), "by")
    yield from of("webhook_failures_total", dict(known.failed), "host")
    ingests = known.ingests.items()
    yield from of("ingest_timestamp_seconds", {topic: one.began for topic, one in ingests}, "topic")
    yield from of("ingest_stored_records", {topic: one.stored for topic, one in ingests}, "topic")
    yield from of("ingest_quarantined_records", {topic: one.quarantined for topic, one in ingests}, "topic")
    yield from of("ingest_waiting_records", {topic: one.waiting for topic, one in ingests}, "topic")
    if lake := known.lake:
        yield from of("lake_size_bytes", dict(lake.size_bytes), "table")
        yield from of("lake_files", dict(lake.files), "table")
        yield Sample("tidecast_lake_day_growth_bytes", {}, float(lake.growth_bytes))
        yield Sample("tidecast_lake_disk_free_bytes", {}, float(lake.free_bytes))
