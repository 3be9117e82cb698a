import numpy as np

from models.policy.core.choice import Choice, make_choice
from models.policy.core.paced import Paced
from models.policy.core.policy import decide
from tests.fakes.views import a_view, driven


class Teller:
    """Asks for as many executors as the field that it looks at."""

    name, knob = "teller", "field"

    def __init__(self, field):
        self.field = field

    def fresh(self, runs):
        return {"seen": np.zeros(runs)}

    def decide(self, memory, view) -> tuple[dict, Choice]:
        return {**memory, "seen": memory["seen"] + 1}, make_choice(np.atleast_1d(getattr(view, self.field)) * 1.0)


def test_between_two_decisions_the_target_stays_and_the_policy_is_not_asked():
    policy = Paced(Teller("executors"), 15.0)
    memory, asked = policy.fresh(1), []
    for now in np.arange(0, 46, 5.0):
        memory, choice = decide(policy, memory, a_view(now_s=now, since_s=5.0, executors=now + 1, target=20))
        asked.append(choice.target[0])
    assert asked == [20, 20, 20, 16, 20, 20, 20, 20, 20, 20]  # 31 and 46 are out of bounds
    assert memory["seen"][0] == 3


def test_what_it_sees_is_the_mean_since_its_own_last_decision():
    looks = [
        a_view(now_s=now, since_s=since, busy=busy, batch_s=batch, processed_rps=10 * busy)
        for now, since, busy, batch in [(0, 5, 3, 1), (10, 10, 5, np.nan), (15, 5, 11, 4), (30, 15, 8, 2)]
    ]
    seen = {field: driven(Paced(Teller(field), 15.0), looks)[:, 0].tolist() for field in ("busy", "batch_s")}
    assert seen["busy"] == [4, 4, 7, 8]
    assert seen["batch_s"] == [4, 4, 4, 2]
    shares = driven(Paced(Teller("since_s"), 15.0), looks)[:, 0]
    assert shares.tolist() == [4, 4, 15, 15]
