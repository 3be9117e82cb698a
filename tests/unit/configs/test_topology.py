"""Topologies' files: what is wrong in one is told with its line and a remedy."""

import pytest

from configs.errors import SettingsError
from configs.settings import ROOT
from configs.topology import load_topology

GOOD = """\
name: job
broker: east
sources:
  in: {rps: 100}
operators:
  parse: {of: [in], work_ms: 4}
  join:
    of: [parse]
    work_ms: 8
  count: {of: [join], work_ms: 2}
clusters:
  east: {cores: 8, round_trip_ms: {west: 20}}
  west: {cores: 4}
"""


def read(tmp_path, text, name="job"):
    (tmp_path / f"{name}.yaml").write_text(text)
    return load_topology(name, tmp_path)


def test_a_good_one_is_read_with_its_defaults(tmp_path):
    topology = read(tmp_path, GOOD)
    assert (topology.target_s, topology.hop.read_ms, topology.operators["join"].selectivity) == (10, 0.011, 1)
    assert [topology.round_trip_ms(*pair) for pair in (("east", "west"), ("west", "east"), ("west", "west"))] == [
        20,
        20,
        0,
    ]
    assert load_topology("adverts", ROOT / "configs" / "topologies").broker == "east"


@pytest.mark.parametrize(("old", "new", "said"), [
    ("of: [parse]", "of: [parze]", "line 8: operators.join.of.0='parze': no such source or operator. There are count"),
    ("of: [parse]", "of: [join]", "line 8: operators.join.of.0='join': an operator takes no records of its own"),
    ("of: [in]", "of: [count]", " is a cycle. Take one edge out."),
    ("rps: 100", "rps: -1", "line 4: sources.in.rps=-1: Input should be greater than or equal to 0."),
    ("work_ms: 8", "work_ms: 8\n    cluster: north", "line 10: operators.join.cluster='north': no such cluster"),
    ("work_ms: 8", "work_ms: 8\n    wrk: 1", "line 10: operators.join.wrk=1: no such key. Look for a misspelling"),
    ("broker: east", "broker: north", "line 2: broker='north': no such cluster. There are east, west."),
    ("name: job", "name: other", "line 1: name='other': the file's name and the job's must be one"),
    ("{west: 20}", "{north: 20}", "line 12: clusters.east.round_trip_ms.north: no other cluster"),
    (", round_trip_ms: {west: 20}", "", "clusters.east.round_trip_ms: the round trip to west is not stated"),
    ("{cores: 4}", "{cores: 4, round_trip_ms: {east: 1}}", "the round trip to west is stated twice. Delete one"),
    ("  in:", "  parse:", "operators.parse: a source has this name, too"),
    ("of: [parse]", "of: []", "line 8: operators.join.of"),
    ("  join:", "  top n:", "line 7: operators.top n: 1 to 64 letters, digits, dots, dashes or underscores, the first"),
    ("  join:", "  zählen:", "are expected of the query 'job.zählen' (10). Name the operator, or the job, otherwise."),
    ("  join:", f"  {'n' * 61}:", "'job.nnnnn"),
    ("  in:", "  new orders:", "line 4: sources.new orders: a source is a topic, whose name has 1 to 249 letters"),
    ("{cores: 4}", "{cores: 4, executor_cores: 5}", "executor_cores=5 of cores=4: no executor has room. State less"),
    ("broker:", "trigger_s: 600000\nbroker:", "line 2: trigger_s=600000: Input should be less than or equal to 86400."),
    ("broker:", "overhead_s: 300000\nbroker:", "line 2: overhead_s=300000: Input should be less than or equal to"),
    ("broker:", "target_s: 800000\nbroker:", "line 2: target_s=800000: Input should be less than or equal to 86400."),
    ("work_ms: 8", "work_ms: .inf", "line 9: operators.join.work_ms=inf: Input should be a finite number."),
    ("sources:\n  in: {rps: 100}\n", "", "sources: missing, and it has no default. State it."),
    ("name: job", "name: job\nname: job", "line 2: name is stated in line 1 already"),
])  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(tmp_path, old, new, said):
    with pytest.raises(SettingsError) as told:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert said in str(told.value) and str(told.value).startswith("job.yaml, line ")


def test_a_missing_file_and_one_that_is_none_are_told(tmp_path):
    with pytest.raises(SettingsError, match=r"topology 'none': there is no .*Known topologies: job\."):
        read(tmp_path, GOOD)
        load_topology("none", tmp_path)
    with pytest.raises(SettingsError, match=r"line 1: a list is not a mapping of keys to values"):
        read(tmp_path, "[a]")


def test_a_cycle_names_its_own_operators_only(tmp_path):
    text = GOOD.replace("of: [in]", "of: [join]").replace("  count:", "  after: {of: [count], work_ms: 1}\n  count:")
    with pytest.raises(SettingsError) as told:
        read(tmp_path, text)
    (line,) = str(told.value).splitlines()
    assert "is a cycle. Take one edge out" in line and "count" not in line and "after" not in line


def test_a_job_whose_name_no_job_may_have_is_told_once(tmp_path):
    with pytest.raises(SettingsError) as told:
        read(tmp_path, GOOD.replace("name: job", "name: my job"), "my job")
    (line,) = str(told.value).splitlines()
    assert line.startswith("my job.yaml, line 1: name='my job': 1 to 64 letters") and "Rename the file" in line
    assert "n" * 60 in read(tmp_path, GOOD.replace("join", "n" * 60)).operators


def test_a_job_that_was_begun_goes_on_with_an_operator_of_any_name_inside_a_query(tmp_path):
    text = GOOD.replace("join", "clean up")
    with pytest.raises(SettingsError, match=r"operators\.clean up: "):
        read(tmp_path, text)
    assert "clean up" in load_topology("job", tmp_path, begun=True).operators
