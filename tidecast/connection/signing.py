"""Signatures of the messages that an agent obeys: HMAC-SHA256 with a key of the job, in a header of the record."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidecast.fields import MessageError

HEADER = "tidecast-signature"
LEAST = 32  # characters of a key: with 16 bytes in hexadecimal digits nobody guesses it


@dataclass(frozen=True)
class SigningKeys:
    """The signing keys of one job, which are secret: the first one signs, each is accepted.

    Two at once are for a change of the key: whoever reads takes both before whoever writes signs with the new one.
    """

    keys: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def read(cls, text: str) -> SigningKeys:
        """Read one key, or several separated by commas; blanks around them do not count.

        Raises:
            ValueError: one has fewer than LEAST (32) characters; the message does not repeat it.
        """
        keys = [key.strip() for key in text.split(",")]
        if short := [len(key) for key in keys if len(key) < LEAST]:
            raise ValueError(
                f"a signing key of {short[0]} characters: at least {LEAST} are expected; `openssl rand -hex 32` makes "
                "one. Several are separated by commas."
            )
        return cls(tuple(key.encode() for key in keys))

    def sign(self, topic: str, name: str, value: bytes) -> bytes:
        """Return the value of the header HEADER of a record: 64 hexadecimal digits, made with the first key.

        Args:
            topic: with the prefix, so that what was signed for one deployment says nothing to another.
            name: the record's key.
            value: the record's value.
        """
        return _signature(self.keys[0], topic, name, value)

    def check(self, topic: str, name: str, value: bytes | None, headers: Mapping[str, bytes]) -> None:
        """Refuse a record that none of the keys has signed; the arguments are as in `sign`, `headers` the record's.

        Raises:
            MessageError: it has no signature, or another one.
        """
        given = headers.get(HEADER)
        if given is None:
            raise MessageError(
                f"no signature (header {HEADER}), and this job obeys signed messages alone; who sends it needs the "
                "job's key (kafka.signing_keys)"
            )
        if not any(hmac.compare_digest(given, _signature(key, topic, name, value or b"")) for key in self.keys):
            raise MessageError("the signature is not of this job's key, or not of this record; see kafka.signing_keys")


def _signature(key: bytes, topic: str, name: str, value: bytes) -> bytes:
    # No topic and no key of ours holds a null character, so that no two records are signed alike.
    return hmac.digest(key, b"\0".join((topic.encode(), name.encode(), value)), "sha256").hex().encode()
