"""Signed records on Spark: a transformation that is written once and gives the same in batch, stream and replay."""

from tidecast.signed.approximate.approximations import (
    Approximation,
    approx_count,
    approx_distinct,
    approx_quantile,
    sampled_count,
    sampled_mean,
    sampled_sum,
)
from tidecast.signed.approximate.frequency import frequency
from tidecast.signed.approximate.ledger import ledger
from tidecast.signed.columns import SignedError
from tidecast.signed.frame import net
from tidecast.signed.progress import late_dropped, negative_keys
from tidecast.signed.reductions import Reduction, count, max_of, mean_of, min_of, quantile_of, sum_of, top
from tidecast.signed.signed_frame import SignedFrame, signed
from tidecast.signed.sink import upserts

__all__ = [
    "Approximation", "Reduction", "SignedError", "SignedFrame", "approx_count", "approx_distinct", "approx_quantile",
    "count", "frequency", "late_dropped", "ledger", "max_of", "mean_of", "min_of", "negative_keys", "net",
    "quantile_of", "sampled_count", "sampled_mean", "sampled_sum", "signed", "sum_of", "top", "upserts",
]  # fmt: skip
