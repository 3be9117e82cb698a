"""Reading processes beside a writing one: order, cuts, sets, a file that grows or is begun anew."""

import itertools
import random
import shutil
import time
from bisect import bisect_left

import pytest

from pipelines.store import Reader, Store
from pipelines.store.reading.reader import LOOK_NS
from tests.fakes.store_process import ENOUGH, ROOMY, SET, StoreProcess, in_time
from tests.fakes.waiting import wait_until

pytestmark = pytest.mark.study

READER = "Reader.open(folder)"


def disorder(puts, gets):
    """Why a history of one key is not linearizable, None if it is (seed section 9.3).

    `puts` are (start, end, version) by one writer, versions rising; `gets` the same with the version read, -1 for none.
    """
    ends, starts = [end for _, end, _ in puts], [start for start, _, _ in puts]
    for start, end, version in gets:
        done, begun = bisect_left(ends, start), bisect_left(starts, end)
        if version < (puts[done - 1][2] if done else -1):
            return f"get [{start}, {end}] gave {version} after a newer put had ended"
        if version > (puts[begun - 1][2] if begun else -1):
            return f"get [{start}, {end}] gave {version} before its put began"
    by_end, newest, ended = sorted(gets, key=lambda get: get[1]), -1, 0
    for start, end, version in sorted(gets):
        while by_end[ended][1] < start:
            newest = max(newest, by_end[ended][2])
            ended += 1
        if version < newest:
            return f"get [{start}, {end}] gave {version} after an earlier one gave {newest}"
    return None


TWO_PUTS = [(0, 2, 1), (3, 5, 2)]


@pytest.mark.parametrize(
    ("gets", "good"),
    [
        ([(4, 6, 1)], True),
        ([(4, 6, 2)], True),
        ([(6, 7, 1)], False),
        ([(4, 4.5, 2), (4.6, 4.8, 1)], False),
        ([(2.5, 2.8, 2)], False),
        ([(1, 1.5, -1)], True),
        ([(2.2, 2.8, -1)], False),
    ],
)
def test_the_judge_of_order_by_hand(gets, good):
    assert (disorder(TWO_PUTS, gets) is None) == good


@pytest.mark.sized(1, 67)
def test_the_judge_of_order_agrees_with_trying_all_orders(seed):
    draw = random.Random(5 + seed)
    verdicts = set()
    for _ in range(300):
        times = draw.sample(range(100), 10)
        at = sorted(times[:4])
        puts = [(at[0], at[1], 1), (at[2], at[3], 2)]
        gets = [(*sorted(times[i : i + 2]), draw.choice([-1, 1, 2])) for i in (4, 6, 8)]
        verdict = disorder(puts, gets) is None
        verdicts.add(verdict)
        assert verdict == some_order_explains(puts, gets)
    assert verdicts == {True, False}


def some_order_explains(puts, gets):
    calls = [(*put, True) for put in puts] + [(*get, False) for get in gets]
    for order in itertools.permutations(calls):
        if any(later[1] < earlier[0] for earlier, later in itertools.combinations(order, 2)):
            continue
        present = -1
        for _, _, version, writes in order:
            if writes:
                present = version
            elif version != present:
                break
        else:
            return True
    return False


def test_real_processes_read_in_a_linear_order(tmp_path):
    with StoreProcess(ROOMY, tmp_path) as writer, StoreProcess(READER, tmp_path) as reader:
        writer.start("put_log(store, folder)")
        gets, puts = reader.do("get_log(store, folder, 500)"), writer.answer()
    assert len({version for _, _, version in gets}) >= 500, "the reader ran beside the writer"
    assert disorder(puts, gets) is None
    swapped = [(start, end, version - 40) for start, end, version in gets]
    assert disorder(puts, swapped) is not None


@pytest.mark.sized(1, 334)
def test_a_snapshot_of_a_set_is_never_torn(tmp_path, seed):
    with StoreProcess(ROOMY, tmp_path) as writer:
        assert writer.do(f"store.declare('/model/j', {SET})") is None
        writer.start("swap(store, folder)")
        with StoreProcess(READER, tmp_path) as reader:
            apart, torn_apart = reader.do("torn(store, 10, True)")
            assert torn_apart == 10, "the check can see a torn read"
            reads, torn = reader.do(f"torn(store, {max(3000, apart)}, False)")
        (tmp_path / ENOUGH).touch()
        assert writer.answer() >= torn_apart
    assert (torn, reads) == (0, max(3000, apart))


