"""The demonstration: its second plan moves queries; and its page."""

from html import escape
from types import SimpleNamespace

from configs.settings import ROOT, load
from configs.topology import load_topology
from models.placement.plan.choose import choose_placement
from models.placement.plan.observed import ObservedBlock
from pipelines.bench.placement.moved import replanned
from pipelines.placement.demo.run import NAME, SURGE, DemoResult, Phase
from pipelines.placement.page.demo_page import render_demo
from pipelines.placement.page.plan_page import compare

TOPOLOGY = load_topology(NAME, ROOT / "configs" / "topologies")


def test_the_second_plan_moves_queries_of_the_first_one_to_the_other_cluster():
    first, second = (choose_placement(TOPOLOGY, factor).placement for factor in (1.0, SURGE))
    assert first.kept and second.kept
    assert {one.cluster for one in first.blocks} == {"west"}
    assert {one.cluster for one in second.blocks} == {"east", "west"}
    said, can = compare(TOPOLOGY, first, second, SURGE)
    assert can and "on east" in said


def test_the_page_sets_what_was_measured_beside_both_plans():
    phases = [
        SimpleNamespace(
            factor=factor, placement=(made := choose_placement(TOPOLOGY, factor).placement), path_s=7.5,
            observed=[ObservedBlock(block, 60.0, 58.7, 0.21, 3.3, 20) for block in made.blocks],
        )
        for factor in (1.0, SURGE)
    ]  # fmt: skip
    text = render_demo(TOPOLOGY, *phases, "parse goes east", 31.0, 12_345, 0, 1_900, ["it began"])
    assert "All 1,900 windows hold what 12,345 events come to." in text and "58.7" in text and "it began" in text
    assert "parse goes east. Moved in 31 s while records came." in text
    for name, factor in (("Before", 1.0), ("After", SURGE)):
        cuts = choose_placement(TOPOLOGY, factor).cuts
        why = text.partition(f"{name}: why it is cut there")[2].partition("</section>")[0]
        assert cuts and all(f">{edge.tail}<" in why and escape(reason) in why for edge, reason in cuts.items())
    wrong = render_demo(TOPOLOGY, *phases, "parse goes east", 31.0, 12_345, 3, 1_900, [])
    assert "3 of 1,900 windows do not hold" in wrong


def test_what_the_bench_keeps_of_a_demonstration(monkeypatch):
    before, after = (choose_placement(TOPOLOGY, factor).placement for factor in (1.0, SURGE))
    phases = [Phase(1.0, before, [], 2.5), Phase(SURGE, after, [], None)]
    done = DemoResult(*phases, "parse goes east", 31.0, 12_345, 0, 1_900, ("it began",))
    asked = []
    monkeypatch.setattr(replanned, "run_demo", lambda settings: (asked.append(settings.var_dir), (None, done))[1])
    monkeypatch.setattr(replanned, "LOOK_S", 0.01)
    found = replanned.measure_demo(load())
    assert (found["wrong"], found["windows"], found["moved"], found["moved_s"]) == (0, 1_900, 1, 31.0)
    assert found["latency_s"] == {"before": 2.5, "after": None}
    assert found["planned_s"] == {"before": before.latency_s, "after": after.latency_s}
    assert found["seconds"] < 5 and asked == [load().var_dir / "bench"]
    assert replanned.queries_moved(before, before) == 0
