"""Records of the topics in, the read model of all jobs out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from configs.contract import Contract
from models.pool.state import PoolState, with_pool
from pipelines.console.read import job as jobs
from pipelines.console.read.job import FollowedJob, NoContract
from pipelines.kafka.broker import Record
from tidecast.control import mode_key
from tidecast.messages import (
    ContractText,
    Control,
    Decision,
    Forecast,
    Heartbeat,
    MessageError,
    MetricSample,
    Outcome,
    Reject,
    decode,
    decode_keyed,
)
from tidecast.orders import ReplayOrder, ReplayProgress, order_key

KINDS: dict[str, Any] = {
    "metrics": MetricSample, "decisions": Decision, "outcomes": Outcome, "forecasts": Forecast,
    "heartbeats": Heartbeat, "contracts": ContractText, "replays": ReplayProgress, "pools": PoolState,
}  # fmt: skip
"""The message class of each topic that is followed beside `control`, which holds several, and `rejects`."""
MOST_JOBS = 5000
"""Jobs that are kept; a record of a further one counts as refused."""
_STEPS: dict[type, Any] = {
    MetricSample: jobs.with_sample, Decision: jobs.with_decision, Outcome: jobs.with_outcome,
    Forecast: jobs.with_forecast, Heartbeat: jobs.with_beat, Control: jobs.with_word,
    ReplayOrder: jobs.with_replay, ReplayProgress: jobs.with_replay,
    NoContract: jobs.without_contract,
}  # fmt: skip
_NO_CONTRACT = re.compile(r"job '([^']+)' has no contract; ")
"""How the autoscaler begins when it refuses the records of a job that has none (`pipelines.scale.processor`)."""


@dataclass(frozen=True)
class ReadModel:
    """What the topics have told of all jobs.

    Attributes:
        jobs: by name.
        revision: rises with every fold that changed a job.
        refused: records that no reader could accept.
        pools: as the autoscaler said last that they stand, by name.
    """

    jobs: Mapping[str, FollowedJob] = field(default_factory=dict)
    revision: int = 0
    refused: int = 0
    pools: Mapping[str, PoolState] = field(default_factory=dict)


def fold(model: ReadModel, records: Iterable[Record], now: float) -> ReadModel:
    """Return the model after records of the topics of `KINDS`, in the order in which they were read.

    A record that is no valid message is counted and left out; it changes no job.

    Args:
        model: so far; not changed.
        records: with their topics named without the prefix; of jobs with a signing key those that are signed.
        now: wall time, epoch seconds; messages of over 300 s later are refused, but for those that people send: they
            stand on their topic for as long as nobody sends another one, whose sender has to have seen them.
    """
    messages, refused = list[Any](), 0
    for record in records:
        try:
            messages.append(read_message(record, now))
        except MessageError:
            refused += 1
    return fold_messages(replace(model, refused=model.refused + refused), messages)


def fold_messages(model: ReadModel, messages: Iterable[Any]) -> ReadModel:
    """Return the model after messages of the topics, as `read_message` returns them, in their order."""
    revision, refused = model.revision + 1, model.refused
    changed: dict[str, FollowedJob] = {}
    pools = model.pools
    for message in messages:
        if message is None:
            continue
        try:
            if isinstance(message, PoolState):
                pools = with_pool(pools, message)
                continue
            name, contract = message.job, _contract_of(message)
            if name not in model.jobs and name not in changed:
                if isinstance(message, NoContract):  # of a job that is over perhaps; one that runs has metrics
                    continue
                if len(model.jobs) + len(changed) >= MOST_JOBS:
                    raise MessageError(f"job {name!r}: {MOST_JOBS} others are known")
        except MessageError:
            refused += 1
            continue
        before = changed.get(name) or model.jobs.get(name) or FollowedJob(name)
        if contract is None:
            after = _STEPS[type(message)](before, message)
        else:
            after = jobs.with_contract(before, contract, message.wall_time)
        if after is not before:
            changed[name] = replace(after, revision=revision)
    if not changed:
        return replace(model, refused=refused, pools=pools)
    return ReadModel({**model.jobs, **changed}, revision, refused, pools)


def read_message(record: Record, now: float) -> Any:
    """Return the message in a record; None for what is nothing to the pages: clocks, and keys that were deleted.

    Of what was refused only that a job has no contract is told.

    Raises:
        MessageError: it is no valid one.
    """
    if record.topic == "rejects":
        reject = decode(Reject, record.value, now)
        found = _NO_CONTRACT.match(reject.reason) if reject.by == "autoscaler" else None
        return found and NoContract(found[1], reject.wall_time)
    if record.topic != "control":
        return decode_keyed(KINDS[record.topic], record.key, record.value, now)
    key = record.key or ""
    if not record.value or not (key.endswith(mode_key("")) or order_key("", "") in key):
        return None
    message: Any = decode(Control if key.endswith(mode_key("")) else ReplayOrder, record.value)
    right = mode_key(message.job) if isinstance(message, Control) else order_key(message.job, message.id)
    if key != right:
        raise MessageError(f"job={message.job!r} under the key {record.key!r}")
    return message


def _contract_of(message: Any) -> Contract | None:
    """The contract that a message carries; None if it carries none."""
    if not isinstance(message, ContractText):
        return None
    try:
        contract = Contract.model_validate_json(message.text)
    except ValidationError as error:
        raise MessageError(f"contract {message.hash} of {message.job}: {error.error_count()} errors") from None
    if contract.job != message.job:
        raise MessageError(f"contract {message.hash} of {message.job} is one of {contract.job}")
    return contract
