"""What is measured and decided of one job now, in words, and where the chain to a decision is broken if it is."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from configs.contract import Contract, load_contract
from configs.errors import SettingsError
from configs.sections import Kafka
from configs.settings import Settings
from models.contract.declared import TermsError
from pipelines.html.numbers import number_of
from pipelines.kafka.broker import Record, read_records
from pipelines.kafka.signing import Signer
from tidecast.control import mode_key
from tidecast.messages import Control, Decision, Heartbeat, MessageError, MetricSample, Reject, decode

NEWEST = {"metrics": 4000, "decisions": 2000, "heartbeats": 2000, "rejects": 500, "control": None}
"""Records at the end of each topic that are looked at, None for all: enough for the newest of a job among hundreds."""
DEEP = 100_000
"""Those of metrics and heartbeats that are looked at where the first hold nothing of the job: it may have stopped."""
SHOWN = 5
"""Decisions, and rejected records, that are shown."""
SILENT_S = 30.0
"""Seconds without a sign of life after which it is said that there may be no autoscaler."""


class JobSeen(NamedTuple):
    """What the topics hold of a job.

    Attributes:
        sample: its newest second of metrics.
        decisions: its newest ones, the last one at the end.
        beat: the newest sign of life of its autoscaler.
        mode: that a person gave it last.
        rejects: the newest ones that name it.
        since: wall time (epoch seconds) of the oldest metrics, of any job, that were looked at; None: there are none.
        unsigned: (topic, why its agent refuses the newest record there) of topics of which that is so.
        unchecked: why signatures are not checked, though a file of keys is set; None: they are, or none is set.
    """

    sample: MetricSample | None = None
    decisions: tuple[Decision, ...] = ()
    beat: Heartbeat | None = None
    mode: str | None = None
    rejects: tuple[Reject, ...] = ()
    since: float | None = None
    unsigned: tuple[tuple[str, str], ...] = ()
    unchecked: str | None = None


def see_job(kafka: Kafka, job: str) -> JobSeen:
    """Read what the topics hold of a job now; of one with a signing key what is not signed counts for nothing.

    Where the file of keys cannot be read, as by people who may only look, nothing is checked.

    Raises:
        BrokerError, ValueError: no broker is set or answers, or a topic is not there; an unknown security option.
    """
    decisions, rejects = deque[Decision](maxlen=SHOWN), deque[Reject](maxlen=SHOWN)
    unsigned: dict[str, str] = {}
    found: dict[str, Any] = {"decisions": decisions, "rejects": rejects, "unsigned": unsigned}
    signer, unchecked = Signer.of(kafka), None
    try:
        signer.check_file()
    except SettingsError as error:
        signer, unchecked = Signer(None), f"{error}"
    since = {topic: _read(kafka, topic, newest, found, job, signer) for topic, newest in NEWEST.items()}
    for topic, kind in (("metrics", "sample"), ("heartbeats", "beat")):
        if kind not in found:
            since[topic] = _read(kafka, topic, DEEP, found, job, signer)
    said = tuple(decisions), found.get("beat"), found.get("mode"), tuple(rejects)
    return JobSeen(found.get("sample"), *said, since["metrics"], tuple(unsigned.items()), unchecked)


def _read(
    kafka: Kafka, topic: str, newest: int | None, found: dict[str, Any], job: str, signer: Signer
) -> float | None:
    """Take what a topic's newest records say of a job; return when the oldest of them was written."""
    oldest = None
    for record in read_records(kafka, topic, newest):
        oldest = record.timestamp if oldest is None else min(oldest, record.timestamp)
        try:
            _take(found, record, job, signer)
        except MessageError:
            continue
    return oldest


def _take(found: dict[str, Any], record: Record, job: str, signer: Signer) -> None:
    if record.topic == "rejects":
        reject = decode(Reject, record.value)
        if f"'{job}'" in reject.reason or f'"job":"{job}"' in reject.value:
            found["rejects"].append(reject)
    elif record.topic == "control":
        if record.key == mode_key(job):
            word = decode(Control, record.value)
            if _obeyed(found, record, job, signer):
                found["mode"] = word.mode
    elif record.key != job:
        return
    elif record.topic == "metrics":
        sample = decode(MetricSample, record.value)
        if sample.kind == "interval" and sample.executors is not None:  # back-dated history says nothing about now
            found["sample"] = sample
    elif record.topic == "decisions":
        decision = decode(Decision, record.value)
        if _obeyed(found, record, job, signer):
            found["decisions"].append(decision)
    else:
        beat = decode(Heartbeat, record.value)
        if beat.by == "autoscaler" and _obeyed(found, record, job, signer):
            found["beat"] = beat


