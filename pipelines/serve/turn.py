"""Whether another deployment serves on the same topics: two would push each other out, one start after the other."""

from __future__ import annotations

import time
from contextlib import closing, suppress

from configs.settings import Settings
from pipelines.deployment import deployment_name
from pipelines.kafka.broker import Follower
from pipelines.kafka.claim import SERVING, last_claim
from pipelines.kafka.connection import TopicError
from pipelines.serve.step.job import HEARTBEAT_S
from tidecast.messages import Heartbeat, MessageError, decode

LISTEN_S = HEARTBEAT_S + 3.0
"""Seconds of metrics within which a server of these says something."""


def await_turn(settings: Settings, listen_s: float = LISTEN_S) -> None:
    """Wait while the server of another deployment serves on the topics, without a limit; prints what helps, at once.

    Whose turn it is, the newest claim on `control` says, and whether it still serves, its heartbeats: once metrics have
    come for `listen_s` without one, it does not. A server of the own deployment is not waited for: it leaves.

    Args:
        settings: with broker, prefix and `var`, where the deployment's name is.
        listen_s: wall seconds.

    Raises:
        BrokerError: the broker does not answer, or forbids to read the topics.
        OSError: the deployment's name cannot be read or written.
    """
    kafka, own = settings.kafka, deployment_name(settings.var_dir)
    try:
        other = last_claim(kafka, SERVING)
    except TopicError:  # without topics nobody serves; what is forbidden, the server's own claim will say
        return
    if other in (None, own):
        return
    print(
        f"serving: the deployment {other} has served on the topics {kafka.prefix}* at {kafka.bootstrap} last, this is "
        f"{own}: waiting, for two would push each other out. If it serves still, end that one, or give this deployment "
        "topics of its own (TIDECAST_KAFKA__PREFIX)",
        flush=True,
    )
    with closing(Follower(kafka, ["heartbeats", "metrics"], start="latest")) as heard:
        unanswered = None
        while unanswered is None or time.monotonic() - unanswered < listen_s:
            for record in heard.poll(0.5):
                if record.topic == "metrics":
                    unanswered = time.monotonic() if unanswered is None else unanswered
                elif _serves(record.value):
                    unanswered = None
    print(f"serving: nothing is heard of {other}; taking over", flush=True)


def _serves(heartbeat: bytes) -> bool:
    with suppress(MessageError):
        return decode(Heartbeat, heartbeat).by == "serving"
    return False
