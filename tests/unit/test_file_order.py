"""What of the tests runs first and what is one worker's."""

from configs.settings import ROOT
from tests.order import ORDER, room, turn, unit_of_work

TESTS = ROOT / "tests"
WITH_SESSION = TESTS / "integration" / "test_same_figures.py"
WITHOUT = TESTS / "integration" / "test_topics.py"
JUDGES = TESTS / "spark" / "test_gate.py"


def test_what_takes_the_session_in_integration_and_what_judges_the_ingest_go_behind_the_ring():
    rooms = ["behind the ring", "integration", "behind the ring"]
    assert [room(file) for file in (WITH_SESSION, WITHOUT, JUDGES)] == rooms
    files = [TESTS / "unit" / "test_layout.py", WITHOUT, TESTS / "spark" / "test_lake.py", WITH_SESSION]
    files.append(TESTS / "ring" / "test_ring.py")
    assert sorted(files, key=turn) == [files[n] for n in (4, 3, 2, 1, 0)]


def test_each_chain_is_one_workers_and_any_other_file_by_itself():
    named = {file: str(file.relative_to(ROOT)) for file in TESTS.rglob("test_*.py")}
    units = {file: unit_of_work(name) for file, name in named.items()}
    assert units[WITH_SESSION] == units[JUDGES] == units[TESTS / "ring" / "test_ring.py"] == "ring"
    assert units[TESTS / "spark" / "test_lake.py"] == units[TESTS / "spark" / "test_merge_sink.py"] == "spark"
    assert units[WITHOUT] == "tests/integration/test_topics.py"
    networks = {file.name for file, unit in units.items() if unit == "networks"}
    assert networks >= {"test_registry.py", "test_training.py", "test_transfer_target.py", "test_older_archives.py"}
    assert {room(file) for file in named} == set(ORDER)
