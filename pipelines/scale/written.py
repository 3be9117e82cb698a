"""What is sent of a step: rejects, the decision, unless the one that stands comes to the same, and signs of life."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from configs.contract import Contract
from models.policy.copies import copy_with
from models.policy.live.memory import Memory
from models.policy.live.standing import MOMENTARY, Standing, count_repeat
from pipelines.serve.step.refusals import Refusals
from tidecast.messages import Decision, Heartbeat, Message, Reject

Sent = list[tuple[str, str, Message]]
"""Topic, key and message of what is to be sent."""
BEAT_S = 7.0  # seconds between two heartbeats: with WATCHDOG_MS and a slow micro-batch on top still under 10 s
UNSEEN_S = 30.0  # seconds without an evaluation, after which a heartbeat vouches for no decision any more
MISSING_S = 20.0  # seconds after which it is said anew that executors are missing: after 20, 40, 80 and so on


def messages_after(
    job: str, contract: str, memory: Memory, decision: Decision | None, now: float
) -> tuple[Memory, Sent]:
    """Return the memory after an evaluation, and what is to be sent: the decision, a heartbeat every BEAT_S (7 s).

    The heartbeat names the decision that stands, but none where the job was not looked at for UNSEEN_S (30 s).

    Args:
        job: name of the job.
        contract: its hash.
        memory: after the evaluation.
        decision: that it came to; None: to none.
        now: wall time, epoch seconds.
    """
    standing, closed, out = memory.standing, None, Sent()
    if decision is not None:
        same = _alike(decision, memory, contract)
        unseen = "no_metrics" in decision.codes  # nor would it be seen whether an agent has carried it out
        asked_for = (memory.executors or 0) + (memory.pending or 0)  # by the agent, whether it has come or not
        reached = decision.executors == asked_for or unseen or not _has_acting_agent(memory)
        again = count_repeat(standing, now, decision.codes, same, reached)
        if again is None:
            out.append(("decisions", job, decision))
            # What came to the same as the decision before is reported before another takes its place.
            closed = standing if standing is not None and standing.repeats > standing.vouched else None
            memory = with_decision(memory, decision, same)
        else:
            memory = copy_with(memory, standing=again)
    standing = memory.standing
    if closed is None and memory.beat_at is not None and 0 <= now - memory.beat_at < BEAT_S:
        return memory, out
    unseen = memory.looked_at is not None and now - memory.looked_at > UNSEEN_S
    stands, time_s = closed or (None if unseen else standing), now if memory.metric_at is None else memory.job_s(now)
    beat = Heartbeat(job, "autoscaler", time_s, now, memory.time_scale)
    if stands is not None:
        beat = dataclasses.replace(
            beat, standing=stands.id, since=stands.since, executors=stands.executors, repeats=stands.repeats
        )
    out.append(("heartbeats", job, beat))
    if standing is not None and not unseen:
        standing = dataclasses.replace(standing, vouched=standing.repeats)
    return copy_with(memory, beat_at=now, standing=standing), out


def with_decision(memory: Memory, decision: Decision, alike: str = "") -> Memory:
    """Return the memory after a decision was written; also for who follows the decisions of another process.

    Args:
        memory: after all that was heard before the decision.
        decision: as it was written, for the memory's job.
        alike: text that is equal for evaluations that come to the same; for who makes none it is of no use.
    """
    before = memory.executors or 0 if memory.standing is None else memory.standing.executors
    acts = decision.mode == "act" and _has_acting_agent(memory)
    raised = acts and decision.executors > before  # also one without metrics, which an agent carries out like any other
    unseen = "no_metrics" in decision.codes  # such a one says nothing of the room in the cluster
    return copy_with(
        memory, standing=Standing(decision.id, decision.wall_time, decision.executors, alike),
        asked_at=decision.wall_time if raised else memory.asked_at,
        no_room=memory.no_room if unseen else "no_room" in decision.codes,
    )  # fmt: skip


def reject_of(row: Mapping[str, Any], reason: object, now: float) -> Reject:
    """Return the reject of a record (topic, partition, offset and value); `now` is wall time, epoch seconds."""
    return Reject.of(row["topic"], row["partition"], row["offset"], "autoscaler", reason, row["value"], now)


def rejects_of_old(
    contract: Contract, before: Memory, memory: Memory, rows: Iterable[Mapping[str, Any]], planned: float, now: float
) -> list[Reject]:
    """Return a reject where the newest metrics are too old: nothing is decided, though they come.

    Where they were so as they came, clocks are wrong, or the driver is late. Else the micro-batch took too long: told
    once nothing was decided for UNSEEN_S (30 s), nor on metrics of a micro-batch before this one. A single one may be
    slow, as the first one is after a restart of the autoscaler, or as a driver begins again.

    Args:
        contract: of the job.
        before: memory without these metrics.
        memory: with them.
        rows: records of a micro-batch, with an interval of metrics among them.
        planned: wall time, epoch seconds, at which the micro-batch was planned.
        now: wall time, epoch seconds.
    """
    job, most_s, age_s = contract.job, contract.planning.metrics_age_s, planned - (memory.metric_at or planned)
    idle = memory.looked_at is None or now - memory.looked_at > UNSEEN_S
    missed = before.metric_at is not None and before.metric_at - (before.looked_at or 0.0) > most_s
    if age_s > most_s:
        what = f"metrics of {job!r} are {age_s:.0f} s old as they arrive, and nothing is decided on them"
        remedy = "if they stay so, set the clocks of both computers, or raise planning.metrics_age_s"
    elif now - planned + age_s > most_s and idle and missed:
        what = f"this autoscaler took {now - planned:.0f} s to come to {job!r}, and decides nothing on metrics so old"
        remedy = "give it room, or raise planning.metrics_age_s"
    else:
        return []
    *_, newest = (row for row in rows if row["topic"] == "metrics")
    return [reject_of(newest, f"{what}: {remedy}", now)]


def rejects_after(job: str, memory: Memory, refused: Sequence[Reject], now: float) -> tuple[Memory, Sent]:
    """Return the memory after a job's records were refused, and what is to be sent: of metrics one a kind in 60 s."""
    if not refused:
        return memory, []
    told = Refusals(memory.refused)
    sent = [one for one in refused if one.topic != "metrics" or told.is_news(job, one.reason, now)]
    return copy_with(memory, refused=told.told), [("rejects", one.topic, one) for one in sent]


def _has_acting_agent(memory: Memory) -> bool:
    return memory.mode in (None, "act")


def _alike(decision: Decision, memory: Memory, contract: str) -> str:
    """A text that is equal for decisions that come to the same."""
    received = memory.forecast if decision.inputs.get("ahead") else {}
    # Who follows decisions learns by them alone that late seconds have left the window: `late_since` moves as they do.
    lasting = sorted(set(decision.codes) - MOMENTARY)
    # Its words may say for how long executors have been missing, and stand for hours where there is no room for these.
    doublings = int((decision.inputs.get("missing_s") or 0.0) / MISSING_S).bit_length()
    return " ".join(map(str, (
        *lasting, decision.mode, memory.mode, decision.policy, decision.inputs.get("version"), decision.executors,
        memory.executors, contract, received.get("epoch"), received.get("time"), decision.replay_rps,
        decision.admission_rps, (decision.inputs.get("replay") or {}).get("may_begin"), memory.account.late_since,
        doublings,
    )))  # fmt: skip
