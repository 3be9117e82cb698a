"""Why a record of any topic that is ingested is refused, without Spark: by the reader that the gate asks."""

import pytest

from pipelines.ingest.columns import KINDS
from tests.fakes.records import GOOD, NOW, bad_records, record
from tidecast.messages import MessageError, decode_keyed


@pytest.mark.parametrize("topic", KINDS)
def test_every_bad_record_is_refused_with_its_reason_and_no_good_one(topic):
    key = GOOD[topic]["hash" if topic == "contracts" else "job"]
    for changes in ({}, {"wall_time": NOW + 299}, {"time": 1_413_950_400, "colour": "blue"}):
        assert decode_keyed(KINDS[topic], key, record(topic, **changes), NOW).job == GOOD[topic]["job"]
    for name, (value, word) in bad_records(topic).items():
        with pytest.raises(MessageError) as refused:
            decode_keyed(KINDS[topic], key, value, NOW)
        assert word in str(refused.value), name
