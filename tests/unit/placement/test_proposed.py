"""What a network proposes for a running job: told in shadow, asked for in the plan's place, and taken back."""

import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.learned.online import StepOutcome
from models.placement.learned.reward import PlacementOutcome
from models.placement.learned.schemes import Proposal
from models.placement.plan.measured import Block, Measure, Placement
from models.placement.plan.observed import ObservedBlock
from models.placement.rates import rates_of
from pipelines.kafka.connection import BrokerError
from pipelines.placement import observed, replan
from pipelines.placement.job_folder import JobFolder
from pipelines.placement.observed import MeasuredMinute
from pipelines.registry import RegistryError
from pipelines.registry.artifacts import MismatchError
from pipelines.train.placement import proposed
from pipelines.train.placement.performance import measured_samples
from pipelines.train.placement.run import has_network
from pipelines.train.placement.trial import FILE as TRIAL
from pipelines.train.placement.trial import read_trial, write_trial
from tests.fakes.clock import clock_with
from tests.fakes.followed_topic import FollowedTopic
from tidecast.messages import MetricSample, encode

FILE = ROOT / "configs" / "topologies" / "adverts.yaml"
ADVERTS = load_topology("adverts", FILE.parent)
ALL = tuple(ADVERTS.operators)
CALM, LATE, BAD = StepOutcome(2_000.0, 0.6), StepOutcome(9_000.0, 0.6), StepOutcome(90_000.0, 0.2)
"""Minutes within the target of 8 s, over it, and after a change for the worse."""


class Registered:
    """A registry with a network that would have three executors on the cheaper cluster."""

    def __init__(self, settings):
        del settings

    def champion_version(self, name):
        return "1"

    def load(self, name, space, version=None):
        if len(space.blocks) != 1:
            raise RegistryError(f"{name} version 1: the network was trained for others")
        best = Proposal(np.array([[0, 3]]), PlacementOutcome(1.0, np.ones(1)), 0.9)
        return SimpleNamespace(proposer=lambda *_: SimpleNamespace(propose=lambda *_, seed: [best]))


@pytest.fixture
def job(tmp_path, monkeypatch):
    """The adverts job with two executors on the dearer cluster for a while, and what its last minutes came to."""
    monkeypatch.setenv("TIDECAST_VAR", str(tmp_path))
    monkeypatch.setenv("TIDECAST_CONTRACTS", str(tmp_path / "contracts"))
    folder, steps = JobFolder(tmp_path / "jobs" / "adverts"), [CALM] * 10
    folder.begin(FILE, Placement((Block(ALL, "east", 2, 1.57, 1.8),), 2.0, 1.8, True))

    def observed_now(settings, folder, last_s):
        first, *others = folder.wanted().blocks
        unmeasured = [ObservedBlock(one, 600.0, None, None, None, 0) for one in others]
        return [ObservedBlock(first, 600.0, 600.0, 1.0, 1.0, 9), *unmeasured], 1.0

    def measured(settings, folder, minutes):
        return [MeasuredMinute(at, 600.0, one, 60.0 * at) for at, one in enumerate(steps)]

    monkeypatch.setattr(replan, "observe_job", observed_now)
    monkeypatch.setattr(replan, "observe_record_bytes", lambda settings, folder: {})
    monkeypatch.setattr(proposed, "observe_minutes", measured)
    monkeypatch.setattr(proposed, "PlacementRegistry", Registered)
    now = SimpleNamespace(s=folder.wanted_since_s() + 1_000)
    for module in (proposed, observed):
        monkeypatch.setattr(module, "time", clock_with(time=lambda: now.s))
    return folder, steps, now


def asked(network):
    form = {"topology": "adverts", "network": network}
    return form, json.loads(json.dumps(proposed.propose(form, replan.plan(form))))  # as Airflow hands it on


def test_in_shadow_what_it_proposes_is_told_and_the_plan_stays(job):
    form, said = asked("shadow")
    assert "The network, as nothing asks for a change: " in said["told"] and "3 executors on west" in said["told"]
    assert {name: value for name, value in said.items() if name != "told"} == replan.plan(form)
    assert asked("no")[1]["told"] == f"{said['sentence']}."


