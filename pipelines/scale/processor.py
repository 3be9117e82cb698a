"""The keyed step of the autoscaler query: one job's records in; decisions, signs of life and rejects out."""

from __future__ import annotations

from typing import Any

from configs.contract import Contract
from models.policy.copies import copy_with
from models.policy.core.budget import Promise
from models.policy.live import held_forecast
from models.policy.live import memory as memories
from models.policy.live.applications import two_report, with_application, with_turn
from models.policy.live.evaluation import evaluate, most_of_use, with_clock_set_back
from models.policy.live.granted import with_grant
from models.policy.live.learned_lead import lead_quantiles, plan_contract
from models.policy.live.memory import Memory
from models.policy.live.unseen import keep_unseen, running_unseen
from models.policy.replays.control import decide_rate
from models.policy.replays.kept import with_progress
from models.policy.replays.total import ask_in_all, seconds_since
from models.pool.live import want_of
from pipelines.scale.as_of import StoreForecasts
from pipelines.scale.learned import NOTHING, Instant, Learned
from pipelines.scale.pool.grants import JobGrant, kept_want, pool_want, room_for_replays, take_grant
from pipelines.scale.received import read_record
from pipelines.scale.written import Sent, messages_after, reject_of, rejects_after, rejects_of_old, with_decision
from pipelines.serve.step.samples import fields_by_name
from tidecast.messages import Decision, Forecast, Heartbeat, MessageError, Outcome, PoolWant, Reject
from tidecast.orders import ReplayProgress

UNKNOWN_S = 600.0  # seconds between two rejects of a job without a contract, and until its memory is dropped


