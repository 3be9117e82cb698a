"""Changing a job's mode: against what stands on the topic now, written down first, then said to the job's agent."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from configs.sections import Kafka
from pipelines.console.access import Access, ModeChange
from pipelines.kafka.broker import read_records
from pipelines.kafka.connection import BrokerError
from pipelines.kafka.signing import Signer
from tidecast.control import mode_key, set_mode
from tidecast.messages import Control, MessageError, decode

BEFORE_S = 25.0
"""Seconds after which a word that was asked for is sent no more. To send it takes half a minute at most, and the page
that asks gives up after a minute: what is sent behind that surprises whoever has looked again."""


class StaleError(RuntimeError):
    """The mode was changed since the page that asks for a change was drawn; the message says to what, and by whom."""


class ModeSwitch:
    """Gives jobs another mode, one change at a time."""

    def __init__(self, kafka: Kafka, access: Access) -> None:
        """Take the broker's settings and the audit trail."""
        self._kafka, self._record, self._signer = kafka, access.record, Signer.of(kafka)
        self._lock = threading.Lock()

    def change(self, job: str, mode: str, seen: float | None, by: str) -> None:
        """Give a job another mode; blocks until the broker has it.

        What is asked for is written to the audit trail first, and once more if it fails. Nothing is sent where another
        change, the broker or the audit trail kept it waiting for BEFORE_S (25 s).

        Args:
            job: its name.
            mode: "observe", "freeze" or "act".
            seen: wall time (epoch seconds) of the word on the job's mode that the caller saw; None: saw none.
            by: login of the caller.

        Raises:
            StaleError: another word stands there now; nothing was changed.
            BrokerError, ConnectionError: the broker does not answer, or not in time.
            SettingsError, ValueError: a security option or the file of signing keys is wrong.
            Exception: whatever the audit trail raises that cannot be written; nothing was changed.
        """
        kafka, began_s = self._kafka, time.monotonic()
        if not self._lock.acquire(timeout=BEFORE_S):
            raise BrokerError(
                f"{job} was not told to {mode}: another change still waits after {BEFORE_S:g} s. See that the broker "
                f"at {kafka.bootstrap} answers, then look again."
            )
        try:
            now = self._word(job)
            before, given_at = (None, None) if now is None else (now.mode, now.wall_time)
            if given_at != seen:
                raise StaleError(_described(job, now))
            asked = ModeChange(job, before, mode, by)
            self._record(asked)
            try:
                keys = self._signer.keys_of(job)
                if (waited_s := time.monotonic() - began_s) > BEFORE_S:
                    raise BrokerError(
                        f"{job} was not told to {mode}: to read its mode and write the change down took "
                        f"{waited_s:.0f} s, over {BEFORE_S:g} s. See that the broker at {kafka.bootstrap} and "
                        "Airflow's database answer, then look again."
                    )
                set_mode(str(kafka.bootstrap), job, mode, kafka.security, kafka.prefix, keys, by)
            except Exception as error:
                self._record(replace(asked, failed=f"{error}"))
                raise
        finally:
            self._lock.release()

    def _word(self, job: str) -> Control | None:
        """The newest word on the job's mode, as the pages show it."""
        newest = None
        for record in read_records(self._kafka, "control"):
            if record.key == mode_key(job):
                try:
                    self._signer.check_record(record, job)
                    newest = decode(Control, record.value)
                except MessageError:
                    continue
        return newest


def _described(job: str, word: Control | None) -> str:
    if word is None:
        return f"The mode that this page showed for {job} is set no longer. Nothing was changed: look again."
    who = f" by {word.by}" if word.by else ""
    return f"{job} was told to {word.mode}{who} since this page was drawn. Nothing was changed: look again."
