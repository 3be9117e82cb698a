"""`tidecast bench codecs`: ratio and speed of each codec on the records of each topic, and which is the cheapest.

Codecs are those of Arrow's C++ library: the same lz4 frames, zstd and gzip streams that Kafka's clients write, without
their framing of records. Speeds are of one core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from models.contract.slow.codecs import PLAIN, MeasuredCodec, codec_cost, entropy_bits, price
from pipelines.bench.codecs.samples import DRAWN
from pipelines.kafka.compression import BANDWIDTH_BPS, BATCH_BYTES, SAMPLE_BYTES, batches_of, measure_codec

CODECS: Mapping[str, tuple[str, int | None]] = {
    "lz4": ("lz4", None), "zstd-1": ("zstd", 1), "zstd-9": ("zstd", 9), "gzip": ("gzip", 6),
}  # fmt: skip
"""Name of the codec and its level; gzip is what Tidecast's own topics use today."""
BUSY = {"idle": (0.0, 0.0), "busy network": (0.0, 1.0), "busy cores": (1.0, 0.0)}
"""Busy shares of cores and network that prices are told for."""
LEAST_S, SEED = 0.1, 7


def measure_codecs(
    records: Mapping[str, Sequence[bytes]] | None = None, batch_bytes: int = BATCH_BYTES, quick: bool = False,
    report_progress: Callable[[str], None] = print,
) -> dict[str, Any]:  # fmt: skip
    """Measure every codec on every topic, and price it; takes half a minute, `quick` a few seconds.

    Args:
        records: values by topic; None: drawn ones of `events`, `metrics` and `forecasts`.
        batch_bytes: of a batch, which is compressed as one.
        quick: few records, measured shortly.
        report_progress: called with a line per topic and codec, and one per topic and price.

    Returns:
        By topic `bytes`, `records`, `entropy_bits` per byte, `codecs` (`ratio`, bytes out per byte in; `encode_mbps`,
        `decode_mbps`, 10⁶ bytes/s) and `costs` (priced seconds per 10⁸ bytes, by busy shares and codec; `best`).
    """
    if records is None:
        many = 500 if quick else 5000
        records = {name: list(draw(many, SEED)) for name, draw in DRAWN.items()}
    found: dict[str, Any] = {"batch_bytes": batch_bytes, "bandwidth_mbps": BANDWIDTH_BPS / 1e6, "topics": {}}
    for topic, values in records.items():
        batches = batches_of(values, batch_bytes)
        measured = {"none": PLAIN} | {
            name: measure_codec(kind, batches, level, 0.01 if quick else LEAST_S)
            for name, (kind, level) in CODECS.items()
        }
        size = sum(map(len, batches))
        entropy = entropy_bits(b"".join(batches)[:SAMPLE_BYTES])
        report_progress(f"{topic}: {len(values)} records, {size / 1e6:.2f} MB, entropy {entropy:.2f} bits a byte")
        for name in CODECS:
            one = measured[name]
            speeds = f"{one.encode_bps / 1e6:6.0f} MB/s in, {one.decode_bps / 1e6:6.0f} MB/s out"
            report_progress(f"  {name:<8}ratio {one.ratio:.3f}, {speeds}")
        costs = price_codecs(measured)
        for when, its in costs.items():
            report_progress(f"  {when}: {its['best']}")
        found["topics"][topic] = {
            "bytes": size, "records": len(values), "entropy_bits": round(entropy, 3), "costs": costs,
            "codecs": {
                name: {
                    "ratio": round(one.ratio, 4), "encode_mbps": round(one.encode_bps / 1e6, 1),
                    "decode_mbps": round(one.decode_bps / 1e6, 1),
                }
                for name, one in measured.items()
                if name != "none"
            },
        }  # fmt: skip
    return found


def price_codecs(measured: Mapping[str, MeasuredCodec]) -> dict[str, dict[str, Any]]:
    """Return the priced seconds of 10⁸ bytes by each codec, and the cheapest one, by busy shares of `BUSY`."""
    told: dict[str, dict[str, Any]] = {}
    for when, (cpu, net) in BUSY.items():
        costs = {
            name: codec_cost(one, 1e8, BANDWIDTH_BPS, price(cpu), price(net)) for name, one in measured.items()
        }  # fmt: skip
        told[when] = {name: round(cost, 4) for name, cost in costs.items()}
        told[when]["best"] = min(costs, key=lambda name: (costs[name], name))
    return told
