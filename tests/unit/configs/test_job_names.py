"""A name that would break a key, a path, SQL or a filter is refused wherever one enters."""

import pytest

from configs.contract import jobs_with_contract, load_contract, read_contracts
from configs.errors import SettingsError
from configs.settings import load
from pipelines.registry import Registry
from tidecast import attach
from tidecast.control import set_mode
from tidecast.fields import MessageError

BAD = pytest.mark.parametrize("name", ["", "a b", "o'clock", 'a"b', "a/b", "../a", "a\n", "x" * 65])


@BAD
def test_no_job_is_attached_under_it(name):
    with pytest.raises(MessageError, match="job="):
        attach(None, name)


@BAD
def test_no_word_is_sent_to_it(name):
    with pytest.raises(MessageError, match="job="):
        set_mode("nowhere:1", name, "observe")


@BAD
def test_no_settings_have_it(name):
    with pytest.raises(SettingsError, match="job"):
        load(job={"name": name})
    with pytest.raises(SettingsError, match="newcomer"):
        load(replay={"newcomer": {"job": name}})


@BAD
def test_no_model_is_looked_for_under_it(name):
    with pytest.raises(MessageError, match="job="):
        Registry.model_name(name)


def test_a_contract_under_it_is_refused_and_says_so(tmp_path):
    (tmp_path / "o'clock.yaml").write_text("job: o'clock\n")
    with pytest.raises(SettingsError, match="letters"):
        load_contract("o'clock", tmp_path)
    assert jobs_with_contract(tmp_path) == [] and "letters" in read_contracts(tmp_path)[1]["o'clock"]
