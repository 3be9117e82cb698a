"""Approximate results of a plan, as large as their contract's limits ask for when the query starts.

In Spark a sketch's size is part of the plan, so it is chosen once and stays until the query starts again. A query
starts without pressure: what the contract's `controls.theta.min` says of a limit is used, a tenth of it at least. A
count with `once=True` keeps its limit as a share of all that was ever inserted, not of what retractions leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from configs.contract import Contract
from configs.errors import SettingsError

if TYPE_CHECKING:
    from tidecast.signed import Approximation


class Declaration(Protocol):
    """A kind of `tidecast.signed`'s approximate results, such as `partial(approx_distinct, "user")`."""

    def __call__(self, *, eps: float, pf: float) -> Approximation:
        """Return it with a largest error, as a share, and the probability that it is larger."""
        ...


def sized(contract: Contract, operator: str, declare: Declaration, expected: float) -> Approximation:
    """Return an approximate result whose bound keeps its contract's limit; as good as a tenth of it where that can be.

    Args:
        contract: of the job; its `error.<operator>` is the limit.
        operator: name of the result.
        declare: of what kind it is.
        expected: records of a window, above 0.

    Raises:
        SettingsError: there is no limit, or no sketch keeps it.
    """
    from tidecast.signed import SignedError

    stated = contract.backpressure
    if stated is None or operator not in stated.error:
        what = f"{contract.job}.yaml: backpressure.error.{operator} is not stated, and {operator} is approximate"
        raise SettingsError(f"{what}. State its eps_rel or eps_abs, and pf.")
    limit, why = stated.error[operator], ""
    for share in (stated.controls.theta.min, 1.0):
        try:
            return declare(eps=limit.allowed(share, expected), pf=limit.pf)
        except SignedError as error:
            why = f"{error}"
    raise SettingsError(f"{contract.job}.yaml: backpressure.error.{operator} cannot be kept: {why}. Allow more.")
