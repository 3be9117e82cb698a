"""The comparison a challenger must win before it may serve."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """Whether the challenger becomes champion, and why in words."""

    promoted: bool
    reason: str


def verdict(challenger: float, champion: float | None, naive: float, improvement: float = 0.0) -> Verdict:
    """Judge mean pinball losses (records/s) over the same held-out steps.

    The challenger must beat the champion by the share `improvement`, and must not be worse than the seasonal naive
    forecast. A loss that is not finite is never good enough; a champion without one is replaced by whatever is.

    Args:
        challenger: its loss.
        champion: the present champion's; None where none could be compared.
        naive: the seasonal naive forecast's.
        improvement: least share by which the champion's loss must be undercut.
    """
    if not math.isfinite(challenger):
        return Verdict(False, f"rejected: the challenger's loss is {challenger}")
    if math.isfinite(naive) and challenger > naive:
        return Verdict(False, f"rejected: loss {challenger:.3f}, worse than the seasonal naive forecast's {naive:.3f}")
    if champion is None or not math.isfinite(champion):
        return Verdict(True, f"promoted: loss {challenger:.3f}, and no champion to compare with")
    needed = champion * (1 - improvement)
    if challenger < needed:
        return Verdict(True, f"promoted: loss {challenger:.3f} under the champion's {champion:.3f}")
    asked = f" less {improvement:.1%}" if improvement else ""
    return Verdict(False, f"rejected: loss {challenger:.3f}, not under the champion's {champion:.3f}{asked}")