class Scaler:
    """One job's part of the autoscaler, without Spark: call `step` with the memory and new records.

    A job without a contract (`contract=None`) is only rejected.
    """

    def __init__(
        self, job: str, contract: Contract | None, policy: str, mode: str, learned: Learned = NOTHING,
        store: StoreForecasts | None = None, granted: JobGrant | None = None,
    ) -> None:  # fmt: skip
        self.job, self.policy, self.mode, self.learned, self.store = job, policy, mode, learned, store
        self.granted = granted
        # A key may be anything, and what is no job's name has no contract that would be valid.
        self.unknown, self.contract = contract is None, contract or Contract.model_construct(job=job)
        self._used: dict[str, Any] = {}
        self._want: PoolWant | None = None

    def step(
        self, memory: Memory | None, rows: list[dict[str, Any]], now: float, batch_s: float
    ) -> tuple[Memory | None, Sent]:
        """Process one micro-batch of a job's records: update its memory, decide on its executors, list what to send.

        Decides if an interval of metrics is among the records, or to hold if the newest is older than the contract's
        `planning.metrics_age_s`. A decision that repeats the standing one is not sent; a heartbeat is, every BEAT_S
        (7 s). A job without a contract gets one reject in UNKNOWN_S (600 s); metrics that are refused, or too old,
        get one a kind in 60 s.

        Args:
            memory: what is known of the job; None before its first record.
            rows: records as dicts of topic (without prefix), partition, offset and value (bytes).
            now: wall time, epoch seconds.
            batch_s: wall time, epoch seconds, at which the micro-batch was planned; the same if it is tried again.

        Returns:
            The new memory, None to forget the job; and (topic, key, message) of rejects, decision, heartbeat and want.

        Raises:
            KeyError: a row of a topic that `update_memory` does not take, or one without a column.
        """
        if self.unknown:
            return self._left(memory, rows, now)
        self._want = None  # of a try that failed
        memory = memories.with_contract(memory or memories.fresh(self.contract), self.contract)
        before = with_clock_set_back(memory, now)
        memory, has_interval, refused = self.update_memory(before, rows, max(now, before.beat_at or now))
        if has_interval:
            refused += rejects_of_old(self.contract, before, memory, rows, batch_s, now)
        memory, rejected = rejects_after(self.job, memory, refused, now)
        if two_report(self.job, memory, now):
            decision, self._want = None, self.granted and kept_want(self.contract, self.granted.pool, memory, now)
        elif has_interval:
            memory, decision = self.decide(self.read_store(memory, batch_s), now)
        else:
            decision = self.hold_without_metrics(memory, now)
        memory, said = messages_after(self.job, self.contract.hash, memory, decision, now)
        wanted = [] if self._want is None else [("wants", self.job, self._want)]
        return memory, [*rejected, *said, *wanted]

    def update_memory(
        self, memory: Memory, rows: list[dict[str, Any]], now: float
    ) -> tuple[Memory, bool, list[Reject]]:
        """Return the memory with new records in it, taken by rising `wall_time`; invalid ones become rejects.

        Args:
            memory: what is known of the job.
            rows: dicts of topic (metrics, forecasts, heartbeats, outcomes, replays; decisions, for who makes none),
                partition, offset, value (bytes).
            now: latest wall time known, epoch seconds (a clock may be set back); rejected is what is 300 s ahead of it.

        Returns:
            The memory; whether an interval with executors was among the records; and the rejects, also of forecasts
            that begin over 60 wall seconds after the job's own time, and of metrics while two applications send them.

        Raises:
            KeyError: a row of another topic, or one that lacks a column.
        """
        messages, rejects, has_interval = [], [], False
        for row in rows:
            try:
                messages.append((read_record(row, self.job, now), row))
            except MessageError as error:
                rejects.append(reject_of(row, error, now))
        for message, row in sorted(messages, key=lambda pair: pair[0].wall_time):
            fields = fields_by_name(message)  # nothing in them is changed: to copy that, too, takes longer
            memory = with_turn(memory, fields.get("application"), now)
            if row["topic"] == "metrics" and (why := two_report(self.job, memory, now)):
                rejects.append(reject_of(row, why, now))
            elif isinstance(message, Forecast):
                if held_forecast.begins_too_late(memory, fields):
                    reason = f"time={message.time}: the job has come to {memory.metric_time}, nobody forecasts beyond"
                    rejects.append(reject_of(row, reason, now))
                memory = held_forecast.with_forecast(memory, fields)
            elif isinstance(message, Heartbeat):
                memory = held_forecast.with_heartbeat(memory, fields)
            elif isinstance(message, Outcome):
                memory = memories.with_outcome(memory, fields, self.contract)
            elif isinstance(message, Decision):
                memory = with_decision(memory, message)
            elif isinstance(message, ReplayProgress):
                memory = copy_with(memory, replay=with_progress(memory.replay, fields))
            elif message.kind == "batch":
                memory = memories.with_batch(memory, fields, self.contract)
            elif message.executors is not None:  # back-dated history says nothing about now
                memory, has_interval = with_application(memory, memories.with_interval(memory, fields), fields), True
        return memory, has_interval, rejects

    def read_store(self, memory: Memory, batch_s: float) -> Memory:
        """Return the memory with the forecast that the store (fast path's LMDB files) held at `batch_s` (epoch s).

        Unchanged without a store, and if it cannot be read. Without a forecast if the store has none that is usable.
        """
        if self.store is None:
            return memory
        reading = self.store.read(self.job, batch_s)
        self._used = reading.used
        if reading.forecast is not None:
            return held_forecast.with_forecast(memory, reading.forecast)
        # A store that answers "none" is believed; one that cannot be asked leaves what is held to grow old.
        return copy_with(memory, forecast={}) if "as_of" in reading.used else memory

    def decide(self, memory: Memory, now: float) -> tuple[Memory, Decision | None]:
        """Ask the policy once how many executors the job needs; `now` is wall time, epoch seconds.

        Returns:
            The memory; and the decision, None before the job has shown its executors or if its newest metrics are too
            old. Its id, `<job>-<ms of their wall time>`, is the same when a micro-batch is tried again.

        Raises:
            KeyError: the held forecast lacks a field.
        """
        if not self._acts(memory):  # who scales nothing is not charged
            memory = copy_with(memory, account=memory.account.mark_read())
        lead = lead_quantiles(memory.lead, self.contract, memory.batches.busy or 0.0)
        contract = plan_contract(memory.lead, self.contract, lead)
        clock = Instant(now, memory.job_s(now), memory.time_scale)
        decider = self.learned.decider(self.policy, self.contract, clock, contract)
        before, version = memory, memory.forecast.get("version")
        memory, seen, made = evaluate(before, now, contract, *decider, self.learned.calibrator(self.contract, version))
        if seen is None or made is None:
            return memory, None
        inputs = {
            **seen.inputs(), "contract_hash": self.contract.hash, "lead": lead, "needed_forecast": made.needed_forecast,
            "metric_wall_time": memory.metric_at, "batch_wall_time": memory.account.batch_at,
            "capacity_rps": made.current_capacity_rps, "needed_observed": made.needed_observed,
            "forecast_version": None if made.needed_forecast is None else version,
            "promise": memory.account.standing(Promise.of(self.contract), memory.time_scale),
            **({"forecast_read": self._used} if self.store is not None else {}),
        }  # fmt: skip
        standing = None if memory.standing is None else memory.standing.executors
        has = memory.executors or seen.executors, made.executors, standing, seconds_since(memory.asked_at, seen.now_s)
        replay, rate = decide_rate(memory.replay, seen, self.contract, memory.model, memory.scatter, *has)
        wanted = made.executors, made.reason, made.codes, rate.inputs, rate.relief
        executors, reason, codes, added = ask_in_all(*wanted, seen, contract)
        if rate.inputs is not None:
            inputs["replay"] = {**rate.inputs, "added": added}
        if rate.relief is not None:
            inputs["relief"] = rate.relief
        if self.granted is not None:
            acts, extra = self._acts(memory), executors - made.executors
            self._want = pool_want(want_of(seen, made, contract, memory, extra, acts), self.granted.pool, memory, now)
            if acts:
                memory, inputs["pool"] = take_grant(before, memory, seen, self.granted, contract.executors, now)
                decided = made.executors, seen.target, executors, reason, codes
                kept = None if rate.inputs is None else standing
                executors, reason, codes = with_grant(*decided, inputs["pool"], kept)
        memory = memory if replay is memory.replay else copy_with(memory, replay=replay)
        expected = {"capacity_rps": made.capacity_rps, "utilisation": made.utilisation, "busy": memory.batches.busy}
        return memory, self._record(
            memory, now, id=memory.metric_at or 0, policy=decider.policy.name, executors=executors,
            reason=reason, codes=codes, inputs=inputs, expected=expected, replay_rps=rate.rps,
            admission_rps=None if rate.relief is None else rate.relief["live_rps"],
        )  # fmt: skip

    def hold_without_metrics(self, memory: Memory, now: float) -> Decision | None:
        """Return a decision to keep the executors if the newest metrics are too old at `now` (epoch s), else None.

        So they are beyond `planning.metrics_age_s` (wall seconds). None too where nothing was decided yet. The decision
        has the codes "hold" and "no_metrics", and no replays and relief beyond a batch's tasks or what is granted.
        """
        silent_s = now - (memory.metric_at or now)
        if memory.target is None or silent_s <= self.contract.planning.metrics_age_s:
            return None
        reason = f"hold: the newest metrics are {silent_s:.0f} s old; without an observation nothing is changed"
        most = most_of_use(memory, self.contract)
        if self.granted is not None and self._acts(memory):
            most = min(most, memory.target + room_for_replays(self.granted, memory.target, running_unseen(memory)))
        wanted, reason = keep_unseen(memory, reason, self.contract, most, now)
        return self._record(
            memory, now, id=now, policy=self.policy, executors=wanted, reason=reason,
            codes=["hold", "no_metrics"], inputs={"metric_wall_time": memory.metric_at}, expected={},
            replay_rps=0.0 if memory.replay.replays else None,
        )  # fmt: skip

    def _acts(self, memory: Memory) -> bool:
        return self.mode == "act" and memory.mode in (None, "act")

    def _record(self, memory: Memory, now: float, id: float, **made: Any) -> Decision:
        return Decision(
            id=f"{self.job}-{int(id * 1000)}", job=self.job, time=memory.job_s(now), wall_time=now,
            time_scale=memory.time_scale, mode=self.mode, **made,
        )  # fmt: skip

    def _left(self, memory: Memory | None, rows: list[dict[str, Any]], now: float) -> tuple[Memory | None, Sent]:
        """Of a job without a contract nothing is taken; it is rejected, not once a record but once in a while."""
        if memory is not None and memory.unknown_at is not None:
            return (memory, []) if now - memory.unknown_at < UNKNOWN_S else (None, [])
        reason = f"job {self.job!r} has no contract; add {self.job}.yaml to the folder of contracts. Records are left."
        first = [row for row in rows if row["topic"] == "metrics"][:1]
        memory = copy_with(memory or memories.fresh(self.contract), unknown_at=now)
        return memory, [("rejects", row["topic"], reject_of(row, reason, now)) for row in first]
