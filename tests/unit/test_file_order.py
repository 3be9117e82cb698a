"""What of the tests runs first and what is one worker's."""

from configs.settings import ROOT
from tests.order import ORDER, room, turn, unit_of_work

TESTS = ROOT / "tests"
WITH_SESSION = TESTS / "integration" / "test_same_figures.py"
WITHOUT = TESTS / "integration" / "test_topics.py"


def test_a_test_of_integration_that_takes_the_session_goes_behind_the_ring():
    assert [room(file) for file in (WITH_SESSION, WITHOUT)] == ["behind the ring", "integration"]
    files = [TESTS / "unit" / "test_layout.py", WITHOUT, TESTS / "spark" / "test_lake.py", WITH_SESSION]
    files.append(TESTS / "ring" / "test_ring.py")
    assert sorted(files, key=turn) == [files[n] for n in (4, 3, 2, 1, 0)]


def test_each_chain_is_one_workers_and_any_other_file_by_itself():
    named = {file: str(file.relative_to(ROOT)) for file in TESTS.rglob("test_*.py")}
    units = {file: unit_of_work(name) for file, name in named.items()}
    assert units[WITH_SESSION] == units[TESTS / "ring" / "test_ring.py"] == "ring"
    assert units[TESTS / "spark" / "test_lake.py"] == units[TESTS / "spark" / "test_gate.py"] == "spark"
    assert units[WITHOUT] == "tests/integration/test_topics.py"
    assert {room(file) for file in named} == set(ORDER)
