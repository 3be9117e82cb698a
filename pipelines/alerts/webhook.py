"""Posting alerts to a webhook, beside everything else: one that is down, slow or refuses holds nothing up."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx

from models.alerts.message import write_message
from models.alerts.standing import MOST, Key, Notice, State, advance, due, next_try_s, told

WAIT_S = 10.0
"""Seconds that a connection, or a part of an answer, may take."""
GIVE_UP_S = 60.0
"""Seconds after which a message counts as not taken, whatever its connection does."""
Post = Callable[[str, Mapping[str, Any]], str]
"""Posts JSON values to an address; returns what went wrong, without the address, "" where it was taken."""


def host_of(webhook: str) -> str:
    """Return the host of an address: what may be said of it, as user, path and query are a secret."""
    return urlsplit(webhook).hostname or ""


def post(webhook: str, message: Mapping[str, Any]) -> str:
    """Post a message; returns what went wrong, without the address, or "" where the webhook took it (status 2xx).

    Follows no redirect, which could lead elsewhere, and reads nothing of an answer but its head.
    """
    for name in ("httpx", "httpcore"):  # they log addresses
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        with httpx.stream("POST", webhook, json=message, timeout=WAIT_S, follow_redirects=False) as answer:
            if answer.is_success:
                return ""
            meaning = httpx.codes.get_reason_phrase(answer.status_code)  # the standard's word, not the server's
            said = f"it answered {answer.status_code} {meaning}".rstrip()
            return f"{said}, a redirect" if answer.is_redirect else said
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
        return type(error).__name__  # its text may hold the address


class Channel:
    """One webhook: which alerts stand for it, and the message that is on its way, at most one."""

    def __init__(self, webhook: str, state: State, send: Post = post) -> None:
        """Remember where to post.

        Args:
            webhook: the address; of it only the host is ever said.
            state: which alerts stand, and what was told of them.
            send: posts a message; called in a thread of its own.
        """
        self.host, self.state, self.failed = host_of(webhook), dict(state), 0
        self._webhook, self._post = webhook, send
        self._sent: _Sent | None = None
        self._in_turn, self._next_at = 0, 0.0

    def look(self, held: Mapping[Key, float], now: float, repeat_s: float, ahead_s: float = 0.0) -> str | None:
        """Note what holds, see what became of the message on its way, and send the next if one is due; never waits.

        Args:
            held: alerts for this webhook whose condition holds, with their values.
            now: seconds of a clock that nobody sets.
            repeat_s: seconds after which an alert that stands is told again for the first time.
            ahead_s: seconds by which wall time is ahead of `now`.

        Returns:
            What is wrong with the webhook, "" once it has taken a message; None where nothing is known anew.
        """
        self.state = advance(self.state, held, now)
        said = None
        if self._sent is not None:
            if (outcome := self._sent.outcome(now)) is None:
                return None
            said = self._finish(self._sent, outcome, now)
        notices = due(self.state, now, repeat_s)[:MOST] if now >= self._next_at else []
        if notices:
            self._sent = _Sent(self._post, self._webhook, notices, now, ahead_s)
        return said

    def _finish(self, sent: _Sent, outcome: str, now: float) -> str:
        self._sent = None
        if outcome:
            self.failed, self._in_turn = self.failed + 1, self._in_turn + 1
        else:
            self.state, self._in_turn = told(self.state, sent.notices, sent.at), 0
        self._next_at = now + next_try_s(self._in_turn)
        return outcome and f"{outcome}. Its alerts wait and are sent again; the rest goes on."


class _Sent:
    """A message on its way, in a thread that ends with the process."""

    def __init__(self, send: Post, webhook: str, notices: Sequence[Notice], at: float, ahead_s: float) -> None:
        self.notices, self.at = notices, at
        self._outcome: str | None = None
        shown = [one._replace(standing=one.standing.moved(ahead_s)) for one in notices]

        def run() -> None:
            self._outcome = send(webhook, write_message(shown, at + ahead_s))

        threading.Thread(target=run, name="webhook", daemon=True).start()

    def outcome(self, now: float) -> str | None:
        """What went wrong, "" for nothing; None while it is on its way."""
        if self._outcome is None and now - self.at > GIVE_UP_S:
            return f"it has not answered for {GIVE_UP_S:.0f} s"
        return self._outcome
