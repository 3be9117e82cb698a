"""Checks of the arguments of a put; each error says what was wrong and what would be right."""

from __future__ import annotations

import re

from pipelines.store.disk.errors import BadKey, BadTime, BadValue, BadVersion

KEY_BYTES = 480
"""LMDB takes 511; a parked upcall puts /dead before the key."""
VALUE_BYTES = 64 << 20
VERSION_MAX = (1 << 63) - 1
FUTURE_NS = 300 * 10**9
"""Event times further ahead of the clock than this come from a wrong clock (as in tidecast.messages)."""
_PATH = re.compile(r"(?:/[A-Za-z0-9][A-Za-z0-9._:@=+-]*)+")


def check_key(key: str) -> bytes:
    """Return a key as ASCII bytes, if it is a valid path such as `/sample/orders/all/60`.

    A path is one or more names, each after a `/`. A name begins with a letter or digit and goes on with letters, digits
    or any of `. _ : @ = + -`.

    Raises:
        BadKey: not a string, not such a path, or more than 480 characters.
    """
    if not isinstance(key, str) or not _PATH.fullmatch(key):
        raise BadKey(
            f"key {key!r:.120}: a path such as /sample/orders/all/1s is expected, of A-Z a-z 0-9 . _ : @ = + -"
        )
    if len(key) > KEY_BYTES:
        raise BadKey(f"key {key[:40]}... has {len(key)} characters; at most {KEY_BYTES} are taken. Shorten its names.")
    return key.encode()


def check_value(key: str, value: bytes) -> None:
    """Check that a value to be stored is `bytes` (no subclass) of at most 64 MiB; returns nothing.

    Args:
        key: named in the error's message only.
        value: to be checked.

    Raises:
        BadValue: it is of another type or longer.
    """
    if type(value) is not bytes:
        raise BadValue(f"{key}: a value of type {type(value).__name__}; bytes are expected")
    if len(value) > VALUE_BYTES:
        raise BadValue(f"{key}: {len(value)} bytes; at most {VALUE_BYTES} are taken. Store a reference instead.")


def check_version(key: str, version: int) -> None:
    """Check that a version is an int from 0 to 2^63 - 1; `key` is for the message.

    Raises:
        BadVersion: it is not.
    """
    if type(version) is not int or not 0 <= version <= VERSION_MAX:
        raise BadVersion(f"{key}: version {version!r:.60}; a whole number of 0 to {VERSION_MAX} is expected")


def check_time(what: str, t: int) -> None:
    """Check that `t` is an int from 0 to 2^63 - 1, read as ns since the epoch; `what` begins the message.

    Raises:
        BadTime: it is not.
    """
    if type(t) is not int or not 0 <= t <= VERSION_MAX:
        raise BadTime(f"{what}: time {t!r:.60}; nanoseconds since the epoch are expected (int, 0 to {VERSION_MAX})")


def check_event_time(key: str, event_time: int, now: int) -> None:
    """Check that an event time is at most 300 s ahead of the store's clock, however old it is; returns nothing.

    Args:
        key: named in the error's message only.
        event_time: ns since the epoch.
        now: the store's clock, ns since the epoch.

    Raises:
        BadTime: it lies further ahead, or is no int from 0 to 2^63 - 1.
    """
    check_time(key, event_time)
    if event_time > now + FUTURE_NS:
        ahead = (event_time - now) / 1e9
        raise BadTime(f"{key}: event time {event_time} lies {ahead:.0f} s ahead of the store. Set the sender's clock.")
