"""What `tidecast bench promise` draws of its loads, by hashes of their names."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

SEEDS, FEW_LEADS = 2, 5
"""Draws of the arrivals; a budget that lasts fewer lead times is shown and not judged."""
WRONG = 3.0
"""How far the lead time that a contract states is from the true one, at most: policies have to learn it."""


def label_of(name: str) -> str:
    """Return what a load is called: a file by its own name, wherever it lies."""
    return Path(name).name


def believed_lead_s(name: str, lead_s: float) -> float:
    """Return the lead time that a load's contract states: up to `WRONG` times or a `WRONG`th of the true one, seconds.

    Drawn by a hash of the load's name, uniform in the logarithm; two digits.
    """
    drawn = int.from_bytes(sha256(f"lead of {label_of(name)}".encode()).digest()[:4], "big") / 2**32
    return float(f"{lead_s * WRONG ** (2 * drawn - 1):.2g}")


def half_of(name: str) -> int:
    """Return the half of the loads, 1 or 2, that a load belongs to, drawn by a hash of its name."""
    return 1 + sha256(label_of(name).encode()).digest()[0] % 2
