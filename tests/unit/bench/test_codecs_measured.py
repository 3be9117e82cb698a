"""What codecs come to on drawn and on given records; speeds are only asked to be there."""

import itertools
import json
import math

import pytest
from typer.testing import CliRunner

from models.contract.slow.codecs import PLAIN, MeasuredCodec
from pipelines.bench.codecs.measure import measure_codecs, price_codecs
from pipelines.bench.codecs.samples import DRAWN, SampleError, read_lines
from pipelines.cli.app import app
from pipelines.jobs.events import decode_event
from pipelines.kafka.compression import batches_of
from tidecast.messages import Forecast, MetricSample
from tidecast.wire import decode


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_records_are_as_many_as_asked_for_and_the_same_by_seed(name):
    one, again, other = (list(DRAWN[name](300, seed)) for seed in (1, 1, 2))
    assert len(one) == 300 and one == again != other


def test_drawn_records_are_valid_on_their_topics():
    for raw in DRAWN["events"](50, 0):
        assert decode_event(raw, 2e9).key.startswith("key-")
    for name, kind in (("metrics", MetricSample), ("forecasts", Forecast)):
        for raw in DRAWN[name](50, 0):
            assert decode(kind, raw).job == "orders"


def test_batches_hold_all_records_in_order_up_to_their_size():
    records = [bytes([n]) * size for n, size in enumerate((5, 5, 1, 20, 3, 7, 1))]
    assert list(map(len, batches_of(records, 10))) == [10, 1, 20, 10, 1]
    assert b"".join(batches_of(records, 10)) == b"".join(records)
    assert batches_of([], 10) == []


def test_codecs_are_measured_and_priced_on_every_topic():
    repeated, random = [b"the same again and again, " * 4] * 200, [bytes((n * 7919 >> 3 & 255,)) for n in range(3000)]
    told = []
    found = measure_codecs({"same": repeated, "mixed": random}, 4096, quick=True, report_progress=told.append)
    for topic, records in (("same", repeated), ("mixed", random)):
        its = found["topics"][topic]
        assert its["records"] == len(records) and its["bytes"] == sum(map(len, records))
        assert all(one["encode_mbps"] > 0 and one["decode_mbps"] > 0 for one in its["codecs"].values())
    ratios = {name: one["ratio"] for name, one in found["topics"]["same"]["codecs"].items()}
    assert max(ratios.values()) < 0.1 and ratios["zstd-9"] <= ratios["zstd-1"]
    assert found["topics"]["mixed"]["entropy_bits"] > found["topics"]["same"]["entropy_bits"]
    assert sum("ratio" in line for line in told) == 8


def test_larger_batches_are_smaller_in_all():
    records = list(DRAWN["metrics"](400, 3))
    small, large = (
        measure_codecs({"metrics": records}, size, quick=True, report_progress=lambda _: None)
        for size in (2000, 100_000)
    )
    for name, one in large["topics"]["metrics"]["codecs"].items():
        assert one["ratio"] < small["topics"]["metrics"]["codecs"][name]["ratio"]


def test_prices_follow_what_is_busy():
    """The plan's worked example, of 125 MB/s."""
    codecs = {"none": PLAIN, "lz4": MeasuredCodec(0.5, 5e8, 2e9), "zstd-1": MeasuredCodec(0.35, 3e8, 9e8)}
    costs = price_codecs(codecs)
    assert [costs[when]["best"] for when in ("idle", "busy network", "busy cores")] == ["lz4", "zstd-1", "none"]
    assert costs["idle"]["lz4"] == pytest.approx(0.65) and costs["busy network"]["zstd-1"] == pytest.approx(1.5644)
    assert not math.isinf(costs["idle"]["none"])


def test_the_command_takes_a_users_own_records(tmp_path):
    sample, figure = tmp_path / "orders.json", tmp_path / "figure.json"
    sample.write_text("\n".join(json.dumps({"id": n, "total": n % 7}) for n in range(500)) + "\n\n")
    shown = CliRunner().invoke(app, ["bench", "codecs", "--quick", "--sample", str(sample), "--json", str(figure)])
    assert shown.exit_code == 0, shown.output
    assert [*json.loads(figure.read_text())["data"]["topics"]] == ["orders"] and "orders: 500 records" in shown.output
    assert len(read_lines(sample)) == 500
    sample.write_text("\n")
    with pytest.raises(SampleError, match="one per line"):
        read_lines(sample)


def test_events_of_the_generator_come_in_order_of_arrival():
    seqs = [decode_event(raw, 2e9).seq for raw in itertools.islice(DRAWN["events"](100, 5), 20)]
    assert seqs == list(range(20))