def test_until_something_is_wrong_the_plan_stands_and_is_asked_for(job):
    _, steps, _ = job
    form, said = asked("apply")  # on the dearer cluster
    assert said["ask"] and said["placement"]["blocks"][0]["cluster"] == "west"
    assert {**replan.plan(form), "told": said["told"]} == said
    assert "The network, as nothing asks for a change: " in said["told"]
    steps[:] = [LATE] * 10
    _, said = asked("apply")
    assert said["ask"] and "expected over the limit" in said["told"] and "The plan: adverts" in said["told"]
    assert said["placement"]["blocks"][0]["cluster"] == "west" and said["trial"]["before"]["counts"] == [[2, 0]]
    steps[:] = [CALM] * 10
    form = {"topology": "adverts", "network": "apply", "load": 1.1}
    assert "expected slower than usual" in proposed.propose(form, replan.plan(form))["told"]


def test_who_is_asked_sees_the_page_of_what_the_network_proposes(job, monkeypatch):
    _, steps, now = job
    four = Proposal(np.array([[0, 4]]), PlacementOutcome(1.0, np.ones(1)), 0.9)
    monkeypatch.setattr(
        Registered, "load",
        lambda *_: SimpleNamespace(proposer=lambda *_: SimpleNamespace(propose=lambda *_, seed: [four])),
    )  # fmt: skip
    form = {"topology": "adverts", "network": "apply"}
    planned = replan.plan(form)
    of_plan = Path(planned["page"]).read_text()
    assert "4 cores of executors" not in of_plan and "trial" not in proposed.propose(form, planned)
    assert Path(planned["page"]).read_text() == of_plan
    steps[:] = [LATE] * 10
    now.s += 600  # in which it was trained
    said = proposed.propose(form, planned)
    page = Path(said["page"]).read_text()
    assert "4 cores of executors" in page and "As it runs now" in page and "As it is planned" in page
    when = f"Planned on {datetime.fromtimestamp(now.s, UTC):%-d %B %Y at %H:%M:%S} UTC, for the load of the 10 minutes"
    for told in (said["told"], page):
        assert "The network, as it is expected over the limit: " in told and when in told
        assert f"The plan: {planned['sentence']}." in told


def test_the_page_of_a_proposal_says_why_each_topic_between_queries_is_there(job, monkeypatch):
    folder, steps, _ = job
    folder.want(Placement((Block(ALL[:2], "east", 1, 1.0, 1.0), Block(ALL[2:], "west", 2, 1.0, 1.0)), 2.2, 2.0, True))
    more = Proposal(np.array([[1, 0], [0, 3]]), PlacementOutcome(1.0, np.ones(1)), 0.9)
    knows = SimpleNamespace(proposer=lambda *_: SimpleNamespace(propose=lambda *_, seed: [more]))
    monkeypatch.setattr(Registered, "load", lambda *_: knows)
    steps[:] = [LATE] * 10
    _, said = asked("apply")
    page = Path(said["page"]).read_text()
    assert "trial" in said and "Which operators are one query is fixed while the job runs." in page
    why = page.partition("Why it is cut there")[2]
    assert ">views<" in why and ">project<" in why and "as one query" in why


def test_before_four_minutes_were_measured_no_network_asks_for_anything(job):
    _, steps, now = job
    now.s -= 800
    form = {"topology": "adverts", "network": "apply", "load": 1.1}
    for many in (0, 3):
        steps[:] = [LATE] * many
        _, said = asked("apply")
        assert not said["ask"] and "trial" not in said["told"] and said["placement"]["blocks"][0]["cluster"] == "east"
        few = "The network, as fewer than 4 minutes were measured since its queries were moved: "
        assert few in said["told"] and "it stays as it is" in said["told"]
        planned = replan.plan(form)  # for a load that somebody states the plan is asked for
        said = proposed.propose(form, planned)
        assert few in said["told"] and {**planned, "told": said["told"]} == said
        assert "3 executors on west" in asked("shadow")[1]["told"]
    steps[:] = [LATE] * 4
    assert asked("apply")[1]["ask"]


@pytest.mark.parametrize("many", [0, 1])
def test_long_after_a_move_it_asks_also_where_a_quiet_query_leaves_few_minutes_measured(job, monkeypatch, many):
    folder, steps, _ = job
    steps[:] = [LATE] * many
    busy = [ObservedBlock(folder.wanted().blocks[0], 600.0, 900.0, 2.4, 1.0, 9)]  # half as many records again
    monkeypatch.setattr(replan, "observe_job", lambda *_: (busy, 1.0))
    form, said = asked("apply")
    assert said["ask"] and "The network, as it is expected over the limit: " in said["told"]
    proposed.apply(form, said)
    assert folder.wanted().blocks[0].cluster == "west"
    assert (read_trial(folder).before is None) == (many == 0)  # it is judged by what was measured before it


