"""The borders at which something from outside is read: how, what they may answer, and when an answer is sound."""

from __future__ import annotations

import itertools
import math
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from configs.contract import Contract, load_contract
from configs.errors import SettingsError
from configs.pool import ClusterPool
from configs.settings import ROOT, Settings
from configs.topology import load_topology
from models.dqn.agent.model import AgentError
from models.dqn.agent.observation import FEATURES
from models.forecast.core.series import SeriesError
from models.placement.rates import rates_of
from models.policy.live.memory import fresh
from pipelines.bench.borders import configured
from pipelines.bench.borders.artifacts import agent_sample, forecaster_samples, serve_forecaster
from pipelines.bench.borders.corpus import JOB, POOL, make_replay_messages, make_valid_messages
from pipelines.bench.borders.state import CONTRACT, goes_on, step_once, used_memory
from pipelines.jobs.events import EventError, LoadEvent, decode_event, encode_event
from pipelines.kafka.signing import Signer
from pipelines.registry.agents import read_agent
from pipelines.serve.models.model_set import ModelSetError
from pipelines.serve.net import wire
from pipelines.traces.series_file import read_series
from pipelines.traces.trace_file import TraceError
from tidecast.messages import MessageError, decode, encode

_numbers = itertools.count()


class Border(NamedTuple):
    """Where something from outside is read.

    Attributes:
        form: of its inputs, as `make_mutants` takes it.
        samples: right inputs.
        read: reads one; a folder of its own is given to it for what has to be a file.
        refused: errors by which it may refuse; any other is a crash.
        sound: whether what it accepted holds what this border promises.
    """

    form: str
    samples: tuple[bytes, ...]
    read: Callable[[bytes, Path], Any]
    refused: tuple[type[Exception], ...]
    sound: Callable[[Any], bool] = lambda found: True


def topic_borders(now: float) -> dict[str, Border]:
    """Return a border for each kind of message, by "topic: " and the name of its class."""
    messages = [*make_valid_messages(now).values(), *make_replay_messages(now)]
    return {
        f"topic: {type(message).__name__}": Border(
            "json", (encode(message),), partial(_message, type(message), now), (MessageError,), _survives
        )
        for message in messages
    }


def _message(kind: type[Any], now: float, raw: bytes, folder: Path) -> Any:
    return decode(kind, raw, now)


def _survives(message: Any) -> bool:
    return bool(decode(type(message), encode(message)) == message)


def other_borders() -> dict[str, Border]:
    """Return the borders that are no topics of Tidecast's, by name; makes forecasters, which takes a second."""
    event = tuple(encode_event(LoadEvent(number, time.time(), "key-007")) for number in (0, 2**40))
    asked: list[wire.Request] = [
        wire.Put(b'{"job":"orders"}'), wire.Get("/forecast/orders", 3), wire.AsOf("/a", 9), wire.Versions("/a"),
        wire.Ping(b"x"), wire.WhatIf("orders", 12.5), wire.Frontier(),
    ]  # fmt: skip
    rows = "".join(f"2026-01-01T{hour:02}:00:00,{hour % 7}\n" for hour in range(24))
    return {
        "events": Border(
            "json", event, lambda raw, folder: decode_event(raw, time.time()), (EventError,),
            lambda found: found.key == decode_event(encode_event(found), time.time()).key,
        ),
        "socket": Border(
            "bytes", tuple(wire.encode_frame(one) for one in asked), _frames, (wire.WireError,), _answers_alike
        ),
        "YAML: contract": Border(
            "yaml", _shipped("contracts", "job", JOB),
            partial(_file, f"{JOB}.yaml", lambda path: load_contract(JOB, path.parent)),
            (SettingsError,), lambda found: Contract.model_validate_json(found.model_dump_json()) == found,
        ),
        "YAML: topology": Border(
            "yaml", _shipped("topologies", "name", "jobs"),
            partial(_file, "jobs.yaml", lambda path: load_topology("jobs", path.parent)),
            (SettingsError,), lambda found: all(map(math.isfinite, rates_of(found).taken.values())),
        ),
        "YAML: pool": Border(
            "yaml", configured.POOLS, partial(_file, f"{POOL}.yaml", configured.read_pool_file), (SettingsError,),
            lambda found: ClusterPool.model_validate_json(found.model_dump_json()) == found,
        ),
        "YAML: settings": Border(
            "yaml", configured.SETTINGS, partial(_file, "settings.yaml", _settings_file), (SettingsError,),
            lambda found: configured.reach_others(*found),
        ),
        "YAML: signing keys": Border(
            "yaml", (b"orders: 0123456789abcdef0123456789abcdef\npayments: 'ffffffffffffffffffffffffffffffff'\n",),
            _signing_keys, (SettingsError,),
        ),
        "CSV": Border(
            "bytes", (f"timestamp,value\n{rows}".encode(), b"time;load\n1700000000;1\n1700000060;2.5\n1700000120;4\n"),
            partial(_file, "load.csv", read_series), (TraceError, SeriesError),
            lambda found: len(found) > 0 and not (found.values < 0).any(),
        ),
        "artifact: forecaster": Border("json", forecaster_samples(), serve_forecaster, (ModelSetError,)),
        "artifact: agent": Border(
            "json", (agent_sample(),), partial(_file, "agent.json", lambda path: read_agent(path.parent)),
            (AgentError, ValueError),
            lambda found: bool(np.isfinite(found.action_values(np.zeros((1, len(FEATURES))))).all()),
        ),
        "state: autoscaler": Border(
            "json", (fresh(CONTRACT).to_json().encode(), used_memory()), step_once, (), goes_on,
        ),
    }  # fmt: skip


def _shipped(folder: str, key: str, name: str) -> tuple[bytes, ...]:
    """The files of a folder of `configs`, each under the name that the border gives it."""
    files = sorted((ROOT / "configs" / folder).glob("*.yaml"))
    return tuple(re.sub(rb"(?m)^%b: .*$" % key.encode(), f"{key}: {name}".encode(), one.read_bytes()) for one in files)


def _signing_keys(raw: bytes, folder: Path) -> None:
    """Under another name each time: what was read of a file of the same size and second is kept."""
    file = folder / f"{next(_numbers)}.yaml"
    file.write_bytes(raw)
    try:
        Signer(file).check_file()
    finally:
        file.unlink()


def _settings_file(file: Path) -> tuple[Settings, Path]:
    return configured.read_settings_file(file), file.parent


def _file(name: str, read: Callable[[Path], Any], raw: bytes, folder: Path) -> Any:
    (folder / name).write_bytes(raw)
    return read(folder / name)


def _frames(raw: bytes, folder: Path) -> list[wire.Request]:
    return [wire.read_request(frame) for frame in wire.take_frames(bytearray(raw))]


def _answers_alike(requests: list[wire.Request]) -> bool:
    """A number that is none is no forecast's rate; whatever else was read is what its writer meant."""
    again = [wire.read_request(wire.take_frames(bytearray(wire.encode_frame(one)))[0]) for one in requests]
    return repr(again) == repr(requests)
