"""The file of signing keys, a secret for each job, and the signatures of what agents obey."""

from __future__ import annotations

import os
import pwd
import socket
import sys
import time
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from configs.errors import SettingsError
from configs.sections import Kafka
from pipelines.kafka.broker import Record
from pipelines.watched import state_of
from tidecast.connection.signing import SigningKeys
from tidecast.fields import job_name
from tidecast.messages import MessageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNED = ("decisions", "heartbeats", "control", "wants")
"""Topics of what agents obey, and of what their pool is divided by."""
WANTED = "A line `job: secret` for each job is expected; `openssl rand -hex 32` makes a secret."
TASK_S = 1.0
"""Seconds that each executor is kept while all are asked, so that none of them takes two turns."""
_valid: dict[Path, dict[str, str]] = {}


@dataclass(frozen=True)
class Signer:
    """Signs what agents obey, and checks it, with the keys of a file that is read again when it changes.

    A file that becomes unreadable leaves the keys in force that this process read last. Picklable, for Spark's workers.

    Attributes:
        file: of the keys; None: nothing is signed.
        prefix: of the names of Tidecast's topics.
    """

    file: Path | None = None
    prefix: str = ""

    @classmethod
    def of(cls, kafka: Kafka) -> Signer:
        """Return the signer that the settings ask for."""
        return cls(kafka.signing_keys, kafka.prefix)

    def check_file(self) -> None:
        """Read the file, if one is set.

        Raises:
            SettingsError: it cannot be read, or holds something else than a key per job; no key is repeated.
        """
        if self.file is not None:
            _read(self.file, state_of(self.file))

    def keys_of(self, job: str) -> str | None:
        """Return a job's line of the file, as `tidecast.attach` takes it; None without a file or such a line.

        Raises:
            SettingsError: as `check_file`, if this process has never read the file.
        """
        if self.file is None:
            return None
        try:
            _valid[self.file] = _read(self.file, state_of(self.file))
        except SettingsError as error:
            if self.file not in _valid:
                raise
            _say_once(str(error))
        return _valid[self.file].get(job)

    def sign(self, topic: str, name: str, value: bytes, job: str | None) -> bytes | None:
        """Return the signature of a record, None where it is not of a signed topic or no key is known for the job.

        Agents that have one refuse what is not signed: an unreadable file stops no other job's decisions.

        Args:
            topic: without the prefix.
            name: the record's key.
            value: the record's value.
            job: that obeys it; None: none.
        """
        if job is None or topic not in SIGNED:
            return None
        try:
            secret = self.keys_of(job)
        except SettingsError as error:
            _say_once(str(error))
            return None
        return None if secret is None else _keys(secret).sign(self.prefix + topic, name, value)

    def check_record(self, record: Record, job: str) -> None:
        """Refuse a record that is not signed with a key of the job that obeys it, if that has one.

        Raises:
            MessageError: no such signature, or the file cannot be read.
        """
        try:
            secret = self.keys_of(job)
        except SettingsError as error:
            raise MessageError(f"{error}") from None
        if secret is not None:
            _keys(secret).check(self.prefix + record.topic, record.key or "", record.value, record.headers)


def unread_on_executors(spark: SparkSession, signer: Signer, executors: int) -> list[str]:
    """Ask a session's executors for the file of signing keys; returns where and why one cannot read it.

    Waits until there is an executor. One that comes later than the others by over TASK_S (1 s) may not be asked.

    Args:
        spark: the session.
        signer: which names the file.
        executors: of one core each.

    Raises:
        Exception: as Spark raises it, where it cannot run Python there, or is stopped meanwhile.
    """
    asked = spark.sparkContext.parallelize(range(executors), executors).flatMap(partial(_unread, signer))
    return sorted({*asked.collect()})


def _unread(signer: Signer, _: int) -> list[str]:
    time.sleep(TASK_S)
    try:
        signer.check_file()
    except SettingsError as error:
        return [f"on {socket.gethostname()} as {_user()}: {error}"]
    return []


def _user() -> str:
    """Who runs this process; the variables of a container of YARN name who has submitted it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"{os.geteuid()}"


_keys = lru_cache(maxsize=64)(SigningKeys.read)


@lru_cache(maxsize=64)
def _say_once(problem: str) -> None:
    print(f"signing: {problem}", file=sys.stderr, flush=True)


@lru_cache(maxsize=4)
def _read(file: Path, state: tuple[int, ...]) -> dict[str, str]:
    try:
        root = yaml.compose(file.read_text(), yaml.BaseLoader)
    except OSError as error:
        raise SettingsError(f"kafka.signing_keys={file}: {error.strerror}. {WANTED}") from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(f"kafka.signing_keys={file}: cannot be read ({type(error).__name__}). {WANTED}") from None
    except yaml.YAMLError as error:  # whose own words show what stands there
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f", line {mark.line + 1}"
        raise SettingsError(f"kafka.signing_keys={file}{place}: not YAML. {WANTED}") from None
    pairs: list[tuple[yaml.Node, yaml.Node]] = root.value if isinstance(root, yaml.MappingNode) else []
    plain = all(isinstance(node, yaml.ScalarNode) for pair in pairs for node in pair)
    if not isinstance(root, yaml.MappingNode) or not plain:
        raise SettingsError(f"kafka.signing_keys={file}: not a key per job. {WANTED}")
    data = {str(job.value): str(text.value) for job, text in pairs}  # as text: digits alone are a key, no number
    if len(data) < len(pairs):
        raise SettingsError(f"kafka.signing_keys={file}: a job stands twice. {WANTED}")
    for job, text in data.items():
        try:
            job_name(job)
            _keys(text)
        except ValueError as error:
            raise SettingsError(f"kafka.signing_keys={file}: {job}: {error}") from None
    return data