def test_where_there_is_no_room_for_what_waits_it_proposes_for_what_comes_as_the_plan_does(job, monkeypatch):
    folder, steps, _ = job
    steps[:] = [LATE] * 10
    waits = {"come_rps": 1_200.0, "arrival_rps": 900.0, "whole_s": 0.0025, "full": True}
    behind = ObservedBlock(folder.wanted().blocks[0], 600.0, 800.0, 2.0, 9.0, 9, **waits)
    looks, alone = [], "adverts at 1.5 times the stated rates: "
    monkeypatch.setattr(replan, "observe_job", lambda *_: looks.append("once") or ([behind], 9.0))
    for network in ("shadow", "apply"):
        form, said = asked(network)
        assert said["told"].count(alone) == 2 and "at 2 times" not in said["told"]
        assert "planned for what comes alone" in said["told"]
    assert len(looks) == 4  # once by each task
    assert "trial" in said and said["sentence"].startswith(alone) and alone in Path(said["page"]).read_text()
    older = {name: value for name, value in replan.plan(form).items() if name != "backlog"}  # of the release before
    assert "adverts at 2 times the stated rates: " in proposed.propose({**form, "network": "shadow"}, older)["told"]


def test_long_after_a_move_the_plan_is_asked_for_where_few_minutes_were_measured(job, monkeypatch):
    folder, steps, _ = job
    steps.clear()
    busy = [ObservedBlock(folder.wanted().blocks[0], 600.0, 900.0, 2.4, 1.0, 9)]
    monkeypatch.setattr(replan, "observe_job", lambda *_: (busy, 1.0))
    nothing = SimpleNamespace(proposer=lambda *_: SimpleNamespace(propose=lambda *_, seed: []))
    monkeypatch.setattr(Registered, "load", lambda *_: nothing)
    form, said = asked("apply")
    assert said["ask"] and {**replan.plan(form), "told": said["told"]} == said


def test_where_nothing_was_measured_it_is_told_and_nobody_is_asked(job, monkeypatch):
    _, steps, _ = job
    steps[:] = [LATE] * 10
    unmeasured = [ObservedBlock(one, 600.0, None, None, None, 0) for one in job[0].wanted().blocks]
    monkeypatch.setattr(replan, "observe_job", lambda *_: (unmeasured, None))
    form, said = asked("apply")
    assert not said["ask"] and "The network, as it is expected over the limit: " in said["told"]
    assert {**replan.plan(form), "told": said["told"]} == said


def test_where_the_network_knows_nothing_better_the_plan_is_asked_for(job, monkeypatch):
    _, steps, _ = job
    steps[:] = [LATE] * 10
    nothing = SimpleNamespace(proposer=lambda *_: SimpleNamespace(propose=lambda *_, seed: []))
    monkeypatch.setattr(Registered, "load", lambda *_: nothing)
    form, said = asked("apply")
    assert "as it is expected over the limit: " in said["told"] and "it stays as it is" in said["told"]
    assert {**replan.plan(form), "told": said["told"]} == said


def test_fewer_executors_are_asked_for_only_where_little_load_was_measured(job, monkeypatch):
    _, steps, _ = job
    one = Proposal(np.array([[0, 1]]), PlacementOutcome(1.0, np.ones(1)), 0.9)
    fewer = SimpleNamespace(proposer=lambda *_: SimpleNamespace(propose=lambda *_, seed: [one]))
    monkeypatch.setattr(Registered, "load", lambda *_: fewer)
    _, said = asked("apply")
    assert "nothing asks for a change" in said["told"] and "1 executor on west" in said["told"] and "trial" not in said
    steps[:] = [LATE] * 10
    assert "trial" not in asked("apply")[1]  # the plan is asked for
    form = {"topology": "adverts", "network": "apply", "load": 0.4}  # of which the load is little, in the twin
    for load, why in ((0.6, "nothing asks for a change"), (0.4, "it is long under little load")):
        steps[:] = [StepOutcome(2_000.0, load)] * 10
        said = proposed.propose(form, replan.plan(form))
        assert f"The network, as {why}: " in said["told"] and ("trial" in said) == (load < 0.5)
    assert said["placement"]["blocks"][0]["executors"] == 1


