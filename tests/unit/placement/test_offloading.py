"""A query goes to another cluster when its own is too small for what is decided, and comes back."""

import math
import socket
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace

import pytest

from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.elastic.offload import offload_choice
from models.placement.plan.applications import applications_of
from models.placement.plan.measured import Block, Placement
from pipelines.kafka.signing import Signer
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.scaled import offloading
from pipelines.placement.scaled.offloading import EVERY_S, REST, Offloading
from pipelines.placement.watched_block import OffloadNote
from tidecast.connection.signing import HEADER
from tidecast.messages import Control, Decision, Heartbeat, encode

FILE = ROOT / "configs" / "topologies" / "served_adverts.yaml"
ADVERTS = load_topology("served_adverts", FILE.parent)
TWO = Placement((
    Block(("parse", "views", "project"), "west", 1, 0.2, 3.0), Block(("join", "count"), "west", 1, 0.4, 3.0),
), 1.2, 6.0, True)  # fmt: skip
BEGAN = 1e9
HOME = [("west", 1), ("west", 1)]
INPUTS = {"arrival_rps": 55.0, "forecast_rps": None, "per_record_s": 0.016, "overhead_s": 0.5}


def decision(executors, inputs=INPUTS, mode="act"):
    return Decision("1", "served_adverts.join", 1e9, 1e9, 1.0, mode, "mpc", executors, "", ["up"], inputs, {})


class Record:
    """As a `Follower` gives them."""

    def __init__(self, message, signer=None):
        known = {Decision: "decisions", Control: "control"}
        self.topic, self.key = known.get(type(message), "heartbeats"), message.job
        self.value = encode(message)
        signed = signer and signer.sign(self.topic, self.key, self.value, message.job)
        self.headers = {HEADER: signed} if signed else {}


class Told:
    """A job's folder, and looks at decisions that are told by hand."""

    def __init__(self, path, monkeypatch, file=FILE, placement=TWO, **kafka):
        self.signer = None
        self.now, self.coming, self.said, self.set_by_s = BEGAN, [], [], 0.0
        self.folder = JobFolder(path)
        self.folder.begin(file, placement)
        for block in applications_of(self.folder.topology(), placement):
            self.folder.begin_epoch(block).note_scaled(block.name == "served_adverts.join")
        monkeypatch.setattr(offloading, "time", self)
        self.control = []
        followed = {"decisions": self, "control": SimpleNamespace(poll=self.poll_control)}
        monkeypatch.setattr(offloading, "Follower", lambda kafka, topics, **how: followed[topics[0]])
        self.looker = Offloading(load(kafka=kafka), self.folder, self.said.append)

    def monotonic(self):
        return self.now

    def time(self):
        return self.now + self.set_by_s

    def seek_to_time(self, wall_time):
        self.sought = wall_time

    def poll(self, wait_s):
        at = {"time": self.time(), "wall_time": self.time()}
        found, self.coming = [Record(replace(one, **at), self.signer) for one in self.coming], []
        return found

    def poll_control(self, wait_s):
        found, self.control = [Record(one, self.signer) for one in self.control], []
        return found

    def look(self, *messages, after_s=EVERY_S):
        self.now += after_s
        self.coming = list(messages)
        self.looker.step()
        return [(block.cluster, block.executors) for block in self.folder.wanted().blocks]


@pytest.fixture
def told(tmp_path, monkeypatch):
    return Told(tmp_path / "job", monkeypatch)


def beat(told):
    return Heartbeat("served_adverts.join", "autoscaler", told.now, told.now, 1.0, "1")


def test_it_goes_where_three_looks_agree_that_its_own_cluster_has_no_room(told):
    assert told.look(decision(2)) == HOME  # west has two cores, of which one is the other's
    assert told.look(beat(told)) == HOME
    assert told.look(beat(told)) == [("west", 1), ("east", 2)]
    assert told.said == ["served_adverts.join: wanted on east, as west has no room for what it needs"]
    assert told.folder.offloaded() == {"served_adverts.join": OffloadNote("west", "east", told.now)}


def test_what_nothing_confirms_and_what_has_room_moves_nothing(told):
    assert told.look(decision(2)) == told.look() == told.look() == told.look() == HOME
    told.look(beat(told))
    assert told.look(beat(told)) == HOME  # what agreed before the silence counts no more
    for _ in range(5):
        assert told.look(decision(1)) == HOME
        assert told.look(decision(2, inputs={})) == HOME
        assert told.look(decision(2, mode="observe")) == HOME
        assert told.look(decision(2, inputs={**INPUTS, "arrival_rps": "55", "per_record_s": None})) == HOME
    assert told.said == []


