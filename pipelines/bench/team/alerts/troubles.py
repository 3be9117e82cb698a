"""The troubles that are planted in a watched job: what each is, the alert that it is to raise, and how soon."""

from __future__ import annotations

from typing import NamedTuple


class PlantedTrouble(NamedTuple):
    """A planted trouble.

    Attributes:
        what: is planted, in words.
        alert: that it is to raise, and no other.
        within_s: seconds within which that has to be told; a decision is written every ten minutes here.
    """

    what: str
    alert: str
    within_s: float


TROUBLES = {
    "late": PlantedTrouble("every record is late", "TidecastBudgetBurnsFast", 1500),
    "spent": PlantedTrouble("decisions say that the budget is spent", "TidecastBudgetSpent", 660),
    "shortage": PlantedTrouble(
        "decisions say that the contract allows too few executors", "TidecastTooFewExecutors", 720
    ),
    "pool": PlantedTrouble("the job's pool is too small", "TidecastPoolTooSmall", 70),
    "silent": PlantedTrouble("no metrics come any more", "TidecastJobSilent", 100),
    "undecided": PlantedTrouble("the autoscaler neither decides nor beats", "TidecastJobNotDecided", 100),
    "deaf": PlantedTrouble("the agent asks for fewer executors than are decided", "TidecastDecisionNotFollowed", 200),
    "no_room": PlantedTrouble("executors that are asked for do not come", "TidecastExecutorsMissing", 2800),
    "unserved": PlantedTrouble("serving neither forecasts nor beats", "TidecastJobNotForecast", 160),
    "drift": PlantedTrouble("the ingest reports a drift", "TidecastLoadDrifted", 10),
    "contract": PlantedTrouble("the contract's file cannot be read", "TidecastContractWrong", 70),
    "ingest": PlantedTrouble("nothing is ingested any more", "TidecastIngestStuck", 8500),
    "disk": PlantedTrouble("200 MB are left where the lake is", "TidecastLakeFillsDisk", 610),
    "files": PlantedTrouble("a table has 600 data files", "TidecastLakeNotMaintained", 610),
    "broker": PlantedTrouble("the broker does not answer", "TidecastBrokerAway", 70),
}
"""By the name that `MadeUpJob` knows each by."""