def test_one_executor_of_two_cores_is_not_fewer_than_two_of_one(job, monkeypatch):
    folder, steps, _ = job
    steps[:] = [LATE] * 10
    one = Proposal(np.array([[0, 1]]), PlacementOutcome(1.0, np.ones(1)), 0.9)
    large = SimpleNamespace(proposer=lambda *_: SimpleNamespace(propose=lambda *_, seed: [one]))
    monkeypatch.setattr(Registered, "load", lambda *_: large)
    kept = folder.path / FILE.name
    kept.write_text(kept.read_text().replace("price: 0.6", "price: 0.6, executor_cores: 2"))
    assert asked("apply")[1]["trial"]["before"]["counts"] == [[2, 0]]


def changed(job):
    """The job a minute after a change that its network proposed."""
    folder, steps, now = job
    steps[:] = [LATE] * 10
    proposed.apply(*asked("apply"))
    assert (folder.wanted().blocks[0].cluster, folder.wanted().blocks[0].executors) == ("west", 3)
    steps[:] = [BAD] * 3
    now.s += 60


def test_what_did_no_good_is_taken_back_and_barred(job):
    folder, steps, now = job
    changed(job)
    assert asked("apply")[1]["ask"] is False  # on trial for three minutes
    now.s += 200
    form, said = asked("apply")
    why = "as after the last change, latency and load together are worse than before it"
    assert said["ask"] and why in said["told"]
    assert said["trial"]["barred"] == [[[0, 3], now.s + 1_800]] and said["trial"]["before"] is None
    proposed.apply(form, said)
    assert (folder.wanted().blocks[0].cluster, folder.wanted().blocks[0].executors) == ("east", 2)
    steps[:] = [LATE] * 10
    now.s += 200
    assert "trial" not in asked("apply")[1]  # it is barred, and the network knows no other
    now.s += 1_800
    assert asked("apply")[1]["trial"]["before"]["counts"] == [[2, 0]]


def test_what_did_no_good_is_barred_for_half_an_hour_from_when_the_way_back_is_taken(job):
    folder, _, now = job
    changed(job)
    now.s += 200
    write_trial(folder, replace(read_trial(folder), barred=((b"12345678", now.s + 600),)))
    form, said = asked("apply")
    now.s += 8 * 3_600  # until somebody approves it
    proposed.apply(form, said)
    barred = {len(key): until_s for key, until_s in read_trial(folder).barred}
    assert barred == {8: now.s - 8 * 3_600 + 600, 16: read_trial(folder).changed_s + 1_800}


def test_a_later_change_before_which_nothing_was_measured_begins_no_bar_anew(job, monkeypatch):
    folder, steps, now = job
    changed(job)
    now.s += 200
    proposed.apply(*asked("apply"))
    barred = ((np.array([[0, 3]]).tobytes(), now.s + 1_800),)
    assert folder.wanted().blocks[0].cluster == "east" and read_trial(folder).barred == barred
    steps.clear()
    busy = [ObservedBlock(folder.wanted().blocks[0], 600.0, 900.0, 2.4, 1.0, 9)]
    monkeypatch.setattr(replan, "observe_job", lambda *_: (busy, 1.0))
    now.s += 24 * 3_600
    proposed.apply(*asked("apply"))
    assert folder.wanted().blocks[0].cluster == "west" and read_trial(folder).barred == barred


def test_the_way_back_is_asked_for_until_it_is_taken_or_the_change_does_good_after_all(job, monkeypatch):
    folder, steps, now = job
    changed(job)
    now.s += 200
    trial, page = read_trial(folder), proposed.write_plan_page

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(proposed, "write_plan_page", full)
    with pytest.raises(OSError, match="disk full"):  # it is tried again
        asked("apply")
    monkeypatch.setattr(proposed, "write_plan_page", page)
    for later_s in (20, 24 * 3_600):  # in a day as nobody has answered
        now.s += later_s
        said = asked("apply")[1]
        assert said["ask"] and said["placement"]["blocks"][0]["cluster"] == "east"
        assert read_trial(folder).before[1] == trial.before[1]
    steps[:] = [CALM] * 10
    assert "trial" not in asked("apply")[1] and read_trial(folder).before is None
    steps[:] = [BAD] * 10
    assert "the last change" not in asked("apply")[1]["told"]


