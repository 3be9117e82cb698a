"""What a store must do, in plain lists: the reference that the real one is driven against (seed section 9.1).

Per key a list of (version, ts, value), oldest first. Errors are answered by name, so that both sides compare as values.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

Row = tuple[int, int, bytes]


class StoreModel:
    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.frontier = 0
        self.low = 0
        self.seen: list[tuple[str, int]] = []

    def put_set(self, items: Mapping[str, bytes], version: int, clock: int) -> str:
        verdicts = {self._verdict(key, value, version) for key, value in items.items()}
        if len(verdicts) > 1 or verdicts == {"Conflict"}:
            return "Conflict"
        (verdict,) = verdicts
        if verdict == "applied":
            self.frontier = clock if clock > self.frontier else self.frontier + 1
            for key, value in items.items():
                self.rows.setdefault(key, []).append((version, self.frontier, value))
                self.seen.append((key, version))
        return verdict

    def _verdict(self, key: str, value: bytes, version: int) -> str:
        for stored, _, present in self.rows.get(key, []):
            if stored == version:
                return "duplicate" if present == value else "Conflict"
        newest = self.get(key)
        return "applied" if newest is None or version > newest[0] else "stale"

    def get(self, key: str, version: int | None = None) -> Row | None:
        wanted = [row for row in self.rows.get(key, []) if version in (None, row[0])]
        return wanted[-1] if wanted else None

    def get_at_time(self, key: str, t: int) -> Row | str | None:
        if t > self.frontier:
            return "NotStable"
        if t < self.low:
            return "Pruned"
        rows = self.rows.get(key, [])
        there = bisect_right([ts for _, ts, _ in rows], t)
        return rows[there - 1] if there else None

    def snapshot(self, keys: Sequence[str], t: int) -> dict[str, Row | None] | str:
        found = {key: self.get_at_time(key, t) for key in keys}
        refusals = [answer for answer in found.values() if isinstance(answer, str)]
        return refusals[0] if refusals else {key: row for key, row in found.items() if not isinstance(row, str)}

    def list_versions(self, key: str, lo: int = 0, hi: int = 1 << 62) -> list[tuple[int, int]]:
        return [(version, ts) for version, ts, _ in self.rows.get(key, []) if lo <= version <= hi]

    def prune(self, t: int) -> None:
        self.low = max(self.low, min(t, self.frontier))
        for key, rows in self.rows.items():
            behind = [row for row in rows if row[1] <= self.low]
            self.rows[key] = rows[max(0, len(behind) - 1) :]

    def tick(self, clock: int) -> None:
        """The idle writer moves the frontier."""
        self.frontier = max(self.frontier, clock)
