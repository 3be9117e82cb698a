import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.contract.slow.codecs import PLAIN, MeasuredCodec, codec_cost, entropy_bits, price

MB = 1e6
CODECS = {
    "none": PLAIN, "lz4": MeasuredCodec(0.5, 500 * MB, 2000 * MB), "zstd-1": MeasuredCodec(0.35, 300 * MB, 900 * MB),
    "zstd-9": MeasuredCodec(0.28, 60 * MB, 900 * MB),
}  # fmt: skip


def test_entropy_by_hand():
    assert entropy_bits(bytes([0] * 4 + [1] * 2 + [2, 3])) == pytest.approx(1.75)
    assert entropy_bits(bytes(range(256))) == pytest.approx(8)
    assert entropy_bits(b"") == entropy_bits(b"aaaa") == 0


@given(st.binary(max_size=300))
def test_entropy_is_at_most_that_of_as_many_letters(sample):
    assert 0 <= entropy_bits(sample) <= math.log2(max(len(set(sample)), 1)) + 1e-9


@pytest.mark.parametrize(
    ("cpu", "net", "costs", "best"),
    [
        (1, 1, (0.8, 0.65, 0.7244), "lz4"),
        (1, 4, (3.2, 1.85, 1.5644), "zstd-1"),
        (4, 1, (0.8, 1.4, 2.0578), "none"),
    ],
)
def test_costs_by_hand(cpu, net, costs, best):
    found = {name: codec_cost(codec, 100 * MB, 125 * MB, cpu, net) for name, codec in CODECS.items()}
    assert [found[name] for name in ("none", "lz4", "zstd-1")] == pytest.approx(costs, abs=5e-5)
    assert min(found, key=found.get) == best


def test_prices_rise_from_half():
    assert [price(busy) for busy in (0, 0.5, 0.75, 1)] == [1, 1, 2.5, 4]