def test_a_way_back_for_which_there_is_no_room_is_asked_for_once(job, monkeypatch):
    folder, _, now = job
    changed(job)
    now.s += 200
    placed = proposed.QuerySpace.placement
    east = [[2, 0]]
    monkeypatch.setattr(
        proposed.QuerySpace, "placement", lambda self, counts: None if counts.tolist() == east else placed(self, counts)
    )
    assert "the last change" in asked("apply")[1]["told"] and read_trial(folder).before is None
    assert "the last change" not in asked("apply")[1]["told"]


def test_a_change_is_judged_by_what_was_measured_as_it_was_approved(job):
    folder, steps, now = job
    steps[:] = [LATE] * 10
    form, said = asked("apply")
    steps[:] = [CALM] * 4
    now.s += 8 * 3_600
    assert "no trial" not in proposed.apply(form, said)
    counts, before = read_trial(folder).before
    assert (counts.tolist(), before, read_trial(folder).changed_s) == ([[2, 0]], CALM, now.s)


def test_a_change_is_on_trial_also_where_the_clock_of_its_folder_is_ahead(job):
    folder, steps, now = job
    steps[:] = [LATE] * 10
    form, said = asked("apply")
    now.s = folder.wanted_since_s() - 30  # of a server that mounts it here, to which writing is half a minute later
    assert "no trial" not in proposed.apply(form, said)
    assert read_trial(folder).before is not None and read_trial(folder).changed_s == folder.wanted_since_s()


def test_a_change_before_which_nothing_was_measured_is_on_no_trial(job, monkeypatch):
    folder, steps, _ = job
    steps[:] = [LATE] * 10
    form, said = asked("apply")
    steps.clear()
    assert "It is on no trial: nothing was measured in the last 5 minutes" in proposed.apply(form, said)
    assert read_trial(folder).before is None and folder.wanted().blocks[0].cluster == "west"

    def away(*_):
        raise BrokerError("the broker does not answer")

    monkeypatch.setattr(proposed, "observe_minutes", away)
    assert proposed.apply(form, said).endswith("It is on no trial: the broker does not answer")


def test_a_change_by_another_ends_a_trial_and_keeps_what_is_barred(job):
    folder = job[0]
    changed(job)
    before = read_trial(folder)
    assert before.before is not None
    write_trial(folder, replace(before, changed_s=folder.wanted_since_s() - 1, barred=((b"12345678", 1e12),)))
    after = read_trial(folder)
    assert (after.before, after.changed_s, after.barred) == (None, folder.wanted_since_s(), ((b"12345678", 1e12),))
    for spoilt in ("[]", "{", '{"changed_s": 1, "before": 2, "barred": 3}'):
        (folder.path / TRIAL).write_text(spoilt)
        assert read_trial(folder).before is None and read_trial(folder).changed_s == folder.wanted_since_s()


def test_a_plan_needs_no_network(job, monkeypatch):
    folder, _, _ = job
    with monkeypatch.context() as away:
        away.setattr(proposed, "observe_minutes", lambda *_: 1 / 0)
        form, said = asked("apply")
        assert "No network proposes anything: division by zero" in said["told"]
        assert {**replan.plan(form), "told": said["told"]} == said
    cut = Placement((Block(ALL[:2], "east", 1, 1.0, 1.0), Block(ALL[2:], "west", 2, 1.0, 1.0)), 2.2, 2.0, True)
    folder.want(cut)
    form, said = asked("apply")
    assert "No network proposes anything: adverts version 1" in said["told"]
    assert {**replan.plan(form), "told": said["told"]} == said


def test_queries_that_the_autoscaler_scales_are_left_to_it(job, tmp_path):
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "adverts.parse.yaml").touch()
    _, said = asked("apply")
    assert said["told"].endswith("No network is asked: the autoscaler gives its queries executors.")
    assert proposed.learn({"topology": "adverts"}) is None


class Trained:
    """A registry with one network for the job as one query, made so many days ago, and maybe a champion for others."""

    def __init__(self, ago_d, env, verdict, champion):
        at_ms, self._champion = 1000 * (time.time() - 86_400 * ago_d), champion
        self._made = SimpleNamespace(version=3, creation_timestamp=at_ms, tags={"env": env, "verdict": verdict})

    def champion_version(self, name):
        return self._champion

    def versions(self, name):
        return [self._made]

    def load(self, name, space, version=None):
        if version is None or len(space.blocks) != 1:
            raise MismatchError(f"{name}: the network was trained for others")
        return "a network"


