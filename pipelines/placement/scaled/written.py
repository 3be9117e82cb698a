"""Files for people that Tidecast writes, and goes on to write as long as nobody has edited them."""

from __future__ import annotations

import hashlib


def signed(head: str, body: str) -> str:
    """Return a text whose first line is `head` with the digest of the rest, `body`, by which an edit is seen."""
    return f"{head}{_digest(body)}\n{body}"


def is_as_written(text: str, head: str) -> bool:
    """Whether a text is as `signed` has made it with that head."""
    first, _, body = text.partition("\n")
    return first == f"{head}{_digest(body)}"


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:12]
