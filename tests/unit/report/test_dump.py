import json
import time

from configs.sections import Kafka
from pipelines.kafka.broker import Record
from pipelines.report.recorded import dump as module
from tidecast.messages import MetricSample, encode


def sample(wall):
    return encode(MetricSample("j", "interval", time=0.0, wall_time=wall, arrival_rps=1.0))


def test_only_this_runs_readable_records_are_written(tmp_path, monkeypatch):
    ahead = sample(time.time() + 10**6)
    values = {"metrics": [sample(99.0), sample(100.0), b"{broken", ahead, sample(101.0)]}

    def read_all(kafka, topic):
        found = values.get(topic, [])
        return [Record(topic, 0, i, key, value, 0.0) for key in ("j", "another") for i, value in enumerate(found)]

    monkeypatch.setattr(module, "read_records", read_all)
    module.dump_topics(Kafka(bootstrap="nowhere:1"), tmp_path / "run", since_wall=100.0)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["wall_time"] for line in lines] == [100.0, 101.0]
    assert all((tmp_path / "run" / f"{topic}.jsonl").exists() for topic in module.DUMPED)
