import json
import time

import pytest

from configs.sections import Kafka
from pipelines.kafka.publisher import Publisher
from pipelines.report.recorded.dump import DUMPED, dump_topics
from tidecast.messages import MetricSample

pytestmark = pytest.mark.integration


def test_a_real_topic_is_dumped_in_order_without_what_came_before(empty_topics: Kafka, tmp_path):
    began = time.time()
    publisher = Publisher(empty_topics)
    for wall in (began - 60, began + 1, began + 2):
        publisher.send("metrics", "j", MetricSample("j", "interval", time=0.0, wall_time=wall, arrival_rps=1.0))
    publisher.send_bytes("metrics", b"j", b"\xff not a message")
    publisher.close()
    dump_topics(empty_topics, tmp_path, since_wall=began)
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["wall_time"] for line in lines] == [began + 1, began + 2]
    assert [(tmp_path / f"{topic}.jsonl").stat().st_size for topic in DUMPED if topic != "metrics"] == [0] * 6