@pytest.mark.parametrize("champion", [None, "2", "9"])
@pytest.mark.parametrize(
    ("ago_d", "env", "verdict", "asked", "is_enough"),
    [
        (6.9, "twin", "rejected: at these loads no placement is better than another", None, True),
        (6.9, "twin", "rejected: at these loads no placement is better than another", "twin", True),
        (7.1, "twin", "rejected: at these loads no placement is better than another", None, False),
        (6.9, "lstm", "rejected: it comes to less", None, False),
        (6.9, "lstm", "rejected: it comes to less", "lstm", True),
        (6.9, "twin", "rejected: compared with version 2, but 1 serves by now.", None, False),
        (6.9, "twin", "promoted: it comes to as much", None, False),
    ],
)
def test_one_that_lost_is_not_trained_again_within_a_week(ago_d, env, verdict, asked, is_enough, champion):
    made = Trained(ago_d, env, verdict, champion)
    one = Placement((Block(ALL, "east", 2, 1.57, 1.8),), 2.0, 1.8, True)
    others = Placement((Block(ALL[:2], "east", 1, 1.0, 1.0), Block(ALL[2:], "west", 2, 1.0, 1.0)), 2.2, 2.0, True)
    assert has_network(made, ADVERTS, one, asked) is is_enough
    assert not has_network(made, ADVERTS, others, asked)


def test_of_several_that_lost_the_newest_alone_is_downloaded(monkeypatch):
    made, downloaded = Trained(1.0, "twin", "rejected: it comes to less", None), []
    (newest,) = made.versions("adverts")
    older = SimpleNamespace(**{**vars(newest), "version": 2})
    monkeypatch.setattr(made, "versions", lambda name: [older, newest])
    monkeypatch.setattr(made, "load", lambda name, space, version: downloaded.append(version) or "a network")
    assert has_network(made, ADVERTS, Placement((Block(ALL, "east", 2, 1.57, 1.8),), 2.0, 1.8, True))
    assert downloaded == ["3"]


@pytest.mark.parametrize("champion", [None, "2"])
def test_while_none_is_trained_for_one_that_lost_the_proposal_says_until_when_and_what_else_can_be_done(
    job, monkeypatch, champion
):
    form, verdict = {"topology": "adverts", "network": "apply"}, "rejected: it comes to less"

    def told(ago_d):
        made = Trained(ago_d, "twin", verdict, champion)
        monkeypatch.setattr(proposed, "PlacementRegistry", lambda settings: made)
        planned = replan.plan(form)
        said = proposed.propose(form, planned)
        assert {**planned, "told": said["told"]} == said
        return said["told"], made.versions("adverts")

    said, twin = told(6.9)
    begin, end = (datetime.fromtimestamp(twin[0].creation_timestamp / 1000 + 86_400 * days, UTC) for days in (0, 7))
    made, until = (f"{at:%-d %B %Y at %H:%M} UTC" for at in (begin, end))
    assert f"One that was trained on {made} lost, so no other is trained until {until}." in said
    assert "a run with `env: lstm` trains one" in said and "DAG" not in said
    assert "No network proposes anything: adverts: the network was trained for others" in told(7.1)[0]
    lstm = Trained(1.0, "lstm", verdict, champion).versions("adverts")
    monkeypatch.setattr(Trained, "versions", lambda *_: [*twin, *lstm])
    assert "Till then the plan stands alone." in told(6.9)[0]
    monkeypatch.setattr(Trained, "versions", lambda *_: lstm)
    assert "A run of the DAG plan_placement with `env: twin` trains one in the twin." in told(6.9)[0]