def _obeyed(found: dict[str, Any], record: Record, job: str, signer: Signer) -> bool:
    """Whether the job's agent takes a record, as far as its signature goes; keeps why not of a topic's newest one."""
    found["unsigned"].pop(record.topic, None)
    try:
        signer.check_record(record, job)
    except MessageError as error:
        found["unsigned"][record.topic] = f"{error}"
        return False
    return True


def read_contract(settings: Settings, job: str) -> Contract | str:
    """Return the job's contract in this folder, or what is wrong with it."""
    from models.policy.core.sustained import checked_terms  # and SciPy, which who reads topics alone does not need

    try:
        contract = load_contract(job, settings.contracts_dir)
        checked_terms(contract)
    except (SettingsError, TermsError) as error:
        return str(error)
    return contract


def describe_job(job: str, seen: JobSeen, contract: Contract | str, kafka: Kafka, now: float) -> list[str]:
    """Describe what is known of a job, a line each; what keeps it from being decided on is said first.

    Args:
        job: its name.
        seen: what the topics hold of it.
        contract: that applies, or why there is none.
        kafka: for the names of the topics.
        now: wall time, epoch seconds.
    """
    lines = [f"contract: {contract}"] if isinstance(contract, str) else []
    if seen.unchecked is not None:
        lines.append(f"signatures are not checked: {seen.unchecked}")
    lines += [f"the newest of {kafka.topic(topic)} for it counts for nothing: {why}" for topic, why in seen.unsigned]
    lines += _measured(job, seen, contract, kafka, now)
    if why := why_not_held(seen.sample, contract):
        lines.append(why)
    if seen.mode is not None:
        lines.append(f"a person has said: {seen.mode}")
    beat = seen.beat
    heard = "" if beat is None else _ago(now - beat.wall_time)
    if beat is None or now - beat.wall_time > SILENT_S:
        since = "no sign of an autoscaler for it yet" if beat is None else f"its autoscaler was heard {heard}"
        soon = "; one answers within seconds of a job's first metrics" if beat is None else ""
        lines.append(f"{since}: see that `tidecast autoscale` runs on this broker and prefix, and says `ready`{soon}")
    lines += [_decided(decision, now) for decision in seen.decisions]
    if beat is not None and seen.decisions and beat.standing == seen.decisions[-1].id and beat.repeats:
        lines.append(f"stands: {beat.repeats} evaluations since came to the same, as was said {heard}")
    lines += [f"rejected {_ago(now - one.wall_time)} by {one.by}: {one.reason}" for one in seen.rejects]
    return lines


def why_not_held(sample: MetricSample | None, contract: Contract | str | None) -> str:
    """Say why live records of a job whose contract would have them held back cannot be, and what to do; else ""."""
    stated = contract.backpressure if isinstance(contract, Contract) else None
    if sample is None or sample.cannot_hold is None or stated is None or stated.controls.live_rps is None:
        return ""
    return (
        f"live records cannot be held back, which its contract asks for: {sample.cannot_hold}; or take "
        "backpressure.controls.live_rps out of the contract"
    )


def _measured(job: str, seen: JobSeen, contract: Contract | str, kafka: Kafka, now: float) -> list[str]:
    if (sample := seen.sample) is None:
        looked = (
            "" if seen.since is None else f" of the newest {DEEP:,} of all jobs, the oldest {_ago(now - seen.since)}"
        )
        return [
            f"no metrics on {kafka.topic('metrics')}{looked}: does the job run, and is its agent attached as {job!r} "
            f"and with prefix={kafka.prefix!r}? Its log (logger `tidecast`) says what it cannot reach."
        ]
    lines, age_s = [], now - sample.wall_time
    if isinstance(contract, Contract) and age_s > contract.planning.metrics_age_s:
        lines.append(
            f"metrics are {age_s:.0f} s old, and nothing is decided on those older than "
            f"planning.metrics_age_s={contract.planning.metrics_age_s:g}: does the job run, does its agent reach the "
            "broker (its log, logger `tidecast`, says so), and are its computer's clock and this one set?"
        )
    lag = "not known before the first batch ends" if sample.lag_records is None else sample.lag_records
    lines.append(
        f"measured {_ago(age_s)}: {sample.arrival_rps:g} records/s, lag {lag}, "
        f"{number_of(sample.executors, 'executor')}, mode {sample.mode}"
    )
    return lines


def _decided(decision: Decision, now: float) -> str:
    kind = "recommended" if decision.mode == "observe" else "decided"
    asked = f"{number_of(decision.executors, 'executor')}: {decision.reason}"
    return f"{kind} {_ago(now - decision.wall_time)} by {decision.policy}: {asked}"


def _ago(seconds: float) -> str:
    for unit, length in (("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.1f} s ago"