def test_a_query_that_its_agent_does_not_scale_stays(told):
    told.folder.newest("served_adverts.join").note_scaled(False)
    for _ in range(5):
        assert told.look(decision(2)) == HOME
    told.folder.newest("served_adverts.join").note_scaled(True)
    told.control = [Control("served_adverts.join", 1e9, "freeze")]
    for _ in range(5):
        assert told.look(decision(2)) == HOME
    told.control = [Control("served_adverts.join", 1e9, "act")]
    for _ in range(3):
        found = told.look(decision(2))
    assert found[1][0] == "east"


def test_of_a_query_with_a_key_nothing_counts_that_is_not_signed(tmp_path, monkeypatch):
    file = tmp_path / "keys.yaml"
    file.write_text(f"served_adverts.join: {'k' * 32}")
    told = Told(tmp_path / "job", monkeypatch, signing_keys=file)
    for _ in range(4):
        assert told.look(decision(2)) == HOME
    told.control = [Control("served_adverts.join", 1e9, "freeze")]
    assert told.look(decision(2)) == HOME
    told.signer = Signer(file)
    for _ in range(3):
        found = told.look(decision(2))
    assert found[1][0] == "east"  # the freeze was no one's


def test_an_old_mode_that_is_sent_again_does_not_count(told):
    for word, at in (("freeze", 1e9), ("act", 1e9 - 400)):
        told.control.append(Control("served_adverts.join", at, word))
    for _ in range(4):
        assert told.look(decision(2)) == HOME


def test_what_another_scaled_query_was_decided_is_its_own(told):
    """Each would have room for two, were the other one without any; the one with state goes."""
    told.folder.newest("served_adverts.parse").note_scaled(True)
    other = replace(decision(2), job="served_adverts.parse")
    for _ in range(3):
        found = told.look(decision(2), other)
    assert found == [("west", 1), ("east", 2)]


def test_one_query_moves_at_a_time_and_what_it_did_is_seen_before_the_next(tmp_path, monkeypatch):
    larger = tmp_path / "served_adverts.yaml"
    larger.write_text(FILE.read_text().replace("east: {cores: 3", "east: {cores: 8"))
    told = Told(tmp_path / "job", monkeypatch, larger)
    told.folder.newest("served_adverts.parse").note_scaled(True)
    both = decision(3), replace(decision(3), job="served_adverts.parse")
    found = [told.look(*both) for _ in range(3 + REST + 3)]
    assert found[:2] == [HOME] * 2
    assert found[2 : REST + 2] == [[("west", 1), ("east", 3)]] * REST
    assert found[-1] == [("east", 3), ("east", 3)]


def test_it_does_not_go_again_soon_where_it_did_not_work(told):
    for _ in range(3):
        told.look(decision(2))
    told.folder.want(TWO)  # as the supervisor does
    for _ in range(20):
        assert told.look(decision(2)) == HOME
    told.look(decision(2), after_s=1800.0)
    for _ in range(3):
        found = told.look(decision(2))
    assert found[1][0] == "east" and len(told.said) == 2


def test_it_does_not_go_again_soon_where_it_was_for_hours_before_a_person_moved_it_back(told):
    for _ in range(3):
        told.look(decision(2))
    assert told.look(decision(2), after_s=3 * 3600.0) == [("west", 1), ("east", 2)]
    told.folder.want(TWO)
    for _ in range(20):
        assert told.look(decision(2)) == HOME
    told.look(decision(2), after_s=1800.0)
    for _ in range(3):
        found = told.look(decision(2))
    assert found == [("west", 1), ("east", 2)]


def test_decisions_count_also_after_the_clock_was_set_back(told):
    told.look(decision(1))
    told.set_by_s = -3600.0
    for _ in range(2):
        assert told.look(decision(2)) == HOME
    assert told.look(decision(2)) == [("west", 1), ("east", 2)]
    told.folder.want(TWO)
    assert told.look(decision(2), after_s=REST * EVERY_S) == HOME
    told.set_by_s = -7200.0  # what did not work there just now is not known
    found = [told.look(decision(2)) for _ in range(REST + 3)]
    assert found[-1] == [("west", 1), ("east", 2)]


