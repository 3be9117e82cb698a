"""The job of three queries that the page of placement goes through is planned as the page says."""

from configs.settings import ROOT
from configs.topology import load_topology
from models.placement.plan.choose import choose_placement
from models.placement.plan.text import describe_plan


def test_three_queries_stay_apart_and_are_planned_as_the_page_says(tmp_path):
    page = (ROOT / "docs" / "placement.md").read_text().split("### A job that is three queries already\n")[1]
    (tmp_path / "orders.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    topology = load_topology("orders", tmp_path)
    told = [*describe_plan(topology, choose_placement(topology, 1.0))]
    said = page.split("    orders: ")[1].split("      ...")[0].splitlines()
    assert told[: len(said)] == ["orders: " + said[0], *[line.removeprefix("    ") for line in said[1:]]]
