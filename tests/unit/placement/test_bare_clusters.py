"""A plan names the clusters on which it leaves nothing."""

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.plan.choose import PlacementPlan
from models.placement.plan.measured import Block, Placement
from models.placement.plan.text import describe_plan


def test_clusters_without_a_query_or_a_topic_are_named():
    adverts = load_topology("adverts", ROOT / "configs" / "topologies")
    block = Block(tuple(adverts.operators), "west", 3, 1.5, 1.8)
    plan = PlacementPlan(Placement((block,), 1.8, 1.8, True), {}, (), 1.8)
    assert adverts.broker == "east" and not any("neither" in line for line in describe_plan(adverts, plan))
    further = adverts.clusters["east"]
    wide = adverts.model_copy(update={"clusters": {"south": further, **adverts.clusters, "north": further}})
    assert list(describe_plan(wide, plan))[-1] == "  neither a query nor a topic of it on south, north"
