"""What a codec costs on an edge: entropy of a sample, and seconds at the prices of processor and network.

Unified batch-stream runtime paper, adaptive compression; prices, and how much cheaper another codec must be, are ours.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import NamedTuple

CHEAPER = 0.1
"""Share by which the best codec must be cheaper than the one in use."""


class MeasuredCodec(NamedTuple):
    """A codec on an edge's data.

    Attributes:
        ratio: bytes out per byte in.
        encode_bps, decode_bps: bytes/s; infinite for none.
    """

    ratio: float
    encode_bps: float
    decode_bps: float


PLAIN = MeasuredCodec(1.0, math.inf, math.inf)
"""No compression."""


def entropy_bits(sample: bytes) -> float:
    """Return the entropy of a sample's bytes, −Σ p·log2 p, bits per byte: no order-0 coder needs fewer; 0 if empty."""
    shares = [count / len(sample) for count in Counter(sample).values()]
    return -math.fsum(share * math.log2(share) for share in shares) if len(shares) > 1 else 0.0


def price(busy: float) -> float:
    """Return the price of a resource, 1 + 3·max(0, u − 0.5)/0.5: 1 while it is half idle, 4 where it is full."""
    return 1 + 3 * max(0.0, busy - 0.5) / 0.5


def codec_cost(codec: MeasuredCodec, size: float, bandwidth_bps: float, cpu_price: float, net_price: float) -> float:
    """Return the priced seconds that bytes cost on an edge: encoding, decoding and sending.

    Args:
        codec: measured on the edge's data.
        size: bytes before encoding.
        bandwidth_bps: of the network, bytes/s.
        cpu_price: of a second of a core.
        net_price: of a second of the network.
    """
    worked = cpu_price * (size / codec.encode_bps + size / codec.decode_bps)
    return worked + net_price * size * codec.ratio / bandwidth_bps