def test_a_snapshot_over_both_environments_is_one_cut(tmp_path):
    """The writer puts /hot v, then /durable v, then both v + 1: a cut never shows /durable ahead, or behind by two."""
    seen = set()
    with StoreProcess(ROOMY, tmp_path) as writer, Reader.open(tmp_path) as reader:
        writer.start("alternate(store, folder)")
        for _ in in_time("100 cuts"):
            cut = reader.snapshot(["/hot", "/durable"])
            hot, durable = (-1 if record is None else record.version for record in cut.values())
            assert durable <= hot <= durable + 1
            ts, safe = reader.frontier()
            assert reader.snapshot(["/hot", "/durable"], ts) == reader.snapshot(["/hot", "/durable"], ts)
            assert safe <= ts
            seen.add(durable)
            if len(seen) == 100:
                break
        (tmp_path / ENOUGH).touch()
        writer.answer()


def test_an_answer_at_the_frontier_never_changes(tmp_path):
    with StoreProcess(ROOMY, tmp_path) as writer, Reader.open(tmp_path) as reader:
        writer.start("put_log(store, folder)")
        answers = {}
        for _ in in_time("50 answers"):
            ts, _ = reader.frontier()
            record = reader.get_at_time("/a/x", ts)
            assert answers.setdefault(ts, record) == record
            if len(answers) == 50:
                break
        (tmp_path / ENOUGH).touch()
        writer.answer()
        assert {ts: reader.get_at_time("/a/x", ts) for ts in answers} == answers


def test_a_reader_follows_a_file_that_outgrows_its_map(tmp_path):
    with StoreProcess("Store.open(folder, map_bytes=1 << 18)", tmp_path) as small:
        small.do("store.put('/a/x', b'1', 1)")
    with Reader.open(tmp_path) as reader:
        assert reader.get("/a/x").version == 1
        with StoreProcess(ROOMY, tmp_path) as large:
            large.do("[store.put('/a/x', bytes(100_000), v) for v in range(2, 60)] and None")
            assert len(reader.history("/a/x")) == 59
            assert len(reader.get("/a/x").value) == 100_000


def test_a_reader_finds_the_hot_environment_that_was_begun_anew(tmp_path):
    with Store.open(tmp_path) as store:
        store.put("/a/x", b"old", 1)
        store.put("/a/d", b"old", 1, "persistent")
    with Reader.open(tmp_path) as reader:
        assert reader.get("/a/x").value == b"old"
        (tmp_path / "hot").rename(tmp_path / "gone")
        with StoreProcess(ROOMY, tmp_path) as writer:
            writer.do("store.put('/a/x', b'new', 7)")
            wait_until(lambda: reader.get("/a/x").value != b"old", "the new file")
            assert reader.get("/a/x").version == 7
            assert {key: record.value for key, record in reader.snapshot(["/a/x", "/a/d"]).items()} == {
                "/a/x": b"new",
                "/a/d": b"old",
            }
            assert reader.low() > 0


def test_a_dead_reader_pins_nothing_for_long(tmp_path):
    with Store.open(tmp_path) as store:
        store.put("/a/x", b"1", 1)
        with StoreProcess(READER, tmp_path) as reader:
            reader.do("globals().update(held=store.hot.begin_read())")
            reader.kill()
        assert store.clear_dead_readers() == 1
        assert store.clear_dead_readers() == 0


def test_a_reader_sees_a_store_that_was_removed_and_made_anew(tmp_path):
    folder = tmp_path / "store"
    with Store.open(folder) as store:
        store.put("/pool/a", b"old", 1, kind="persistent")
        reader = StoreProcess(READER, folder)
        assert reader.do("store.get('/pool/a').value") == b"old"
    shutil.rmtree(folder)
    with reader, Store.open(folder) as store:
        store.put("/pool/a", b"new", 2, kind="persistent")
        time.sleep(1.5 * LOOK_NS / 1e9)  # it looks now and then
        asked = "(store.frontier()[0], store.get('/pool/a').value, store.get_meta('said'))"
        assert reader.do(asked) == (store.frontier()[0], b"new", None)  # once it looked for a cut without end


def test_a_reader_that_is_asked_for_meta_alone_sees_a_file_begun_anew(tmp_path):
    with Store.open(tmp_path) as store:
        store.set_meta("status", b"old")
    with StoreProcess(READER, tmp_path) as reader:
        assert reader.do("store.get_meta('status')") == b"old"
        (tmp_path / "hot").rename(tmp_path / "hot.damaged-1")
        with Store.open(tmp_path) as store:
            store.set_meta("status", b"new")
            time.sleep(1.5 * LOOK_NS / 1e9)  # it looks now and then
            assert reader.do("store.get_meta('status')") == b"new"
