"""Why a record of any topic that is ingested is refused, without Spark: by the reader that the gate asks."""

import pytest

from pipelines.ingest.columns import KINDS
from pipelines.ingest.parse import seconds_ahead
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


@pytest.mark.parametrize("topic", KINDS)
def test_by_how_much_a_record_is_ahead_is_told_where_that_alone_is_wrong_with_it(topic):
    kind, key = KINDS[topic], GOOD[topic]["hash" if topic == "contracts" else "job"]
    assert seconds_ahead(kind, key, record(topic, wall_time=NOW + 301), NOW) == 301
    assert seconds_ahead(kind, "another", record(topic, wall_time=NOW + 301), NOW) is None
    assert seconds_ahead(kind, key, record(topic, wall_time=NOW + 301, time_scale=-1.0), NOW) is None


def test_a_server_that_was_begun_ahead_is_ahead_too():
    forecast = record("forecasts", epoch=round((NOW + 400) * 1000))
    assert seconds_ahead(KINDS["forecasts"], GOOD["forecasts"]["job"], forecast, NOW) == 400