def test_it_is_trained_for_the_work_that_was_measured_at_the_stated_rates_or_higher_ones(job, monkeypatch):
    (block,), trained, told = job[0].wanted().blocks, [], []
    monkeypatch.setattr(proposed, "has_network", lambda *_: False)
    monkeypatch.setattr(proposed, "train_network", lambda registry, topology, *_: trained.append(topology))
    for rps, record_s in ((900.0, 0.004), (60.0, 0.004), (None, None)):
        seen = [ObservedBlock(block, 600.0, rps, 2.4, 1.0, 9, record_s)]
        monkeypatch.setattr(replan, "observe_job", lambda *_, seen=seen: (seen, 1.0))
        proposed.learn({"topology": "adverts"})
    assert [one.sources["events"].rps for one in trained] == pytest.approx([900, 600, 600])
    loads = [Measure(one, rates_of(one)).wiring((ALL,)).loads[0] for one in (*trained, ADVERTS)]
    assert loads[:2] == pytest.approx([0.004 * 900, 0.004 * 600]) and loads[2] == loads[3]
    waiting = ObservedBlock(block, 600.0, 860.0, 2.4, 1.0, 9, 0.004, come_rps=1_350.0, arrival_rps=900.0)
    monkeypatch.setattr(replan, "observe_job", lambda *_: ([waiting], 1.0))
    proposed.learn({"topology": "adverts"})
    assert trained.pop().sources["events"].rps == pytest.approx(900)  # it serves on when that is worked off
    monkeypatch.setattr(replan, "observe_job", lambda *_: ([seen[0]._replace(rps=900.0, record_s=0.004)], 1.0))
    monkeypatch.setattr(proposed, "PerformanceRegistry", lambda settings: settings)
    lstm = SimpleNamespace(model="lstm", trusted=True)
    monkeypatch.setattr(proposed, "learn_performance", lambda registry, space, *_: told.append(space) or lstm)
    proposed.learn({"topology": "adverts", "env": "lstm"})
    assert told[0].measure.topology == trained[-1] and trained[-1].sources["events"].rps == pytest.approx(900)


def test_no_sample_goes_across_a_minute_that_was_left_out():
    counts = np.array([[1, 2]])
    at_work = (*range(6), *range(9, 14), 20)
    minutes = [MeasuredMinute(at, 10.0 * at, StepOutcome(float(at), 0.5), 60.0 * at) for at in at_work]
    samples, begin_s = measured_samples(counts, minutes)
    assert samples.seen[:, :, 0].tolist() == [[0, 10, 20, 30], [10, 20, 30, 40], [90, 100, 110, 120]]
    assert samples.label[:, 0].tolist() == [4, 5, 13] and samples.before[:, 0].tolist() == [3, 4, 12]
    assert begin_s.tolist() == [240, 300, 780]
    assert (samples.seen[:, :, 1:] == [1, 2]).all()
    assert len(measured_samples(counts, [])[0].label) == 0


def test_minutes_in_which_a_query_was_not_measured_are_left_out(job, monkeypatch):
    folder, _, now = job
    monkeypatch.setattr(observed, "time", clock_with(time=lambda: now.s))

    def batch(ago_s, rows=600, job="adverts.parse"):
        return MetricSample(
            job=job, time=now.s - ago_s, wall_time=now.s - ago_s, kind="batch", batch_rows=rows, run_s=2.0,
            latency_p50_s=1.0, latency_p95_s=2.0, latency_max_s=2.0,
        )  # fmt: skip

    said = [batch(150), batch(149), batch(130), batch(30), batch(20), batch(10), batch(5, job="other")]
    records = [SimpleNamespace(timestamp=one.wall_time, key=one.job, value=encode(one)) for one in said]
    records.append(SimpleNamespace(timestamp=now.s, key="adverts.parse", value=b"{}"))
    monkeypatch.setattr(observed, "Follower", FollowedTopic(records))
    found = observed.observe_minutes(SimpleNamespace(kafka=None), folder, 3)
    assert [(one.number, one.rps) for one in found] == [
        (0, 60.0),
        (2, 60.0),
    ]  # two batches in twenty seconds, after the first one
    assert [one.begin_s for one in found] == [now.s - 180, now.s - 60]
    first, last = (one.step for one in found)
    assert (first.latency_ms, last.latency_ms) == (pytest.approx(2_000, abs=50),) * 2
    assert (first.load, last.load) == (pytest.approx(4 / 20 / 2), pytest.approx(4 / 20 / 2))
    os.utime(folder.path / "placement.json", (now.s - 200, now.s - 200))  # moved, and caught up with, since
    assert len(observed.observe_minutes(SimpleNamespace(kafka=None), folder, 3)) == 1


