"""Train Stable-Baselines3's DQN on the twin; run by the interpreter of an environment that has it, and numba and scipy.

Standard input: JSON of what `bench_dqn.measure` asks. The last line of standard output: JSON of seconds, cpu_s,
score and version. Imports, compiling and the trial are not counted.
"""

import json
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
import stable_baselines3  # noqa: E402
import torch  # noqa: E402

from models.dqn.environment.group import Fleet  # noqa: E402
from models.dqn.environment.randomisation import drawn  # noqa: E402
from models.dqn.environment.streaming_job import StreamingJob  # noqa: E402


def main() -> None:
    """Train once, say how long it took and what the agent earns."""
    asked = json.load(sys.stdin)
    torch.set_num_threads(1)
    environment = StreamingJob(decisions=asked["decisions"], price=asked["price"], lead_s=asked["lead_s"])
    environment.reset(seed=asked["seed"])
    environment.step(np.int64(2))  # compiles the twin
    agent = stable_baselines3.DQN("MlpPolicy", environment, seed=asked["seed"], device="cpu", **asked["settings"])
    began, cpu = time.perf_counter(), time.process_time()
    agent.learn(asked["steps"])
    done, cpu = time.perf_counter() - began, time.process_time() - cpu
    chance, total = np.random.default_rng(asked["trial_seed"]), 0.0
    groups, runs, decisions = asked["trial"]
    for _ in range(groups):
        fleet = Fleet(drawn(runs, decisions, (), chance, (), asked["price"], asked["lead_s"]), np.arange(runs))
        while not fleet.over:
            moves, _ = agent.predict(fleet.seen, deterministic=True)
            total += float((fleet.step(moves) * fleet.weight).sum(axis=1).mean())
    total /= groups * decisions
    found = {"seconds": done, "cpu_s": cpu, "score": total, "updates": agent._n_updates}
    print(json.dumps({**found, "version": stable_baselines3.__version__}))


if __name__ == "__main__":
    main()