def test_it_comes_back_after_half_the_stay_where_it_has_room_and_is_quicker(tmp_path, monkeypatch):
    larger = tmp_path / "served_adverts.yaml"
    larger.write_text(FILE.read_text().replace("west: {cores: 2", "west: {cores: 4"))
    parse, join = TWO.blocks
    away = replace(TWO, blocks=(replace(parse, cluster="east"), replace(join, cluster="east", executors=2)))
    told = Told(tmp_path / "job", monkeypatch, larger, away)
    told.folder.note_offloaded("served_adverts.join", OffloadNote("west", "east", told.now))
    busy = decision(3, inputs={**INPUTS, "arrival_rps": 100.0})
    while told.now < BEGAN + 1790.0:
        assert told.look(busy)[1] == ("east", 2)
    found = [told.look(busy)[1] for _ in range(4)]
    assert found[0] == ("east", 2) and found[-1] == ("west", 3)
    assert "has room for it again" in told.said[-1]
    for _ in range(20):
        assert told.look(decision(9, inputs={**INPUTS, "arrival_rps": 400.0}))[1][0] == "west"  # not there again soon


def test_it_comes_back_from_a_cluster_that_another_query_was_decided_all_of(tmp_path, monkeypatch):
    parse, join = TWO.blocks
    away = replace(TWO, blocks=(replace(parse, cluster="east"), replace(join, cluster="east")))
    larger = tmp_path / "served_adverts.yaml"
    larger.write_text(FILE.read_text().replace("west: {cores: 2", "west: {cores: 4"))
    told = Told(tmp_path / "job", monkeypatch, larger, away)
    told.folder.newest("served_adverts.parse").note_scaled(True)
    told.folder.note_offloaded("served_adverts.join", OffloadNote("west", "east", told.now - 1800.0))
    other = replace(decision(3), job="served_adverts.parse")
    for _ in range(3):
        found = told.look(decision(2), other)
    assert found == [("east", 1), ("west", 2)]


def test_it_does_not_go_to_a_cluster_that_another_query_was_decided_all_of(tmp_path, monkeypatch):
    parse, join = TWO.blocks
    told = Told(tmp_path / "job", monkeypatch, placement=replace(TWO, blocks=(replace(parse, cluster="east"), join)))
    told.folder.newest("served_adverts.parse").note_scaled(True)
    for _ in range(5):
        found = told.look(decision(3), replace(decision(3), job="served_adverts.parse"))
    assert found == [("east", 1), ("west", 1)]


def test_it_does_not_go_to_a_cluster_that_does_not_answer_which_is_said_once(tmp_path, monkeypatch):
    with closing(socket.socket()) as later:
        later.bind(("127.0.0.1", 0))  # and does not listen yet
        away = tmp_path / "served_adverts.yaml"
        master = f"spark://127.0.0.1:{later.getsockname()[1]}"
        away.write_text(FILE.read_text().replace("east: {cores: 3", f"east: {{master: '{master}', cores: 3"))
        told = Told(tmp_path / "job", monkeypatch, away)
        for _ in range(7):
            assert told.look(decision(2)) == HOME
        (said,) = told.said
        assert said.startswith("no query is off-loaded to east") and "refused" in said
        assert told.folder.offloaded() == {}
        later.listen()
        for _ in range(3):
            found = told.look(decision(2))
    assert found == [("west", 1), ("east", 2)]


def test_it_does_not_go_where_executors_are_of_another_size_which_is_said_once(tmp_path, monkeypatch):
    wide = tmp_path / "served_adverts.yaml"
    wide.write_text(FILE.read_text().replace("east: {cores: 3", "east: {executor_cores: 2, cores: 8"))
    told = Told(tmp_path / "job", monkeypatch, wide)
    for _ in range(5):
        assert told.look(decision(2)) == HOME
    (said,) = told.said
    assert "is never off-loaded to east, whose executors have other cores (executor_cores) than the 1" in said


def test_what_is_known_of_a_query_here_and_there():
    choice = offload_choice(ADVERTS, (1, 3), "west", "east", 2, INPUTS)
    assert (choice.needed, choice.most, choice.rps) == (2, 1, 55.0)
    assert choice.there_rps == pytest.approx(3 / 0.016) and math.isfinite(choice.there_s)
    assert choice.there_s < choice.here_s
    busy = offload_choice(ADVERTS, (1, 3), "west", "east", 2, {**INPUTS, "forecast_rps": 90.0})
    assert busy.here_s == math.inf and busy.rps == 90.0
    assert offload_choice(ADVERTS, (1, 3), "west", "east", 2, {}) is None
    full = offload_choice(ADVERTS, (1, 0), "west", "east", 2, INPUTS)
    assert (full.there_s, full.there_rps) == (math.inf, 0.0) and full.here_s == choice.here_s
    assert offload_choice(ADVERTS, (1, 3), "west", "east", 2, {**INPUTS, "arrival_rps": True}) is None
