import json

from configs.sections import Kafka
from pipelines.kafka.broker import Record
from pipelines.report.recorded import dump as module
from tidecast.messages import MetricSample, encode


def sample(wall):
    return encode(MetricSample("j", "interval", time=0.0, wall_time=wall, arrival_rps=1.0))


def test_only_this_runs_readable_records_are_written(tmp_path, monkeypatch):
    values = {"metrics": [sample(99.0), sample(100.0), b"{broken", sample(101.0)]}

    def read_all(kafka, topic):
        return [Record(topic, 0, i, "j", value, 0.0) for i, value in enumerate(values.get(topic, []))]

    monkeypatch.setattr(module, "read_all", read_all)
    module.dump(Kafka(bootstrap="nowhere:1"), tmp_path / "run", since_wall=100.0)
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["wall_time"] for line in lines] == [100.0, 101.0]
    assert all((tmp_path / "run" / f"{topic}.jsonl").exists() for topic in module.DUMPED)