def test_a_minute_s_load_is_by_the_records_that_came_in_it_not_by_those_that_were_read(job, monkeypatch):
    _, _, now = job
    monkeypatch.setattr(observed, "time", clock_with(time=lambda: now.s))

    def told(kind, ago_s, **more):
        at = now.s - ago_s
        sample = MetricSample(job="adverts.parse", time=at - 10, wall_time=at, span_s=10.0, kind=kind, **more)
        return SimpleNamespace(timestamp=at, key="adverts.parse", value=encode(sample))

    late = {"latency_p50_s": 3.0, "latency_p95_s": 3.0, "latency_max_s": 3.0}
    said = [told("batch", ago_s, batch_rows=6_000, run_s=20.0, **late) for ago_s in range(118, 0, -10)]
    said += [told("interval", ago_s, arrival_rps=900.0, lag_records=0, executors=2) for ago_s in range(118, 60, -10)]
    said += [told("interval", 30, arrival_rps=700.0, lag_records=61_050, executors=2)]
    monkeypatch.setattr(observed, "Follower", FollowedTopic(sorted(said, key=lambda one: one.timestamp)))
    first, second = observed.observe_minutes(SimpleNamespace(kafka=None), job[0], 2)
    assert (first.rps, second.rps) == (900, 700 + (61_050 - 1_050) / 300)  # both executors never rested
    assert (first.step.load, second.step.load) == pytest.approx((900 / 600, 900 / 600))


def test_of_an_outage_that_is_told_as_one_interval_a_minute_has_the_part_that_lies_in_it(job, monkeypatch):
    _, _, now = job
    monkeypatch.setattr(observed, "time", clock_with(time=lambda: now.s))

    def told(kind, ago_s, span_s, **more):
        at = now.s - ago_s
        sample = MetricSample(job="adverts.parse", time=at - span_s, wall_time=at, span_s=span_s, kind=kind, **more)
        return SimpleNamespace(timestamp=at, key="adverts.parse", value=encode(sample))

    late = {"latency_p50_s": 3.0, "latency_p95_s": 3.0, "latency_max_s": 3.0}
    said = [told("batch", ago_s, 10.0, batch_rows=9_000, run_s=20.0, **late) for ago_s in range(118, 0, -10)]
    came = {"lag_records": 0, "executors": 2}
    said += [told("interval", 58, 8 * 3_600.0, arrival_rps=0.0, **came)]  # up to two seconds after the minute has begun
    said += [told("interval", ago_s, 10.0, arrival_rps=900.0, **came) for ago_s in range(48, 0, -10)]
    monkeypatch.setattr(observed, "Follower", FollowedTopic(sorted(said, key=lambda one: one.timestamp)))
    _, second = observed.observe_minutes(SimpleNamespace(kafka=None), job[0], 2)
    assert second.rps == pytest.approx(900 * 50 / 52)


@pytest.mark.parametrize("trigger_s", [60, 600])
def test_steps_of_a_job_with_long_triggers_are_three_triggers(tmp_path, monkeypatch, trigger_s):
    now_s, folder, file = 1e6, JobFolder(tmp_path / "jobs" / "adverts"), tmp_path / "adverts.yaml"
    file.write_text(FILE.read_text().replace("trigger_s: 1", f"trigger_s: {trigger_s}"))
    folder.begin(file, Placement((Block(ALL, "east", 2, 1.57, 1.8),), 2.0, 1.8, True))
    os.utime(folder.path / "placement.json", (now_s - 20 * trigger_s,) * 2)
    monkeypatch.setattr(observed, "time", clock_with(time=lambda: now_s))
    told = [
        MetricSample(
            job="adverts.parse", time=now_s - ago * trigger_s, wall_time=now_s - ago * trigger_s, kind="batch",
            batch_rows=600, run_s=2.0, latency_p50_s=1.0, latency_p95_s=2.0, latency_max_s=2.0,
        )
        for ago in np.arange(25.5, 0, -1)
    ]  # fmt: skip
    records = [SimpleNamespace(timestamp=one.wall_time, key=one.job, value=encode(one)) for one in told]
    monkeypatch.setattr(observed, "Follower", FollowedTopic(records))
    found = observed.observe_minutes(SimpleNamespace(kafka=None), folder, 5)
    rps = pytest.approx(600 / trigger_s)
    assert [(one.number, one.rps) for one in found] == [(at, rps) for at in range(5)]
    assert len(observed.observe_minutes(SimpleNamespace(kafka=None), folder, 30)) == 6  # since it has moved
    ((query,), _) = observed.observe_job(SimpleNamespace(kafka=None), folder, observed.span_of(folder.topology()))
    assert (query.batches, query.rps) == (9, rps)
