"""The thread that follows decisions, control messages, orders of replays and heartbeats, and reports outcomes."""

from __future__ import annotations

import logging
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from typing import Any

from tidecast.connection.transport import consumer
from tidecast.control import clock_key, clock_of, mode_key
from tidecast.guard import check_decision
from tidecast.job import Job
from tidecast.messages import (
    FUTURE_S,
    Control,
    Decision,
    Heartbeat,
    MessageError,
    Outcome,
    Reject,
    decode,
    decode_keyed,
)
from tidecast.modes import apply_control_mode, hand_back_if_silent, note_contact, retry_mode
from tidecast.orders import ReplayOrder, order_key
from tidecast.outcomes import executors_in_words, outcome
from tidecast.spark.sensors import lag_records

log = logging.getLogger("tidecast")

WAIT_MS = 500  # longest wait of a poll, ms
DECISIONS, CONTROL, HEARTBEATS = "decisions", "control", "heartbeats"
REDISCOVER_S = 10.0  # seconds between two searches for partitions that came later, or the topic of heartbeats did


class Commands:
    """Follows `decisions` and `heartbeats` from now on and `control` from its beginning; call `poll` again and again.

    Until `control` has been read to the end that it had at first, the agent observes, whatever `attach` allows, and
    decisions wait: only the last of several kept messages counts.
    """

    def __init__(self, job: Job, bootstrap: str, security: Mapping[str, Any], waits_for_clock: bool) -> None:
        self._job, self._bootstrap, self._security = job, bootstrap, security
        self._waits_for_clock = waits_for_clock
        self._client: Any = None
        self._waiting: deque[Any] = deque()
        self._unread: dict[Any, int] = {}
        self._control_read = False
        self._requested_mode: str | None = None
        self._rediscover_at = float("inf")
        self._ignored_executors: int | None = None
        self._newest: defaultdict[int, int] = defaultdict(int)  # offset of the newest decision, by partition
        self._control_at: dict[str, tuple[int, float]] = {}  # partition and time of the newest word, by key

    def poll(self) -> None:
        """Wait up to 0.5 s for records and handle each: apply a decision, change mode or clock, note a heartbeat.

        Connects at the first call (waits up to 10 s). Outcomes and rejects are queued in the job's outbox. In mode
        "act" every call ends with a request for safely many executors if the autoscaler is silent (`lost_contact_s`). A
        mode that the cluster refused is tried again now and then.

        Raises:
            UnreachableError: the broker cannot be connected to; the message says why.
            LookupError: the topic `decisions` or `control` is not there, or may not be read.
            kafka.errors.KafkaError: the broker stopped answering, also to an offset look-up (KafkaTimeoutError).
            tidecast.spark.actuator.ActuatorError: the cluster refused the executors at handing back.
            py4j.protocol.Py4JError: Spark's JVM does not answer.
            ValueError: a security option is unknown or has no such value.
        """
        if self._client is None:
            self._client = self._connect()
        control, polled = self._job.prefix + CONTROL, self._client.poll(timeout_ms=WAIT_MS)
        for part in sorted(polled, key=lambda part: bool(part.topic != control)):  # a mode holds for what came with it
            self._waiting += polled[part]
        while self._waiting:  # what comes behind a record that Spark did not answer of is met with the next call
            self._handle(self._waiting.popleft())
        if not self._control_read:
            self._finish_control()
        elif time.monotonic() > self._rediscover_at:
            self._rediscover()
        retry_mode(self._job)
        hand_back_if_silent(self._job, time.monotonic())

    def close(self) -> None:
        """Close the Kafka client if there is one; waits up to 1 s."""
        if self._client is not None:
            self._client.close(timeout_ms=1000)

    def _connect(self) -> Any:
        client_id = f"tidecast-{self._job.name}-commands"
        search = {"metadata_max_age_ms": int(REDISCOVER_S * 1000)}  # it asks the broker no more often by itself
        client = consumer(self._bootstrap, self._security, client_id=client_id, **search)
        try:
            parts = {topic: self._partitions(client, topic) for topic in (DECISIONS, CONTROL, HEARTBEATS)}
            if missing := [topic for topic in (DECISIONS, CONTROL) if not parts[topic]]:
                raise LookupError(
                    f"topic {self._job.prefix + missing[0]!r} is not on the broker at {self._bootstrap}, or may not be "
                    "read; `tidecast autoscale` creates it"
                )
            live = parts[DECISIONS] + parts[HEARTBEATS]
            client.assign(live + parts[CONTROL])
            client.seek_to_end(*live)
            client.seek_to_beginning(*parts[CONTROL])
            for part in live:
                client.position(part)  # "the end" is now, not when the first poll comes round to it
            client.pause(*live)
            self._unread = client.end_offsets(parts[CONTROL])
        except BaseException:
            client.close(timeout_ms=1000)
            raise
        self._control_read = False
        self._rediscover_at = time.monotonic() + REDISCOVER_S
        return client

    def _partitions(self, client: Any, topic: str) -> list[Any]:
        from kafka import TopicPartition

        name = self._job.prefix + topic
        return [TopicPartition(name, number) for number in sorted(client.partitions_for_topic(name) or ())]

    def _finish_control(self) -> None:
        if all(self._client.position(part) >= end for part, end in self._unread.items()):
            apply_control_mode(self._job, self._requested_mode)
            self._client.resume(*self._client.paused())
            self._control_read = self._job.orders_read = True

    def _rediscover(self) -> None:
        """Follow partitions that came later from their beginning: all that is on them came since."""
        self._rediscover_at = time.monotonic() + REDISCOVER_S
        there = [part for topic in (DECISIONS, CONTROL, HEARTBEATS) for part in self._partitions(self._client, topic)]
        if new := set(there) - self._client.assignment():
            self._client.assign([*self._client.assignment(), *new])
            self._client.seek_to_beginning(*new)

    def _handle(self, record: Any) -> None:
        job, now, topic = self._job, time.time(), record.topic.removeprefix(self._job.prefix)
        key = (record.key or b"").decode("utf-8", "replace")
        try:
            if topic == CONTROL and key in (mode_key(job.name), clock_key(job.name)):
                if record.value is not None or job.signing is not None:
                    self._check_signature(record, key)
                    self._follow_control(key, record.partition, decode(Control, record.value, now))
            elif topic == CONTROL and key.startswith(order_key(job.name, "")):
                if record.value is not None:
                    self._check_signature(record, key)
                    job.take_order(key, decode(ReplayOrder, record.value))
            elif topic == HEARTBEATS and key == job.name:
                beat = decode_keyed(Heartbeat, key, record.value, now)
                if beat.by == "autoscaler":
                    self._check_signature(record, key)
                    note_contact(job, now - beat.wall_time)
            elif topic == DECISIONS and key == job.name:
                self._check_signature(record, key)
                decision = decode_keyed(Decision, key, record.value, now)
                if now - decision.wall_time > job.limits.fresh_s and record.offset < self._newest[record.partition]:
                    log.debug("%s: %s is read again: the broker has lost newer ones", job.name, decision.id)
                    return
                self._newest[record.partition] = record.offset  # what lies behind a fresh one is new
                self._follow_decision(decision)
        except MessageError as error:
            log.warning("%s: a record on %s was rejected: %s", job.name, record.topic, error)
            if job.signing is not None and key == mode_key(job.name) and not self._control_read:
                # It may stand where a signed one did that narrowed the mode: only the newest of a key is kept.
                self._requested_mode = self._requested_mode or "observe"
            at = topic, record.partition, record.offset
            job.outbox.enqueue("rejects", topic, Reject.of(*at, f"agent of {job.name}", error, record.value, now))

    def _check_signature(self, record: Any, key: str) -> None:
        if self._job.signing is not None:
            self._job.signing.check(record.topic, key, record.value, dict(record.headers))

    def _follow_control(self, key: str, partition: int, control: Control) -> None:
        job = self._job
        if control.job != job.name:
            raise MessageError(f"job={control.job!r} under the key {key!r}")
        at, newest_s = self._control_at.get(key, (partition, 0.0))
        if not self._control_read and at != partition and control.wall_time < newest_s:
            return  # kept where the key's words were before the topic got more partitions
        # A kept record that somebody sends again is signed as well; clocks of people differ by less than FUTURE_S.
        newest_s = max(newest_s, control.wall_time)
        if job.signing is not None and control.wall_time < newest_s - FUTURE_S:
            raise MessageError(
                f"wall_time={control.wall_time} is {newest_s - control.wall_time:.0f} s older than a message that came "
                "before; send it anew"
            )
        self._control_at[key] = partition, newest_s
        if key == clock_key(job.name) and self._waits_for_clock:
            job.clock = clock_of(control)
            log.info("%s: job time is %s", job.name, job.clock or "unknown until a clock is announced")
        elif key == mode_key(job.name) and control.mode is not None:
            self._requested_mode = control.mode
            if self._control_read:
                apply_control_mode(job, control.mode)

    def _follow_decision(self, decision: Decision) -> None:
        job = self._job
        with job.lock:
            now = time.time()  # behind the lock: who had it may have waited minutes for Spark
            target = job.actuator.target if job.owns_executors else None
            current = len(job.live()) if target is None else target
            verdict = check_decision(decision, job.name, job.mode, current, job.limits, job.ceiling(), job.seen, now)
            if verdict.action == "reject":
                raise MessageError(verdict.reason)
            note_contact(job, now - decision.wall_time)
            repeated = decision.id in job.seen.ids
            job.seen = job.seen.after(decision, verdict.action in ("apply", "hold"))
            if verdict.action in ("apply", "hold"):
                job.follow_replay_rate(decision)
                job.follow_admission(decision)
            elif verdict.number_alone:
                self._follow_rates(decision)
            elif decision.mode != "act":
                job.decide_nothing()
            outcomes = self._apply(decision, verdict.reason, now) if verdict.action == "apply" else []
        if verdict.action == "refuse":
            log.warning("%s: %s refused: %s", job.name, decision.id, verdict.reason)
            if not repeated:  # what became of the first copy is its outcome
                outcomes = [outcome(decision, "refused", verdict.reason, now, job.time, executors_before=current)]
        elif verdict.action == "ignore" and job.mode == "freeze" and decision.executors != self._ignored_executors:
            self._ignored_executors = decision.executors  # a frozen agent says what it leaves undone, once per wish
            asked = "%s: frozen: %s asks for %s, nothing is changed"
            log.warning(asked, job.name, decision.id, executors_in_words(self._ignored_executors))
        for each in outcomes:
            job.outbox.enqueue("outcomes", job.name, each)

    def _follow_rates(self, decision: Decision) -> None:
        """Follow a decision whose number of executors is left undone where it is reckoned from those that run.

        Or a replay would go on as before the load rose: who decides is heard. Live records are not held back further.
        """
        live, before = decision.admission_rps, self._job.admission_rps
        self._job.follow_replay_rate(decision)
        if before is not None and (live is None or live > before):
            self._job.follow_admission(decision)

    def _apply(self, decision: Decision, reason: str, now: float) -> list[Outcome]:
        job, before = self._job, self._job.actuator.live()
        log.info("%s: %s asks for %s: %s", job.name, decision.id, executors_in_words(decision.executors), reason)
        try:
            job.actuator.set_target(decision.executors)
        except Exception as error:  # whatever a cluster manager throws, the decision gets its answer
            if job.actuator.target is None:  # of which the outcome is told there
                log.info("%s: %s is left to the job's next agent, which has the executors", job.name, decision.id)
                return []
            log.exception("%s: %s could not be applied", job.name, decision.id)
            return [outcome(decision, "failed", f"{error}"[:500], now, job.time, executors_before=len(before))]
        return job.tracker.track(decision, before, lag_records(job.ends, job.committed), time.time(), job.time)
