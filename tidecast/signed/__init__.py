"""Signed records on Spark: a transformation that is written once and gives the same in batch, stream and replay."""

from tidecast.signed.columns import SignedError
from tidecast.signed.frame import net
from tidecast.signed.progress import late_dropped, negative_keys
from tidecast.signed.reductions import Reduction, count, max_of, mean_of, min_of, quantile_of, sum_of, top
from tidecast.signed.signed_frame import SignedFrame, signed
from tidecast.signed.sink import upserts

__all__ = [
    "Reduction", "SignedError", "SignedFrame", "count", "late_dropped", "max_of", "mean_of", "min_of", "negative_keys",
    "net", "quantile_of", "signed", "sum_of", "top", "upserts",
]  # fmt: skip
